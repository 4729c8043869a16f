"""Extra: writing a module out as a Python package.

    folder/__init__.py            from .module import FxModule
    folder/module.py              the class, its forward being generated code
    folder/state_dict.pt          parameters and buffers
    folder/<child>.pt             a child module that has no Python form
    folder/module.globals.pt      objects that cannot be imported
    folder/module.attributes.pt   attributes that are not tensors

An object of the code that has an importable name is imported, so that people
can read and edit the package, and it stays right when the library is updated;
any other object is pickled.  The folder may be moved.
"""

from __future__ import annotations

import ast
import builtins
import os
import re
import sys
import textwrap
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType, NoneType
from typing import Final

import torch
from torch import nn

from ...codegen.attributes import SPECS, paths_in
from ...codegen.names import is_attribute_name
from ...codegen.source import CompiledForward
from ...graph_module import GraphModule
from ...recording import frames
from ...torch_private.modules import beside_forward
from ...torch_private.pytree import pytree
from ...tracing.wrapping import original_of
from ...use_def.protocols import PythonCode
from ...use_def.values import AnyValue
from .values import bare

_GLOBALS: Final = "module.globals.pt"
_BESIDE: Final = f"__file__.removesuffix('module.py') + {_GLOBALS!r}"
_ATTRIBUTES: Final = "module.attributes.pt"

_WRITTEN: Final = (
    nn.Linear,
    nn.Conv1d,
    nn.Conv2d,
    nn.Conv3d,
    nn.BatchNorm1d,
    nn.BatchNorm2d,
    nn.BatchNorm3d,
)
"""Modules whose repr is a call that may make such a module again; torch.fx has
the same list."""

_file_name = re.compile(r"\w+")
_word = re.compile(r"[^\W\d]\w*")

_private = re.compile(r"\b__\w*(?<!__)\b")
"""A name that Python changes inside a class."""


def to_folder(
    self: GraphModule,
    folder: str | os.PathLike[str],
    module_name: str = "FxModule",
) -> None:
    """Write a graph module to a folder, as a Python package to edit.

    After that, `from <folder> import <module_name>` works, in this process or
    another, wherever the folder is moved; `<module_name>()` is a plain
    nn.Module.

    Args:
        self: the module.
        folder: where to write to; made if need be, but not its parents.
        module_name: the name of the class.

    Raises:
        ValueError: `module_name` cannot be the name of a class.
        RuntimeError: the code uses an object that can be neither imported nor
            pickled. Nothing is written then.

    Warns which child modules could not be written as Python and are pickled
    beside it, and of hooks of the module and a forward set on it, which are
    not written.

    torch.fx: graph_module.py, GraphModule.to_folder; it imports only the
    prefilled globals, so a folder whose code names `math_sqrt`, or has a line
    that wraps, cannot be used. Paths are those at the time of saving: a folder
    that was moved looks for its weights in the old place.
    """
    compiled = self._wrapped_call.compiled
    path, code = Path(folder), compiled.code
    named = _named_in(code)
    _check_class_name(module_name, named)
    imports = {name: _import(name, value) for name, value in named.items()}
    unnamed = {name: named[name] for name in named if not imports[name]}
    loose = {**_attributes(self, compiled), **_unsaved_buffers(self)}
    kept = {name: _without_spec(value) for name, value in loose.items()}
    _check_picklable(unnamed, "the code uses")
    _check_picklable(kept, "the module has the attribute")
    _check_picklable(_unwritable(self), "the module has the child")

    path.mkdir(exist_ok=True)
    _save(unnamed, path / _GLOBALS)
    _save(kept, path / _ATTRIBUTES)
    torch.save(_state(self), path / "state_dict.pt")
    pickled = _save_children(self, path)
    body = _class(self, code, pickled, loose, module_name)
    text = "\n".join([*_header(imports), *body])
    (path / "module.py").write_text(f"{text}\n", encoding="utf-8")
    (path / "__init__.py").write_text(
        f"from .module import {module_name} as {module_name}\n",
        encoding="utf-8",
    )
    if lost := beside_forward(self):
        frames.warn(
            f"{type(self).__name__} has {' and '.join(lost)}, which "
            f"{module_name} does not get"
        )
    if pickled:
        warnings.warn(
            "Was not able to save the following children modules as reprs -"
            f"saved as pickled files instead: {list(pickled)}",
            stacklevel=2,
        )


def _named_in(code: PythonCode) -> dict[str, AnyValue]:
    """The globals that the code names and Python would not know.

    A word in a string counts as well: one import too many does no harm.
    """
    words = set(_word.findall(code.src)) - {"torch"}
    return {
        name: value
        for name, value in code.globals.items()
        if name in words and vars(builtins).get(name, words) is not value
    }


def _attributes(
    module: nn.Module, compiled: CompiledForward
) -> dict[str, AnyValue]:
    """The plain attributes that the code reads, directly or inside of them."""
    first = {path.partition(".")[0] for path in paths_in(compiled.nodes)}
    own = vars(module)
    return {name: own[name] for name in own if name in first | SPECS}


def _check_class_name(name: str, taken: Mapping[str, AnyValue]) -> None:
    """Raise unless the class can be called `name`."""
    is_taken = name in taken or name == "torch" or hasattr(builtins, name)
    if is_taken or not is_attribute_name(name):
        raise ValueError(
            f"module_name {name!r} cannot be the name of the class: it must "
            "be an identifier that neither Python nor the code uses"
        )


# -- objects: by name or pickled -------------------------------------------


def _import(name: str, value: AnyValue) -> str:
    """The statement that binds `name` to `value`; "" if it has no name."""
    if isinstance(value, ModuleType):
        imported = sys.modules.get(value.__name__) is value
        return _from("", value.__name__, name) if imported else ""
    if type(value) is str:  # an annotation in quotes
        return f"{name} = {value!r}"
    module, attribute = _home(value)
    bound = getattr(sys.modules.get(module), attribute, None)
    # Another thread's trace may have patched the name.
    same = original_of(bound) is value and is_attribute_name(attribute)
    return _from(module, attribute, name) if same else ""


def _home(value: AnyValue) -> tuple[str, str]:
    """The module that an object says it is in, and its name there."""
    if isinstance(value, float):
        return "math", repr(value)  # inf and nan
    if value is NoneType:
        return "types", "NoneType"  # says builtins, where it is not
    module = getattr(value, "__module__", None)
    name = getattr(value, "__name__", None)
    named = isinstance(module, str) and isinstance(name, str)
    return (str(module), str(name)) if named else ("", "")


def _from(module: str, attribute: str, name: str) -> str:
    """An import statement."""
    head = f"from {module} import" if module else "import"
    return f"{head} {attribute}" + (f" as {name}" if name != attribute else "")


def _check_picklable(values: Mapping[str, AnyValue], what: str) -> None:
    """Raise if one of the values cannot be pickled; say which."""
    for name, value in values.items():
        try:
            with open(os.devnull, "wb") as nowhere:
                torch.save(value, nowhere)
        except Exception as error:
            raise RuntimeError(
                f"{what} {name} = {value!r}, which can be neither imported "
                f"nor pickled ({error}): define it at the top level of a "
                "Python module, and trace or build the graph with that"
            ) from error


def _without_spec(value: AnyValue) -> AnyValue:
    """The value; for the spec of a tree, such a tree.

    torch warns when a pickled spec is loaded.
    """
    if isinstance(value, pytree.TreeSpec):
        return pytree.tree_unflatten([0] * value.num_leaves, value)
    return value


def _save(values: Mapping[str, AnyValue], file: Path) -> None:
    """Pickle the values, if there are any."""
    if values:
        torch.save(dict(values), file)


def _state(module: nn.Module) -> dict[str, AnyValue]:
    """The state dict; in it, tied parameters are one parameter."""
    state: dict[str, AnyValue] = module.state_dict(keep_vars=True)
    once: dict[torch.Tensor, torch.Tensor] = {}
    for name, value in state.items():
        if isinstance(value, torch.Tensor):
            state[name] = once.setdefault(value, bare(value))
    return state


def _unsaved_buffers(module: nn.Module) -> dict[str, torch.Tensor]:
    """The buffers that are not part of the state dict."""
    names = module._non_persistent_buffers_set
    buffers = module._buffers.items()
    return {k: v for k, v in buffers if k in names and v is not None}


def _unwritable(module: nn.Module) -> dict[str, nn.Module]:
    """The children that have no Python form, by name."""
    children = module.named_children()
    return {name: m for name, m in children if not _has_python_form(m)}


def _save_children(module: nn.Module, folder: Path) -> dict[str, str]:
    """Pickle the children that have no Python form: name -> file."""
    files: dict[str, str] = {}
    for index, (name, child) in enumerate(_unwritable(module).items()):
        # No child has a name with a dot, so this is not another one's file.
        stem = name if _file_name.fullmatch(name) else f"child.{index}"
        files[name] = f"{stem}.pt"
        torch.save(child, folder / files[name])
    return files


def _has_python_form(child: nn.Module) -> bool:
    """Whether evaluating its repr would make the module again.

    That is tried, without memory for weights: a repr says neither `"same"` in
    quotes nor what was changed since the module was made, such as hooks or a
    `forward` of its own.  `literal_eval` reads the arguments, so no text of a
    child is run.
    """
    if type(child) not in _WRITTEN:
        return False
    try:
        call: AnyValue = ast.parse(repr(child), mode="eval").body
        args = map(ast.literal_eval, call.args)
        named = {k.arg: ast.literal_eval(k.value) for k in call.keywords}
        again = type(child)(*args, **named, device="meta")
        return bool(_but_values(again) == _but_values(child))
    except Exception:
        return False


def _but_values(module: nn.Module) -> dict[str, AnyValue]:
    """The attributes of a module, with shapes in place of tensors."""
    own = {**vars(module), "training": None}
    for name in ("_parameters", "_buffers"):
        tensors = own[name].items()
        own[name] = {k: None if v is None else v.shape for k, v in tensors}
    return own


# -- the text of module.py -------------------------------------------------


def _header(imports: Mapping[str, str]) -> Iterator[str]:
    """The imports, sorted, and the objects that have none."""
    statements = {"import torch", *filter(None, imports.values())}
    yield from sorted(statements, key=lambda line: (line[0] == "f", line))
    unnamed = [name for name, statement in imports.items() if not statement]
    if unnamed:
        yield ""
        yield f"# {', '.join(unnamed)}"
        yield f"globals().update(torch.load({_BESIDE}, weights_only=False))"


def _class(
    module: nn.Module,
    code: PythonCode,
    pickled: Mapping[str, str],
    loose: Mapping[str, AnyValue],
    class_name: str,
) -> Iterator[str]:
    """The wrap statements of the code, then the class around it.

    `wrap` must be called at the top level of a module.  Python would rewrite a
    name such as `__helper` inside the class, so a `forward` that has one is
    defined outside of it.
    """
    lines = code.src.rstrip().split("\n")
    start = code._prologue_start - 1
    forward = "\n".join(lines[start:])
    wraps = [line for line in lines[:start] if line]
    yield from ["", *wraps, "\n"] if wraps else ["\n"]
    if mangled := _private.search(forward) is not None:
        yield f"{forward}\n\n"
    yield f"class {class_name}(torch.nn.Module):"
    yield "    def __init__(self):"
    statements = list(_init(module, pickled, loose))
    if any("here / " in statement for statement in statements):
        yield "        from pathlib import Path"
        yield ""
        statements.insert(0, "here = Path(__file__).parent")
    yield "        super().__init__()"
    yield from (f"        {statement}" for statement in statements)
    yield ""
    yield (
        "    forward = forward" if mangled else textwrap.indent(forward, "    ")
    )


def _init(
    module: nn.Module, pickled: Mapping[str, str], loose: Mapping[str, AnyValue]
) -> Iterator[str]:
    """The body of `__init__`, which makes the module again.

    The state dict comes last, as it needs all modules and tensors; with
    `assign=True` its tensors take the places of the empty ones.
    """
    yield from _children(module, pickled)
    yield from _own_state(module)
    if loose:
        yield f"loaded = torch.load(here / {_ATTRIBUTES!r}, weights_only=False)"
    for name, value in loose.items():
        text = f"loaded[{name!r}]"
        if name in module._buffers:
            yield f"self.register_buffer({name!r}, {text}, persistent=False)"
        elif isinstance(value, pytree.TreeSpec):
            yield _assign(name, f"torch.utils._pytree.tree_structure({text})")
        else:
            yield _assign(name, text)
    if module.state_dict():
        state = "torch.load(here / 'state_dict.pt', weights_only=False)"
        yield f"self.load_state_dict({state}, assign=True)"
    yield from _flags(module, pickled)


def _assign(name: str, value: str) -> str:
    """A statement that sets an attribute."""
    if is_attribute_name(name) and not _private.match(name):
        return f"self.{name} = {value}"
    return f"setattr(self, {name!r}, {value})"


def _children(module: nn.Module, pickled: Mapping[str, str]) -> Iterator[str]:
    """The statements that make the child modules.

    A module under two names stays one: the second is a look-up of the first.
    """
    first = {id(None): "None"}
    for name, child in module._modules.items():
        comment = ""
        if id(child) in first:
            value = first[id(child)]
        elif name in pickled:
            value = f"torch.load(here / {pickled[name]!r}, weights_only=False)"
            comment = f"  # {_in_a_line(child)}"
        else:
            value = f"torch.nn.{child!r}"
        first.setdefault(id(child), f"getattr(self, {name!r})")
        yield _assign(name, value) + comment


def _in_a_line(child: nn.Module | None) -> str:
    """A child's repr, cut so that it fits into a comment."""
    text = textwrap.shorten(repr(child), 60, placeholder=" …")
    return "".join(c for c in text if c.isprintable())


def _own_state(module: nn.Module) -> Iterator[str]:
    """The statements that make the module's own, still empty, tensors."""
    for name, parameter in module._parameters.items():
        if parameter is None:
            yield f"self.register_parameter({name!r}, None)"
            continue
        flag = f"requires_grad={parameter.requires_grad}"
        value = f"torch.nn.Parameter({_empty(parameter)}, {flag})"
        yield _assign(name, value)
    for name, buffer in module._buffers.items():
        if buffer is None:
            yield f"self.register_buffer({name!r}, None)"
        elif name not in module._non_persistent_buffers_set:
            yield f"self.register_buffer({name!r}, {_empty(buffer)})"


def _empty(tensor: torch.Tensor) -> str:
    """An expression for a tensor of the same shape and dtype."""
    return f"torch.empty({list(tensor.shape)}, dtype={tensor.dtype})"


def _flags(module: nn.Module, pickled: Mapping[str, str]) -> Iterator[str]:
    """The statements for flags, which are in no repr or state dict.

    Without them the folder would load, and train what was frozen.
    """
    for name, child in module.named_children():
        if name in pickled:
            continue
        frozen = [k for k, p in child.named_parameters() if not p.requires_grad]
        for key in frozen:
            path = f"{name}.{key}"
            yield f"self.get_parameter({path!r}).requires_grad_(False)"
        if not child.training:
            yield f"self.get_submodule({name!r}).eval()"
    if not module.training:
        yield "self.training = False"
