"""Extra: code with comments and colours, and code that empties boxes.

Both are emitters, `readable` and `boxed`, and `choosing` says which one writes
a graph.
"""
