"""Stage 04, module patching: run a module on proxies, and take its graph.

In comes a root: a module or a function of the user's, not changed for tracing.
Out comes a `Graph` of what it did.  Calls that never touch a proxy still have
to be recorded, such as the call of a submodule or a read of a parameter; while
a trace runs, they are patched, and afterwards everything is as it was.
"""
