"""Stage 04, module patching: run a module on proxies, and take its graph.

In comes a root: a module or function of the user's, not changed for tracing.
Out comes a `Graph` of what it did.  Some calls never touch a proxy and still
have to be recorded, such as calls of submodules and reads of parameters.
While a trace runs, the functions behind them are replaced; when the last trace
ends, they are put back.

The core is `patching` (replace, and put back), `wrapping` (leaf functions) and
`tracer` (the class that users hold, and what a trace does where it is asked).
The rest is read when it is needed: what goes in (`inputs`), what a root has
(`state`), who asks whether a trace runs (`questions`), and marks of torch.fx
(`torch_marks`).
"""
