"""Stage 02, use-def: what stands for an object in text, and back.

In comes an object: a function, an attribute of a module, a node, a graph.  Out
comes what stands for it outside the process: a qualified name, a dotted path,
a line of the printed graph, a row of a pickle.  You need none of it to
understand use-def edges.
"""
