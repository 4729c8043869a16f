"""Extra: what a call does, what memory it makes, and what may go as dead code.

In comes a node; out comes the answer that dead code elimination needs: the
call is pure, it has an effect, or nothing is known of it.  Begin at `effects`,
which is `fx.effects`.  It asks `function_effects` about functions and methods,
such as `x.add_(1)`, and `modules` about modules.  The answers come from the
schemas of torch's operators where they speak, and from `effect_tables` where
they do not.
"""
