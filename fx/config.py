"""Passes: the settings of torch.fx that other programs read.

fx never shows a progress bar, and a tracer notes stacks as it is told,
whatever is set here.  Interpreters that derive from torch.fx's read the first
two, and the tracer of FX quantisation reads the third.
"""

disable_progress = True
verbose_progress = False
do_not_emit_stack_traces = False
