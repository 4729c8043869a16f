"""Extra: a trace of a program run on one example, and what it relied on.

`fx.trace(model, *inputs)` runs the model on tensors without data (`trace`),
whose sizes stay free (`sizes`), and records each call of torch (`recorder`).
What Python asked about the inputs becomes guards, which each call of the graph
checks (`guards`, in the code by `guarded_code`).  Nested inputs and objects are
taken apart before, and put together after (`structures`).
"""
