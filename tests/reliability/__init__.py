"""A search for silent wrong results, part by part, beside torch.fx.

Each file of this folder that defines `PART` is one part. `make test` runs a
seeded share of each; `make fuzz` runs them at length and writes the table of
`docs/reliability.md`.
"""
