"""Stage 02, use-def: which node uses the value of which, at both ends.

In come the arguments of a node: nodes, constants, and containers of them.  Out
come the edges of the graph and what is asked of them: who uses a value, who
uses it last, whether the graph is a well-formed program.  `fx/node.py` and
`fx/graph.py`, the classes that users hold, are built from these files.

The core is `arguments`, `lint` (the verifier) and `liveness` (last uses).  The
rest is what nodes are written as (`node_text`, `qualified_names`,
`dotted_path`), what they may hold and what is refused (`values`, `annotations`,
`parameters`, `refusals`), an index (`finding`), what later stages promise
(`protocols`), and the rule that says which nodes are dead (`dead_code`).
"""
