"""Stage 02, use-def: the private names of torch that fx reads, and why.

PyTorch promises nothing about a name with an underscore, such as
`torch._ops.OpOverload`, and some sixty of them do work that no public name
does.  They are looked up in this room and nowhere else, in a file for each
need, and `names.find` says for each what it is for and since when torch has
it.  So `import fx` works beside a torch that has lost one of them, and only
what needs the name is an error, when it is used.

Each file begins with the stage that needs it: `overloads`, `operators`,
`fake_tensors` and `pytree` for stage 02 on, `tracing` for 04, `compiling` for
05, `dispatch` for 08; `modules`, `watching`, `symbolic_sizes`, `remembered`
and `torch_fx` for what no stage needs.
"""
