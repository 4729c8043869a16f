"""Extra: what a call does, what memory it makes, and what may go as dead code.

In comes a node; out comes the answer that dead code elimination needs: the
call is pure, it has an effect, or nothing is known of it.  The answers come
from the schemas of torch's operators where they speak, and from tables where
they do not.
"""
