"""Stage 05, codegen: a graph written as the source of a Python function.

In comes a `Graph`.  Out comes the text of a function `forward`, with the
objects that the text names, and from both a compiled function that a debugger
can read.  `fx/graph_module.py` puts that function on a module.

The core is `names` (of variables and globals), `emit` (a statement for each
node), `codegen` (the function) and `source` (compiled, and its errors).  The
rest is how constants and types are written (`argument_text`), what a graph
module holds (`attributes`), and functions with nested inputs (`nested`).
"""
