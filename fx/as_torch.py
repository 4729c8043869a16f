"""Passes: an unchanged program that runs with fx where it says torch.fx.

    python -m fx.as_torch program.py ARGUMENT…

The import statements of the program, and of the libraries that it imports,
are rewritten while they are compiled: `torch.fx` is `fx` for them, and dead
code is removed as torch.fx would.  A module that torch.fx has and fx lacks,
such as `torch.fx.passes.graph_transform_observer`, is torch's own source,
which then works on fx's classes.  PyTorch itself, `torch.ao` apart, is left
alone: Dynamo, export and Inductor make torch.fx's graphs as ever, and
`fx.from_torch` converts them.
"""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Final

from .memory.effects import RULE
from .usedef.values import Value

__all__ = ["install", "main"]

_OURS: Final = Path(__file__).parent
_HOLDER: Final = "__torch_fx__"
"""A global of every rewritten module: the package fx."""

_PACKAGES: Final = ("", ".passes", ".passes.utils", ".experimental")
"""The packages of torch.fx that fx has, too."""

_SHARED: Final = tuple(
    f"torch.fx.experimental.{name}"
    for name in ("_config", "sym_node", "symbolic_shapes")
)
"""Modules that stay torch's: they are about sizes, not about graphs, and
fake tensors use the same."""


def _dotted(node: ast.expr) -> str:
    """The text of `a.b.c`; of any other expression, "" and what follows."""
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def _ours(module: str) -> str | None:
    """The module of fx that a module of torch.fx stands for."""
    if module in _SHARED or not f"{module}.".startswith("torch.fx."):
        return None
    return "fx" + module.removeprefix("torch.fx")


class _Renamed(ast.NodeTransformer):
    """Makes a module's code say `fx` where it says `torch.fx`."""

    def __init__(self, module: ast.Module) -> None:
        """Know torch by its own name, and by those that an import gives it.

        Without those that the module gives to anything else, too.
        """
        parts = [*ast.walk(module)]
        stored = {
            part.id
            for part in parts
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
        }
        stored |= {part.arg for part in parts if isinstance(part, ast.arg)}
        given = {
            alias.asname or alias.name
            for part in parts
            if isinstance(part, ast.Import)
            for alias in part.names
            if alias.name == "torch"
        }
        self._torch = {"torch"} | (given - stored)

    def visit_Import(self, node: ast.Import) -> list[ast.stmt]:
        """`import torch.fx.node as n`, or without `as`: that binds torch."""
        made: list[ast.stmt] = []
        for alias in node.names:
            ours = _ours(alias.name)
            if ours is None:
                made.append(ast.Import([alias]))
                continue
            if alias.asname is None:
                made.append(ast.Import([ast.alias("torch")]))
            name = alias.asname or "__fx_module__"
            made.append(ast.Import([ast.alias(ours, name)]))
        return [ast.copy_location(one, node) for one in made]

    def visit_ImportFrom(self, node: ast.ImportFrom) -> list[ast.stmt]:
        """`from torch.fx import Node`, or `from torch import fx`."""
        module = "" if node.level else node.module or ""
        home = _ours(module)
        made: list[ast.stmt] = []
        for alias in node.names:
            name = f"{module}.{alias.name}"
            one: ast.stmt = ast.ImportFrom(node.module, [alias], node.level)
            if name == "torch.fx":
                one = ast.Import([ast.alias("fx", alias.asname or "fx")])
            elif home is not None and name not in _SHARED:
                one = ast.ImportFrom(home, [alias], 0)
            made.append(ast.copy_location(one, node))
        return made

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        """`torch.fx`, as in `torch.fx.Node`."""
        head, dot, rest = _dotted(node).partition(".")
        text = f"torch.{rest}" if dot and head in self._torch else ""
        if text in _SHARED:
            return node
        if text == "torch.fx":
            name = ast.Name(_HOLDER, ast.Load())
            return ast.copy_location(name, node)
        node.value = self.visit(node.value)
        return node


def _compile(source: bytes, path: str) -> CodeType:
    """The code of a file, in which `torch.fx` is fx."""
    module = ast.parse(source, path)
    tree = _Renamed(module).visit(module)
    whole = ast.fix_missing_locations(tree)
    # Not with this file's own `from __future__`: libraries read annotations.
    return compile(whole, path, "exec", dont_inherit=True)


class _Loader(SourceFileLoader):
    """Loads a module from its rewritten source."""

    def get_code(self, fullname: str) -> CodeType | None:
        """The module's code; only what was not rewritten is cached."""
        source = self.get_data(self.path)
        if b"fx" not in source:
            return super().get_code(fullname)
        return _compile(source, self.path)

    def exec_module(self, module: ModuleType) -> None:
        """Run the module's code."""
        vars(module)[_HOLDER] = sys.modules["fx"]
        super().exec_module(module)


class _Finder(MetaPathFinder):
    """Finds modules as Python does, to load them with `_Loader`."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        """Where a module is, unless it is not to be rewritten."""
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None or type(spec.loader) is not SourceFileLoader:
            return None
        file = Path(spec.loader.path)
        if file.is_relative_to(_OURS):
            return None
        if fullname.startswith("torch.") and fullname[6:9] != "ao.":
            return None
        spec.loader = _Loader(fullname, str(file))
        return spec


def install() -> None:
    """Let `torch.fx` mean fx in what is imported from now on.

    It cannot be undone.

    Raises:
        RuntimeError: `torch._dynamo` is loaded: much has been imported that
            holds torch.fx's classes and would go on to use them.
    """
    if "torch._dynamo" in sys.modules:
        raise RuntimeError(
            "torch._dynamo is loaded already, and with it modules that hold "
            "torch.fx's classes: call install() before they are imported, or "
            "start the program with `python -m fx.as_torch`"
        )
    for name in _PACKAGES:
        package: Value = importlib.import_module(f"fx{name}")
        theirs: Value = importlib.import_module(f"torch.fx{name}")
        package.__path__.extend(theirs.__path__)
    sys.meta_path.insert(0, _Finder())
    RULE.set("torch")


def main(arguments: Sequence[str]) -> None:
    """Run the program that the command line names, as `__main__`.

    Args:
        arguments: the path of a Python file, and the program's own.
    """
    if not arguments:
        sys.exit("usage: python -m fx.as_torch program.py ARGUMENT…")
    install()
    program = Path(arguments[0])
    code = _compile(program.read_bytes(), str(program))
    module = ModuleType("__main__")
    vars(module).update({_HOLDER: sys.modules["fx"], "__file__": str(program)})
    sys.modules["__main__"] = module
    sys.argv = list(arguments)
    sys.path[0] = str(program.parent.resolve())
    exec(code, vars(module))


if __name__ == "__main__":
    main(sys.argv[1:])
