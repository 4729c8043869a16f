"""Stage 08, reinplace: record the operators that torch's dispatcher runs.

In come a function and sample inputs.  The function runs, torch's dispatcher
hands each ATen operator to a dispatch mode, and a `Capture` adds a node for
it.  Out comes a graph of ATen operators.  Users start this by `make_fx`, which
is in `fx/experimental/proxy_tensor.py`.

The core is `mode` and `capture`.  The rest is `unsupported`, which refuses
data that leaves a tensor without an operator, knows constants, and warns of
marked functions.
"""
