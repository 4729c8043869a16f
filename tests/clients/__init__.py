"""Other people's programs, run under torch.fx and under fx, and compared.

`make clients` runs `python -m tests.clients` in an environment of its own,
which has the libraries of requirements.txt.  Each file of `cases/` is an
ordinary program that uses torch.fx; `fx.as_torch` runs it with fx.
"""
