"""Extra: warnings of what a trace meets and its graph does not keep.

`watching` is told by a trace what happens, and asks the other files.  These
warn of what was fixed because a module was in training, and of hooks
(`fixed`); of gradients and autocast, which are modes (`modes`); of calls that
change torch's state (`switches`); of tensors that are not proxies
(`captured`); of what forward has put in the place of another value (`changes`,
which puts proxies back); of `isinstance` and its like (`asking`); and of what
the root does not show (`roots`).  Two make errors: `limits` of a dtype that is
not known, and `advice` for errors that Python raises.
"""
