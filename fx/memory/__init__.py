"""Passes: where fx 0.2 had what is in `fx/extra/effects` now."""
