"""The course: the exercises of each stage, their checks, and a tour of fx.

This package is part of a checkout, but not of the wheel.
"""
