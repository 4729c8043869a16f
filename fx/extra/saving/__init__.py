"""Extra: graphs and modules that are kept: copied, pickled, saved to files.

A stage copies a graph node by node, and leaves the rest to the methods that are
put into its classes. What is kept here comes back as it was: with the notes on
its nodes, without recursion, and without running anything while it is read.

A pickle is the work of `pickled_graphs` (a graph), `pickled_modules` (one of a
module) and `packing` (values that hold nodes); `GraphModule.to_folder` that of
`serialize`.  `fx.save` and `fx.load` are in `saved_graph`, which uses `files`
(the folder), `module_tree`, `values`, `guarded` (the code generators of
traces), and `allowed` (what a file may name).
"""
