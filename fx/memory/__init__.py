"""Stage 02, use-def: what a call does besides computing its value.

In comes a node.  Out comes the answer that dead code elimination needs: the
call is pure, it has an effect, or nothing is known of it.  The answer comes
from the schemas of torch's operators where they speak, and from tables where
they do not.  You need none of it to understand use-def edges.
"""
