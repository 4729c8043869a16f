"""The course: what each stage asks, how it is checked, and a tour of it all.

Importable in a checkout, and in no wheel.
"""
