"""Extra: notes on the values of nodes, true or absent after a rewrite.

`value_notes` finds the notes that may be untrue.
"""
