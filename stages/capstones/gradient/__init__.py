"""The check of a capstone: reverse-mode differentiation."""
