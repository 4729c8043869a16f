"""Extra: what a trace meets and a graph does not keep, with a warning of it.

`watching` is told by a trace what happens, and asks the other files.
"""
