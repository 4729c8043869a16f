"""Extra: a trace of a program run on one example, and what it relied on.

`fx.trace(model, *inputs)` runs the model on tensors without data (`trace`),
made of the `example`. A mode of torch shows each call (`calls`), and one tracer
records it (`recorder`), some of them by special `handlers`. Values that follow
from constants are `known`. What Python asked meanwhile, and computed of sizes
(`questions`), becomes `guards`, a module that the first node calls. Inputs are
taken apart and put together (`structures`), also by the graph's own code
(`guarded_code`). The user says which sizes may vary (`dynamic`). Then the graph
is tried on the example (`trial`). What cannot be traced is said in `errors`.
"""
