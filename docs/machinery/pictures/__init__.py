"""Drawings for pages: a file each, with `draw() -> Canvas`."""
