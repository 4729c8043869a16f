"""Extra: what calling a module does.

A module of torch.nn does what its class and its flags say, unless somebody
else's code runs with it: a hook, a `forward` on the instance, an activation
that was given to the constructor, a parametrization.  So there are two
questions here, whether any of that is there, and what the module does if not.
A `Sequential` is as impure as the worst module in it, so all parts are asked.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from torch import nn

from ...schemas.facts import Parameter
from ...torch_private.modules import GLOBAL_HOOKS, HOOKS
from ...use_def.text import resolves_to
from .effect_tables import FRESH_MODULES, MODULE_EFFECTS
from .function_effects import Effect, effect_of_function

_OF_TORCH: Final = ("torch.nn.modules.", "torch.nn.utils.")
"""Where torch defines the modules that do what their class and flags say."""

_PARAMETRIZED: Final = "torch.nn.utils.parametrize.Parametrized"
"""How the names of parametrize's classes begin.  It makes one for each
instance, a subclass of the class that the instance had."""

_INPUT: Final = Parameter("input", 0)
"""What a module with `inplace=True` writes into."""


def effects_of_module(module: nn.Module) -> Iterator[tuple[str, Effect]]:
    """What a module and its parts are known to change, path by path."""
    for path, part in module.named_modules():
        name = type(part).__name__
        for cls, applies, what in MODULE_EFFECTS:
            if isinstance(part, cls) and applies(part):
                yield path, Effect("impure", f"{name} {what}")


def foreign_code(module: nn.Module) -> Iterator[tuple[str, Effect]]:
    """The parts of a module that run code other than torch's."""
    for path, part in module.named_modules():
        yield from hooks_of(part, path)
        reason = _foreign_code(part)
        if reason:
            yield path, Effect("unknown", f"{type(part).__name__} {reason}")


def is_torchs(module: nn.Module) -> bool:
    """Whether only code of torch runs when a module is called."""
    return next(foreign_code(module), None) is None


def hooks_of(module: nn.Module, path: str = "") -> Iterator[tuple[str, Effect]]:
    """The hooks that run when a module is called: its own, and global ones.

    Those for backward count, too: they wrap inputs and outputs in the call.
    """
    name = type(module).__name__
    if any(GLOBAL_HOOKS):
        yield path, Effect("unknown", "there are hooks on all modules")
    if any(getattr(module, kind) for kind in HOOKS):
        yield path, Effect("unknown", f"{name} has hooks")


def _foreign_code(module: nn.Module) -> str:
    """What code, other than torch's, runs when a module is called.

    All classes that it is below must be torch's: `weight_norm` makes a class
    `ParametrizedLinear` in torch's name of one that may be anybody's.
    """
    members = vars(module)
    if "forward" in members:
        return "has a forward of its own"
    if not all(map(_is_of_torch, type(module).__mro__[:-1])):
        return "is not of torch.nn, and has no graph"
    for name, value in members.items():
        # The activation of a TransformerEncoderLayer, say.
        is_function = callable(value) and not isinstance(value, nn.Module)
        if is_function and effect_of_function(value, (), {}).kind == "unknown":
            return f"calls its `{name}`, of which nothing is known"
    return ""


def _is_of_torch(cls: type) -> bool:
    """Whether a class of modules, or a base of one, is torch's own.

    A class can say what it likes in `__module__`: what is found there counts.
    """
    name = f"{cls.__module__}.{cls.__qualname__}"
    if name.startswith(_PARAMETRIZED):
        return {"forward", "__call__"}.isdisjoint(vars(cls))
    return name.startswith(_OF_TORCH) and resolves_to(name, cls)


def returns_new_tensor(module: object) -> bool:
    """Whether a module is known to return a tensor that shares no memory.

    With `inplace=True`, it returns its input.
    """
    return (
        isinstance(module, FRESH_MODULES)
        and not getattr(module, "return_indices", False)
        and is_torchs(module)
    )


def overwritten(module: nn.Module, effect: Effect) -> Parameter | None:
    """What a module overwrites and returns, if it does nothing else."""
    in_place = effect.kind == "impure" and getattr(module, "inplace", False)
    return _INPUT if in_place and returns_new_tensor(module) else None
