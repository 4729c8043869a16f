"""Stage 03, proxies and magic methods: what `fx/proxy.py` records with.

`fx/proxy.py` is the core: there `x + y` becomes a node.  But a proxy has to
find out more than Python tells it.  In comes an operator, or the point in the
user's code at which a proxy is used.  Out comes which function the operator is
(`operators`), which line of the user's code runs (`frames`), what is noted
besides (`notes`), and what is said if nothing can be recorded (`errors`).
"""
