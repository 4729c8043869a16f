"""Extra: a trace of a program run on one example, and what it relied on.

`fx.trace(model, *inputs)` runs the model on tensors without data (`trace`),
made of the `example`, whose sizes stay free (`sizes`). A mode of torch shows
each call (`calls`), and a chain of tracers records it: `values` knows which
node has which value, `asking` answers for sizes, `wholes` and `leaves` keep
calls whole, `submodules` does so for functions of functions, `blocks` for
`no_grad` and its like, and `recorder` is the last of them. What Python asked
about the inputs becomes `guards`, which each call of the graph checks
(`guarded_code`), also after `fx.save` (`saved`). Nested inputs and objects are
taken apart before, and put together after (`structures`). What cannot be
traced is said in `refusals`.
"""
