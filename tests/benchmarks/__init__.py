"""How fast fx is beside torch.fx: `python -m tests.benchmarks`.

`programs` are what is measured on, `operations` what is measured and the goal
of each, `measure` how, `report` what is printed. To add an operation, write
one more function in `operations`. `recorded` holds today's ratios against
those of an earlier commit, in recorded.toml; `start` measures the import.
"""
