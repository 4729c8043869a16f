"""Stage 08, reinplace: compute in memory that no later node needs.

In come a graph of ATen operators and sample inputs.  A run on fake tensors
tells which nodes share storage.  Then each call is decided in order, on a
simulation of the rewritten graph: may it write into its first argument?  Out
comes what was decided, and a report.  `fx/passes/reinplace.py`, which users
call, has the rules and rewrites the graph.

The core is `aliasing` (who shares memory) and `simulation` (what a write would
change); whether a call may write is decided by the rules in
`fx/passes/reinplace.py`.  The rest is `strides`: what later nodes compute if
their inputs lie elsewhere.
"""
