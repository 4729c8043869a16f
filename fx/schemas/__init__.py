"""Stage 02, use-def: what torch says of its operators.

In comes an operator or a function of torch.  Out come its `facts`, from its
schemas: its parameters, what it writes, what it is a view of.  No node asks for
them.  The rewriter does, and stage 08, where calls that write are put in place
of calls that make new memory.
"""
