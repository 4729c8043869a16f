"""How a library's files are rewritten for `make clients`."""

from __future__ import annotations

import pytest

from tests.clients.apart import rewritten


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
