"""Passes for every kind of operators."""
