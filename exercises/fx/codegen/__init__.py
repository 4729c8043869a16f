"""Stage 05, codegen: a graph written as the source of a Python function.

In comes a `Graph`.  Out comes the text of a function `forward`, with the
objects that the text names, and from both a compiled function that a debugger
can read.  `fx/graph_module.py` puts that function on a module.
"""
