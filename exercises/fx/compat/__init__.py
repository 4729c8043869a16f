"""Passes: what programs need that use torch.fx and fx side by side.

In comes a graph or a module of the one library, out comes the same of the
other.  No stage knows of this room, and none of them needs it.
"""
