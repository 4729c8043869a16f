"""Stage 04, module patching: run a module on proxies, and take its graph.

In comes a root: a module or function of the user's, not changed for tracing.
Out comes a `Graph` of what it did.  Some calls never touch a proxy and still
have to be recorded, such as calls of submodules and reads of parameters.
While a trace runs, the functions behind them are replaced; when the last trace
ends, they are put back.
"""
