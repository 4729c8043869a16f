"""Extra: graphs and modules that are kept: copied, pickled, saved to files.

A stage copies a graph node by node, and leaves the rest to whoever registers
at its seams. What is registered here comes back as it was: with the notes on
its nodes, without recursion, and without running anything while it is read.
"""
