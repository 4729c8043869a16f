"""What users of torch.fx type into the search, and where they are answered.

The queries and their pages were written down before anything was changed to
make them find more: from the navigation, the headings and the table of terms,
by what each page explains, not by what the search returned.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Query:
    """Words, and the pages of which one should be the first result.

    Attributes:
        words: what is typed.
        pages: the pages that explain it, as addresses below the site's root.
    """

    words: str
    pages: tuple[str, ...]


def _query(words: str, *pages: str) -> Query:
    """A row of the table."""
    return Query(words, pages)


QUERIES: Final = (
    # Tasks
    _query("write a pass", "library/"),
    _query("visualize graph", "files/show/page/", "library/"),
    _query("migrate", "coming-from-torch-fx/"),
    _query("split over machines", "files/passes/pipeline/"),
    _query("save", "library/"),
    _query("replace a layer", "tasks/", "library/"),
    _query("insert a module", "tasks/"),
    _query("intermediate features", "tasks/"),
    _query("forward hooks", "tasks/"),
    _query("quantize", "tasks/"),
    _query("fold batch norm", "files/passes/conv_bn_fusion/"),
    _query("fuse conv bn", "files/passes/conv_bn_fusion/"),
    _query("wrap a function", "library/", "stages/04/", "tasks/"),
    _query("install", ""),
    _query("profile", "library/", "files/passes/profiling/"),
    _query("shape propagation", "files/passes/shape_prop/", "library/"),
    _query("dynamic shapes", "own-models/"),
    _query("trace my own model", "own-models/"),
    _query("hugging face", "clients/", "own-models/"),
    _query("torch.compile backend", "coming-from-torch-fx/"),
    _query("mypy", "library/"),
    # What went wrong
    _query("data dependent control flow", "library/", "why/"),
    _query("TraceError", "library/", "api/trace/"),
    _query("trace fails", "library/"),
    _query("random numbers frozen", "why/"),
    # Terms
    _query("leaf module", "glossary/", "library/", "stages/04/"),
    _query("use-def", "glossary/", "stages/02/"),
    _query("proxy", "glossary/", "stages/03/"),
    _query("interpreter", "glossary/", "stages/06/"),
    _query("opcode", "glossary/"),
    _query("dead code", "stages/02/", "glossary/"),
    _query("pattern", "library/", "stages/07/", "glossary/"),
    _query("in-place", "stages/08/", "library/"),
    _query("ATen operators", "glossary/", "library/", "stages/08/"),
    # What there is, and beside what
    _query("speed", "speed/"),
    _query("torchscript", "why/"),
    _query("jax", "why/"),
    _query(
        "common subexpression elimination",
        "files/passes/dialect/common/cse_pass/",
    ),
    _query("constant folding", "files/experimental/const_fold/"),
    _query("create_node", "api/graph/", "stages/02/"),
)

NEWCOMERS: Final = (
    _query("stuck", "course/"),
    _query("hint", "course/"),
    _query("how long", "course/"),
    _query("first exercise", "course/"),
    _query("setup", ""),
    _query("differences", "differences/"),
    _query("replace", "library/", "tasks/"),
    _query("replace Conv2d", "tasks/"),
    _query("Proxy object cannot be iterated", "library/"),
    _query("cannot be used as inputs to control flow", "library/"),
)
"""What a newcomer typed and did not find, with the pages that have it."""

LATER: Final = (
    # Asked by readers of the site, and led elsewhere
    _query("get_attr", "glossary/", "stages/05/"),
    _query("call_function vs call_method", "glossary/"),
    _query("what is a proxy", "glossary/", "stages/03/"),
    _query("interpreter shapes", "files/passes/shape_prop/", "stages/06/"),
    _query("split model pipeline", "tasks/", "files/passes/pipeline/"),
    _query("license", ""),
    _query("trace llama", "own-models/"),
    _query("windows", ""),
    _query("remove dropout", "tasks/", "files/experimental/optimization/"),
    _query("replace_pattern not matching", "tasks/", "library/"),
    # Thirty more, written down before they were tried
    _query("int8 weights", "capstones/int8/", "tasks/", "own-models/"),
    _query("count flops", "tasks/"),
    _query("python version", "", "reliability/"),
    _query("pytorch version", "", "reliability/"),
    _query("graph break", "why/", "coming-from-torch-fx/"),
    _query("torch.export", "why/", "own-models/", "coming-from-torch-fx/"),
    _query("dynamo", "why/"),
    _query("make_fx", "stages/08/", "library/", "why/", "api/trace/"),
    _query("memory planning", "capstones/memory/"),
    _query("aliasing", "views/", "stages/08/", "glossary/"),
    _query("backward pass", "capstones/gradient/"),
    _query("batch size of one", "own-models/"),
    _query("GuardError", "own-models/", "api/trace/"),
    _query("is_leaf_module", "stages/04/", "api/trace/", "library/"),
    _query("concrete_args", "library/", "api/trace/"),
    _query("replace_all_uses_with", "stages/02/", "api/graph/"),
    _query("linked list", "stages/01/"),
    _query("order of nodes", "stages/01/", "tasks/"),
    _query("magic methods", "stages/03/", "glossary/"),
    _query("generated code", "stages/05/", "glossary/"),
    _query("recompile", "stages/05/", "library/", "api/module/"),
    _query("run node by node", "stages/06/", "library/"),
    _query("subgraph rewriter", "stages/07/", "api/rewrite/"),
    _query("unused parameters", "tasks/", "library/"),
    _query("auxiliary head", "tasks/"),
    _query("dict input", "tasks/"),
    _query("teach", "classes/"),
    _query("grade", "classes/", "course/"),
    _query("exercises", "course/"),
    _query("playground", "play/"),
    _query("benchmark", "speed/"),
)
"""Ten that readers missed, and thirty-one that nobody had tried."""
