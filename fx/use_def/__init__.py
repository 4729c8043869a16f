"""Stage 02, use-def: which node uses the value of which, at both ends.

In come the arguments of a node: nodes, constants, and containers of them.  Out
come the edges of the graph and what is asked of them: who uses a value, who
uses it last, whether the graph is a well-formed program.  `fx/node.py` and
`fx/graph.py`, the classes that users hold, are built from these files.

The core is `arguments` (what a node's arguments may be) and `lint` (the
verifier, and last uses).  The rest is how nodes are written (`text`), what they
refer to (`values`, `annotations`, `dotted_path`), what is refused (`errors`),
what later stages promise (`protocols`), and which nodes are dead (`dead_code`).
"""
