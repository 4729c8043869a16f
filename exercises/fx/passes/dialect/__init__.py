"""Passes by the kind of operators that they are for."""
