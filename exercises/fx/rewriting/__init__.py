"""Stage 07, rewriter: replace each occurrence of a pattern in a graph.

In come a graph, a pattern and a replacement, all three traced from functions.
Out comes the same graph, edited: what matched is gone, and its users take the
replacement's values.  `fx/subgraph_rewriter.py` is how users start it.
"""
