"""The three tables of the benchmarks: chains, networks, single operations."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from tests.benchmarks import each, examples, networks, passes
from tests.benchmarks.operations import BENCHMARKS, Benchmark

__all__ = ["BENCHMARKS", "FILES", "TABLES", "by_table"]

FILES: Final = (networks, passes, each, examples)
"""The files that register benchmarks, besides `operations`."""

TABLES: Final = {
    "": "chains: long programs of one kind, and passes on them",
    "networks-": "networks: a call of each: 14 of tests/zoo, 6 of torchvision",
    "each-": "single operations of graphs, nodes and arguments",
    "example-": "traces on an example, and calls with guards",
}
"""How the names in a table begin -> what the table has."""


def by_table(
    benchmarks: Iterable[Benchmark],
) -> dict[str, list[Benchmark]]:
    """The benchmarks of each table that has some, by its title."""
    tables: dict[str, list[Benchmark]] = {}
    for bench in benchmarks:
        kinds = [kind for kind in TABLES if bench.name.startswith(kind)]
        tables.setdefault(TABLES[max(kinds, key=len)], []).append(bench)
    return tables
