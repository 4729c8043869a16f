"""Passes: what is done to a graph, or learned from it, by walking it."""
