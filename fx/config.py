"""Passes: the settings of torch.fx that other programs read.

fx never shows a progress bar, and a tracer notes stacks as it is told,
whatever is set here.
"""

disable_progress = True
verbose_progress = False
do_not_emit_stack_traces = False
