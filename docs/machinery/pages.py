"""The pages of the site: written by hand in docs/, or made from a file of fx.

A core file of a stage has a page that somebody wrote.  Any other file of fx
has one that is made of the file itself, its docstrings beside its code, unless
docs/ has a page for it.  So a change to such a file touches no page.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from docs.machinery.source import FILES, ROOT, page_of
from stages.manifest import stages

DOCS = ROOT / "docs"

PROGRAMS = {
    "experimental/const_fold.py": ("split_const_subgraphs", "fold_constants"),
    "experimental/merge_matmul.py": ("merge_matmul", "merge_products"),
    "experimental/normalize.py": ("NormalizeArgs", "normal_arguments"),
    "experimental/optimization.py": ("remove_dropout", "without_dropout"),
    "passes/conv_bn_fusion.py": ("fold_conv_bn", "fold_batch_norms"),
    "passes/dialect/common/cse_pass.py": ("CSEPass", "equal_calls"),
    "passes/infra/partitioner.py": (
        *("CapabilityBasedPartitioner", "pieces_of_a_back_end"),
    ),
    "passes/canonicalize.py": ("canonicalize_graph", "one_order"),
    "passes/graph_diff.py": ("diff", "what_differs"),
    "passes/pipeline.py": ("cut_in_stages", "cut_for_machines"),
    "passes/split_module.py": ("split_module", "cut_by_function"),
    "passes/split_utils.py": ("split_by_tags", "cut_by_tags"),
}
"""Files with a pass -> its name, and a program of docs/examples/passes.py.

The page of such a file begins with them, and ends with its source.
"""

TAGS = {
    "passes/dialect/common/cse_pass.py": (
        *("common subexpression elimination", "cse"),
    ),
    "experimental/const_fold.py": ("constant folding",),
    "experimental/merge_matmul.py": ("merge matrix products",),
    "experimental/normalize.py": ("normalize arguments",),
    "experimental/optimization.py": ("remove dropout",),
    "passes/conv_bn_fusion.py": (
        *("fold batch norm", "fuse conv bn", "batchnorm", "fold_conv_bn"),
    ),
    "passes/infra/partitioner.py": ("partitioner", "back end"),
    "passes/pipeline.py": (
        *("split over machines", "pipeline parallel", "distributed"),
        "several gpus",
    ),
    "passes/profiling.py": ("profile", "time each node"),
    "passes/split_module.py": ("split a module", "cut a model"),
}
"""What readers search for a made page by, if not by its own words."""


def pages(docs: Path) -> list[str]:
    """Every page: those below docs/, and those that are made."""
    return sorted({*written(docs), *made(docs)})


def written(docs: Path) -> list[str]:
    """The pages below docs/."""
    return sorted(
        file.relative_to(docs).as_posix() for file in docs.rglob("*.md")
    )


def made(docs: Path) -> dict[str, str]:
    """The pages that are made, below docs/ -> their Markdown.

    Another folder than the site's own has what is written in it.
    """
    if docs != DOCS:
        return {}
    return {
        page: _page(name)
        for name in not_core()
        if not (docs / (page := page_of(name))).is_file()
    }


def not_core() -> Iterator[str]:
    """The files of fx that are no core of a stage, from the root."""
    core = {file for stage in stages().values() for file in stage.core}
    for path in sorted((ROOT / "fx").rglob("*.py")):
        below = path.relative_to(ROOT / "fx").as_posix()
        if path.name != "__init__.py" and below not in core:
            yield f"fx/{below}"


def first_line(name: str) -> tuple[str, str]:
    """What a file's docstring begins with: what it belongs to, and its title.

    `Stage 05, codegen: the names of variables.` gives "Stage 05, codegen" and
    "The names of variables".

    Args:
        name: the file, from the root.
    """
    with (ROOT / name).open(encoding="utf-8") as file:
        line = file.readline().strip().strip('"').rstrip(".")
    belongs, _, title = line.partition(": ")
    word = title.partition(" ")[0]
    plain = word.isalpha() and word.islower()
    return belongs, title[:1].upper() + title[1:] if plain else title


def text_of(docs: Path, page: str) -> str:
    """A page's Markdown.

    Raises:
        FileNotFoundError: there is no such page.
    """
    path = docs / page
    if page.startswith(FILES) and not path.is_file():
        return made(docs).get(page) or path.read_text(encoding="utf-8")
    return path.read_text(encoding="utf-8")


def texts(docs: Path) -> dict[str, str]:
    """Every page -> its Markdown."""
    found = made(docs)
    for page in written(docs):
        found[page] = (docs / page).read_text(encoding="utf-8")
    return dict(sorted(found.items()))


def _page(name: str) -> str:
    """The page that is made of a file: its title, and all that it holds."""
    path = name.removeprefix("fx/")
    dotted = name.removesuffix(".py").replace("/", ".")
    title = first_line(name)[1].replace("_", r"\_")
    words = "".join(f"  - {one}\n" for one in TAGS.get(path, ()))
    tags = f"---\ntags:\n{words}---\n\n" if words else ""
    use = _use(name) if path in PROGRAMS else ""
    return f"{tags}# {title}\n\n{use}/// file | {dotted}\n///\n"


def _use(name: str) -> str:
    """A pass: what it does, a program, and the heading of its source."""
    one, program = PROGRAMS[name.removeprefix("fx/")]
    (said,) = (
        ast.get_docstring(node) or ""
        for node in ast.parse((ROOT / name).read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == one
    )
    said = said.partition("\n\n")[0]
    up = "../" * page_of(name).count("/")
    module = name.removesuffix(".py").replace("/", ".")
    link = f"{up}api/passes.md#{module}.{one}"
    return (
        f"`{one}`: {said}\n\n"
        f"/// run | docs.examples.passes.{program}\n\n"
        f"Its arguments, and what it raises, are in [the API]({link}).\n"
        "///\n\n## Source\n\n"
    )
