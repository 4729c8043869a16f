"""Stage 02, use-def: what an operator, a call or a node does.

In comes an operator of torch; out come its facts: its parameters, what it
writes, what it is a view of.  In comes a node; out comes the answer that dead
code elimination needs: the call is pure, it has an effect, or nothing is known
of it.  The answers come from the schemas of torch's operators where they
speak, and from tables where they do not.  You need none of it to understand
use-def edges.
"""
