"""Extra: a trace of a program run on one example, and what it relied on.

`fx.trace(model, *inputs)` runs the model (`trace`) on tensors without data,
made of its inputs (`example`), whose sizes stay free (`sizes`).  It records
each call of torch by a chain of tracers, each with one idea: which node has
which value (`values`), leaves (`wholes`), blocks such as no_grad (`blocks`),
and calls and questions (`recorder`).  What Python asked about the inputs
becomes guards, which each call of the graph checks (`guards`, in the code by
`guarded_code`).  Nested inputs and objects are taken apart before, and put
together after (`structures`).
"""
