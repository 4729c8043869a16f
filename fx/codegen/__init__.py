"""Stage 05, codegen: a graph written as the source of a Python function.

In comes a `Graph`.  Out comes the text of a function `forward`, with the
objects that the text names, and from both a compiled function that a debugger
can read.  `fx/graph_module.py` puts that function on a module.

The core is `global_names`, `emit` (a statement for each node), `codegen` (the
function) and `source` (compiled).  The rest is details of the text
(`local_names`, `argument_text`, `syntax`, `layout`, `overrides`, `variants`),
errors (`failures`), and what a graph module holds (`attributes`,
`module_paths`).
"""
