"""The check of a capstone: int8 weights."""
