"""Extra: source in which `torch.fx` means fx.

The source of a module is changed while Python compiles it, and its file stays
as it is. `fx.as_torch` does this to programs and their libraries, and
`lending` to files of torch.fx.
"""

from __future__ import annotations

import ast
import sys
from importlib.machinery import SourceFileLoader
from types import CodeType, ModuleType
from typing import Final

__all__ = ["HOLDER", "LentLoader", "RenamingLoader", "compile_renamed"]

HOLDER: Final = "__torch_fx__"
"""A global of every module that was changed: the package fx."""


def _dotted(node: ast.expr) -> str:
    """The text of `a.b.c`; of any other expression, "" and what follows."""
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def _ours(module: str) -> str | None:
    """The module of fx that a module of torch.fx stands for."""
    if not f"{module}.".startswith("torch.fx."):
        return None
    return module.removeprefix("torch.")


class _Renamed(ast.NodeTransformer):
    """Makes a module's code say `fx` where it says `torch.fx`.

    Only names are looked at: a library that says `other.torch.fx` keeps
    torch.fx.
    """

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
        imports: list[ast.stmt] = []
        for alias in node.names:
            ours = _ours(alias.name)
            if ours is None:
                imports.append(ast.Import([alias]))
                continue
            if alias.asname is None:
                imports.append(ast.Import([ast.alias("torch")]))
            name = alias.asname or "__fx_module__"
            imports.append(ast.Import([ast.alias(ours, name)]))
        return [ast.copy_location(new, node) for new in imports]

    def visit_ImportFrom(self, node: ast.ImportFrom) -> list[ast.stmt]:
        """`from torch.fx import Node`, or `from torch import fx`."""
        module = "" if node.level else node.module or ""
        home = _ours(module)
        imports: list[ast.stmt] = []
        for alias in node.names:
            new: ast.stmt = ast.ImportFrom(node.module, [alias], node.level)
            if f"{module}.{alias.name}" == "torch.fx":
                new = ast.Import([ast.alias("fx", alias.asname or "fx")])
            elif home is not None:
                new = ast.ImportFrom(home, [alias], 0)
            imports.append(ast.copy_location(new, node))
        return imports

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        """`torch.fx`, as in `torch.fx.Node`.

        It becomes a global of its own, because the program may have a variable
        that is named `fx`.
        """
        head, _, rest = _dotted(node).partition(".")
        if rest == "fx" and head in self._torch:
            return ast.copy_location(ast.Name(HOLDER, ast.Load()), node)
        node.value = self.visit(node.value)
        return node


def compile_renamed(source: bytes, path: str) -> CodeType:
    """The code of a file, in which `torch.fx` is fx.

    Whoever runs it sets the global `HOLDER` to the package fx before.

    Args:
        source: what is in the file.
        path: its name, for tracebacks.

    Raises:
        SyntaxError: the source is not Python.
    """
    module = ast.parse(source, path)
    tree = _Renamed(module).visit(module)
    whole = ast.fix_missing_locations(tree)
    # Not with this file's own `from __future__`: annotations would become
    # text, and TorchScript could not read the classes of e3nn.
    return compile(whole, path, "exec", dont_inherit=True)


class RenamingLoader(SourceFileLoader):
    """Loads a module from its file, with `torch.fx` meaning fx."""

    def get_code(self, fullname: str) -> CodeType | None:
        """The module's code; only what was not changed is cached.

        Python's cache has the code of the source as it stands, and the next
        program, without `fx.as_torch`, will take its code from there.
        """
        source = self.get_data(self.path)
        if b"fx" not in source:
            return super().get_code(fullname)
        return compile_renamed(source, self.path)

    def exec_module(self, module: ModuleType) -> None:
        """Run the module's code."""
        vars(module)[HOLDER] = sys.modules["fx"]
        super().exec_module(module)


class LentLoader(RenamingLoader):
    """Loads a file of torch.fx as a module of fx."""

    def exec_module(self, module: ModuleType) -> None:
        """Run the module's code; an error says whose it is."""
        try:
            super().exec_module(module)
        except Exception as error:
            error.add_note(
                f"{self.name} is not a file of fx: it was being loaded from "
                f"torch's {self.path}, in which `torch.fx` means fx"
            )
            raise
