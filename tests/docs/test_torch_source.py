"""Where torch.fx has what the pages name."""

from __future__ import annotations

import re
import xml.etree.ElementTree as etree

from docs.machinery.pages import DOCS, texts
from docs.machinery.source import torch_root
from docs.machinery.torch_source import NEWEST, of_torch, split, where


def test_the_link_leads_to_the_file_at_the_tag() -> None:
    box = etree.Element("p")
    where(box, "torch.fx.node.Node.prepend")
    assert box[2].get("href", "").endswith(f"/v{NEWEST}.0/torch/fx/node.py")
    assert "".join(box.itertext()) == (
        f"torch.fx {NEWEST} Node.prepend torch/fx/node.py"
    )


def test_a_docstring_names_a_place() -> None:
    said = "torch.fx: passes/shape_prop.py,\n    ShapeProp; more"
    assert of_torch(said) == (
        "torch.fx.passes.shape_prop.ShapeProp",
        "; more",
    )
    assert of_torch("torch.fx has it") is None


def test_torch_has_each_file_that_a_page_names() -> None:
    names = {
        name
        for text in texts(DOCS).values()
        for name in re.findall(r"^/{3,} torch \| (\S+)$", text, re.MULTILINE)
    }
    assert len(names) > 50
    missing = [n for n in names if not (torch_root() / split(n)[0]).is_file()]
    assert not missing
