"""Passes: an unchanged program that runs with fx where it says torch.fx.

    python -m fx.as_torch program.py ARGUMENT…

The import statements of the program, and of the libraries that it imports,
are rewritten while they are compiled: `torch.fx` is `fx` for them, and dead
code is removed as torch.fx would.  A module that torch.fx has and fx lacks,
such as `torch.fx.passes.graph_transform_observer`, is lent, as for everybody
(`fx/extra/lending`).  PyTorch itself, `torch.ao` apart, is left
alone: Dynamo, export and Inductor make torch.fx's graphs as ever.  Where such
a graph reaches the program it is converted: by `ExportedProgram.module`, and
before a backend of the program's own gets it.
"""

from __future__ import annotations

import copy
import functools
import inspect
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import FrameType, MethodType, ModuleType
from typing import Final

import torch
from torch import nn
from torch.fx import graph_module as torchs_graph_module
from torch.fx.experimental.proxy_tensor import make_fx as torchs_make_fx
from torch.fx.passes.shape_prop import TensorMetadata

from . import graph_module
from .compat import readers
from .compat.torch_graphs import from_torch
from .experimental import proxy_tensor
from .extra.lending.renaming import HOLDER, RenamingLoader, compile_renamed
from .passes import shape_prop
from .recording import frames
from .torch_private import torch_fx
from .use_def.dead_code import RULE
from .use_def.values import AnyValue

__all__ = ["install", "main"]

_OURS: Final = Path(__file__).parent
# -- graphs that torch makes --------------------------------------------------


def _is_torchs(module: str) -> bool:
    """Whether a module is one of PyTorch that is not rewritten."""
    return module[:6] in ("torch", "torch.") and module[6:9] != "ao."


def _converted(theirs: torch.fx.GraphModule) -> AnyValue:
    """A module of torch.fx as one of fx, with all that it has.

    That is its parameters and children, the unused ones too, and its hooks and
    other attributes.  Children that are graph modules are converted as well.
    If fx has nothing alike, that is a warning, and `theirs` is returned.

    `from_torch` takes only what the graph needs.  But programs rely on the
    rest of an exported module: buffers that no node uses are in `state_dict`, a
    hook checks the sizes of inputs, and `train` is a method of this one
    object, which refuses.  The tables of parameters, children and hooks are
    copied, because Dynamo goes on to use the module that it has made.
    """
    try:
        ours: AnyValue = from_torch(theirs)
    except (TypeError, RuntimeError) as error:
        frames.warn(
            f"a graph that torch has made stays a graph of torch.fx: {error}"
        )
        return theirs
    has: dict[str, AnyValue] = ours.__dict__
    of_modules = vars(nn.Module())
    of_graphs = vars(torch.fx.GraphModule(nn.Module(), torch.fx.Graph()))
    for key, value in vars(theirs).items():
        if key in of_modules:
            has[key] = copy.copy(value)
        elif isinstance(value, MethodType) and value.__self__ is theirs:
            has[key] = MethodType(value.__func__, ours)
        elif key not in of_graphs:
            has[key] = value
    for name, child in theirs.named_children():
        if isinstance(child, torch.fx.GraphModule):
            setattr(ours, name, _converted(child))
    return ours


def _for_program(compiler: AnyValue) -> AnyValue:
    """A compiler of graphs; if it is the program's own, with a conversion.

    It depends on who wrote it, not on who passes it, because Inductor is a
    backend too, and must get what it knows.
    """
    inner = compiler
    while isinstance(inner, functools.partial):
        inner = inner.func
    if compiler is None or _is_torchs(str(getattr(inner, "__module__", ""))):
        return compiler
    try:
        return _converting(compiler)
    except TypeError:  # it has no hash
        return _converting.__wrapped__(compiler)


@functools.lru_cache(maxsize=256)
def _converting(compiler: AnyValue) -> AnyValue:
    """A function that converts a graph of torch.fx, and compiles that.

    The same compiler gives the same function, since Dynamo compiles again if
    the backend is another than last time.  It is not an object with a
    `__call__`, because Dynamo looks for attributes of a backend while it
    compiles, and would begin to compile a `__getattr__` without an end.
    """

    def converting(
        gm: AnyValue, *args: AnyValue, **kwargs: AnyValue
    ) -> AnyValue:
        is_theirs = isinstance(gm, torch.fx.GraphModule)
        given = _converted(gm) if is_theirs else gm
        return compiler(given, *args, **kwargs)

    wrapper: AnyValue = functools.update_wrapper(converting, compiler)
    for name in torch_fx.OF_BACKENDS:
        if hasattr(compiler, name):
            setattr(wrapper, name, getattr(compiler, name))
    return wrapper


def _around_lookup(lookup: AnyValue) -> AnyValue:
    """`lookup_backend`, with a conversion for the program's own.

    Each backend comes through it, whether it was passed or registered.
    """

    @functools.wraps(lookup)
    def look_up(compiler_fn: AnyValue) -> AnyValue:
        return _for_program(lookup(compiler_fn))

    return look_up


def _around_compiling(function: AnyValue) -> AnyValue:
    """A function that is given compilers, with conversions for them."""
    names = [*inspect.signature(function).parameters]

    @functools.wraps(function)
    def compiling(*args: AnyValue, **kwargs: AnyValue) -> AnyValue:
        given = {**dict(zip(names, args, strict=False)), **kwargs}
        for name in torch_fx.COMPILERS:
            if name in given:
                given[name] = _for_program(given[name])
        return function(**given)

    return compiling


def _around_module(method: AnyValue) -> AnyValue:
    """`ExportedProgram.module`, of which PyTorch itself gets its own.

    PyTorch needs it, for example, to decompose an exported program.
    """

    @functools.wraps(method)
    def module(self: AnyValue, *args: AnyValue, **kwargs: AnyValue) -> AnyValue:
        theirs = method(self, *args, **kwargs)
        return _converted(theirs) if _is_programs(sys._getframe(1)) else theirs

    return module


def _with_torchs_options(make_fx: AnyValue) -> AnyValue:
    """`make_fx`, which is torch's where an option is one that fx lacks.

    What torch's has captured is converted.
    """
    takes = inspect.signature(make_fx).parameters

    @functools.wraps(make_fx)
    def making(*args: AnyValue, **options: AnyValue) -> AnyValue:
        known = len(args) <= len(takes) and options.keys() <= takes.keys()
        if known and "symbolic" not in (*args[2:], *options.values()):
            return make_fx(*args, **options)
        theirs = torchs_make_fx(*args, **options)
        return lambda *inputs: _converted(theirs(*inputs))

    return making


def _is_programs(frame: FrameType) -> bool:
    """Whether a frame is not of PyTorch."""
    return not _is_torchs(str(frame.f_globals.get("__name__")))


_DOORS: Final = torch_fx.by_module(
    {torch_fx.LOOKUP: _around_lookup}
    | dict.fromkeys(torch_fx.COMPILING, _around_compiling)
)
"""A module of torch -> its functions that are replaced, and how."""


class _DoorLoader(SourceFileLoader):
    """Loads a module of torch, and replaces some of its functions."""

    def exec_module(self, module: ModuleType) -> None:
        """Run the module's code."""
        super().exec_module(module)
        _open_doors(module.__name__)


def _open_doors(module: str) -> None:
    """Replace functions of a module of torch that has been loaded."""
    for path, around in _DOORS[module].items():
        torch_fx.replace(path, around)


class _Replaceable(ModuleType):
    """fx.graph_module, where what runs the source of graphs may be replaced.

    Programs replace it to see the code of graphs that Dynamo makes, and torch
    looks it up in its own module.
    """

    def __setattr__(self, name: str, value: AnyValue) -> None:
        """Set it in torch.fx's module, too."""
        super().__setattr__(name, value)
        if name == "_exec_with_source":
            setattr(torchs_graph_module, name, value)


class _Finder(MetaPathFinder):
    """Finds modules as Python does, to load them with `_Loader`.

    `torch.ao` is rewritten, because it is a client of torch.fx as a library
    outside of torch would be.  The rest of torch is not, and fx is not; but
    torch's source for a module that fx lacks has a name in `fx`, and is.
    """

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
        if fullname in _DOORS:
            spec.loader = _DoorLoader(fullname, str(file))
        elif not _is_torchs(fullname):
            spec.loader = RenamingLoader(fullname, str(file))
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
    sys.meta_path.insert(0, _Finder())
    for loaded in _DOORS.keys() & sys.modules.keys():
        _open_doors(loaded)
    program: AnyValue = torch.export.ExportedProgram
    program.module = _around_module(program.module)
    proxy_tensor.make_fx = _with_torchs_options(proxy_tensor.make_fx)
    readers.install()
    ours = shape_prop.TensorMetadata
    for name, module in [*sys.modules.items()]:
        if name[:3] == "fx." and vars(module).get(ours.__name__) is ours:
            vars(module)[ours.__name__] = TensorMetadata  # as torch.export does
    replaceable: AnyValue = graph_module
    replaceable.__class__ = _Replaceable
    replaceable.__dict__["_exec_with_source"] = torch_fx.exec_with_source
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
    code = compile_renamed(program.read_bytes(), str(program))
    module = ModuleType("__main__")
    vars(module).update({HOLDER: sys.modules["fx"], "__file__": str(program)})
    sys.modules["__main__"] = module
    sys.argv = list(arguments)
    sys.path[0] = str(program.parent.resolve())
    exec(code, vars(module))


if __name__ == "__main__":
    __name__ = "fx.as_torch"  # so that warnings name a line of the program
    main(sys.argv[1:])
