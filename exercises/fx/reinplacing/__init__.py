"""Stage 08, reinplace: compute in memory that no later node needs.

In comes a function.  `make_fx` captures it as a graph of ATen operators, and
the plan decides for each node whether it may write into one of its inputs.
Out comes the graph with those nodes in place.  `fx/passes/reinplace.py` is how
users start it.
"""
