"""Passes: what programs need that were written for torch.fx, or use it too.

`torch_graphs` turns a graph or a module of one library into the same of the
other, and `readers` lets a program under `fx.as_torch` read torch's graphs as
they are.  `names` sets names where torch.fx has them, and `first_use` imports
what a program names for the first time.  No stage knows of this room or needs
it.
"""
