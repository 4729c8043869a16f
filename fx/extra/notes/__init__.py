"""Extra: notes on the values of nodes, true or absent after a rewrite."""
