"""Extra: patterns that match by meaning, and why one did not match.

In come two calls, written in different ways: `x + y`, `torch.add(x, y)`.  Out
comes whether they are the same call (`call_forms`).  `explain` shows the try
that came furthest.  `matched_modules` says which module of a match a
replacement means, and `respecting` whether a rewrite keeps what is written.
"""
