"""How a library's files are rewritten for `make clients`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.clients import page, runner
from tests.clients.apart import APART, rewritten


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import torch.fx\n", "import fx\nimport torch, fx\n"),
        (
            "import torch.fx.node as n\nn.Node\n",
            "import fx\nimport fx.node as n\nn.Node\n",
        ),
        (
            '"""Doc."""\nfrom __future__ import annotations\n'
            "import torch\ngm: torch.fx.GraphModule\n",
            '"""Doc."""\nfrom __future__ import annotations\n'
            "import fx\nimport torch\ngm: fx.GraphModule\n",
        ),
        (
            "def f():\n    from torch import (\n        Tensor,\n        fx,\n"
            "        nn,\n    )\n",
            "import fx\ndef f():\n    import fx; from torch import (Tensor, "
            "nn)\n",
        ),
        (
            "from torch import fx as g, nn\n",
            "import fx\nimport fx as g; from torch import (nn)\n",
        ),
        ("import my.torch.fx as m\n", "import my.torch.fx as m\n"),
        ('"""About torch.fx."""\n', '"""About fx."""\n'),
    ],
)
def test_a_file_that_says_fx(source: str, expected: str) -> None:
    assert rewritten(source) == expected
    compile(expected, "edited", "exec")


def test_what_was_not_run_here_stays_in_the_table(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(runner, "OUTPUT", tmp_path)
    text = page.PAGE.read_text(encoding="utf-8")
    made = "\n".join(page.apart())
    assert made in text
    assert made.count("\n| ") == len(APART) + 1
