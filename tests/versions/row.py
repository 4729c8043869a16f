"""A plugin of pytest: a run writes its row of the table of versions.

    pytest -p tests.versions.row tests/library

It leaves out what the torch that is installed cannot do, and says why.
"""

from __future__ import annotations

import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

import pytest
import torch

from tests.reliability.page import PAGE, write_table

WITHOUT: Final[dict[str, dict[str, str]]] = {
    "2.9": {
        "it cannot register an operator with an effect": """
            effects.py::test_an_operator_of_a_library_is_read_each_time
            effects.py::test_higher_order_operators_with_an_effect
            effects.py::test_functions_of_torch_that_draw_are_kept_either_way
            effects.py::test_an_operator_on_copies_writes_nothing[auto_func
            effects.py::test_an_operator_on_copies_writes_nothing[..._v2]
            effects.py::test_class_and_reason[fxt.logged
            effects.py::test_dead_code_elimination_goes_by_the_class[fxt.logged
        """,
        "it lacks the parts of torch.fx that they compare with": """
            small_passes.py::test_nodes_are_sorted_and_go_no_further_than_they
            small_passes.py::test_a_circle_is_told_and_nothing_is_moved
            source_matcher.py::test_a_class_by_itself_by_its_name_and_by_its
            codegen.py::test_text_is_that_of_torch
            codegen.py::test_line_map_is_that_of_torch
            readable_code.py::test_comments_and_shapes_as_torch_writes_them
        """,
        "it names and declares its operators in another way": """
            effects.py::test_all_operators_beside_torch_fx
            effects.py::test_every_method_of_tensors_is_judged
            operator_schemas.py::test_most_calls_can_be_normalized
            operator_schemas.py::test_what_cannot_be_normalized_can_be_an_error
        """,
        "it enters one context manager from inside of another": """
            traced_state.py::test_a_switch_is_warned_of_where_the_user_calls_it
        """,
        "its processes send each other messages of a wrong size": """
            pipeline.py::test_processes_train_as_one_does
            pipeline.py::test_the_demo
        """,
        "its Dynamo compiles nothing after the other tests": """
            pytree_codegen.py::test_dynamo_traces_into_nested_inputs
            torch_graphs.py::test_a_backend_trains_a_resnet
        """,
    }
}
"""torch -> why tests are left out beside it -> how their names begin.

Tests marked `newest`, which compare with what the newest torch.fx writes, are
left out by themselves beside any other torch.
"""

HEAD: Final = "| Python | torch | tests passed | left out | failed | day |"


def left_out(version: str) -> dict[str, tuple[str, ...]]:
    """Why tests are left out beside a torch, and how their ids begin."""
    groups = WITHOUT.get(".".join(version.split(".")[:2]), {})
    return {
        why: tuple(f"tests/library/test_{name}" for name in names.split())
        for why, names in groups.items()
    }


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what this torch cannot do."""
    for why, names in left_out(torch.__version__).items():
        for item in items:
            if item.nodeid.startswith(names):
                item.add_marker(pytest.mark.skip(reason=why))


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Write the row, in the process that has the results of all others."""
    if hasattr(config, "workerinput"):
        return
    stats = terminalreporter.stats
    found = {name: stats.get(name, []) for name in ("passed", "skipped")}
    wrong = [*stats.get("failed", []), *stats.get("error", [])]
    row = (
        platform.python_version(),
        torch.__version__,
        *(f"{len(reports):,}" for reports in found.values()),
        "; ".join(dict.fromkeys(one.nodeid for one in wrong)) or "none",
        datetime.now(tz=UTC).date().isoformat(),
    )
    write_table("matrix", with_row(PAGE.read_text("utf-8"), row))


def with_row(page: str, row: Sequence[str]) -> list[str]:
    """The lines of a page's table, with a row in place of the older one.

    Rows are the same if they have the same minor versions.
    """
    table = page.partition("<!-- matrix: begin -->")[2]
    new = f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |"
    lines = [line for line in table.splitlines() if line.startswith("| 3.")]
    rows = {_versions(line): line for line in (*lines, new)}
    return [
        *(HEAD, "|---|---|--:|--:|---|---|"),
        *(rows[key] for key in sorted(rows)),
        "",
        *(
            f"- Left out beside torch {version}, as {why}: {len(names)}."
            for version in WITHOUT
            for why, names in left_out(version).items()
        ),
    ]


def _versions(line: str) -> tuple[tuple[int, ...], ...]:
    """The minor versions of torch and Python in a line of the table."""
    python, version = line.split("|")[1:3]
    return tuple(tuple(map(int, v.split(".")[:2])) for v in (version, python))
