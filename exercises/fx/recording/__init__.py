"""Stage 03, proxies and magic methods: what `fx/proxy.py` records with.

A proxy has to find out more than Python tells it.  In comes an operator, or the
point in the user's code at which a proxy is used.  Out comes which function
the operator is, which line of the user's code runs, and in which module.
"""
