"""The newest torch, each older one, and the package as it is delivered.

`newest` tests beside the newest torch, `marked` counts the tests which need it,
`package` builds the wheel, and tests/reliability/matrix.py tries every minor
version.  They need Python and uv alone, because they make the environments in
which everything else runs.
"""
