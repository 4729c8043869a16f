"""Stage 03, proxies and magic methods: what `fx/proxy.py` records with.

In comes what the user's code does with a proxy: an operator, a call, a line of
source.  Out comes what the recorder has to know of it: which function the
operator is, where in the user's code we are, in which module.
"""
