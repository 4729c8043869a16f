"""The newest torch, each older one, and the package as it is delivered.

`noxfile.py` makes the environments and says what runs in each.  Two plugins of
pytest go with it: `marked` counts the tests that need the newest torch, and
`row` writes the table of versions.
"""
