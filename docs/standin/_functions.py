"""A stand-in for torch: its functions and methods, and which rule each has.

A function first asks the classes of its arguments, as torch does with
`__torch_function__`; this is how a proxy gets to know of the call.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Final, NoReturn

from . import _rules as rules
from . import _shapes as shapes
from ._forms import LISTED, fitted, forms
from ._rules import alike
from ._table import COMPLEX, TABLE
from ._tensor import DTYPES, AnyValue, NoRule, Tensor, asked, dtype, is_traced


def overridable(
    rule: Callable[..., AnyValue], name: str = "", module: str = "torch"
) -> Callable[..., AnyValue]:
    """A function of torch that asks its arguments first."""

    @wraps(rule)
    def function(*args: AnyValue, **kwargs: AnyValue) -> AnyValue:
        found = asked(function, args, kwargs)
        return found[0] if found else rule(*args, **kwargs)

    function.__name__ = function.__qualname__ = name or rule.__name__
    function.__module__ = module
    return function


MADE: Final[dict[tuple[str, str], Callable[..., AnyValue]]] = {}
"""The functions of that list that were asked for, by module and name."""


_ROWS: Final[dict[str, dict[str, Callable[..., AnyValue]]]] = {}
for _key, _rule in TABLE.items():
    _python = _key.startswith(("F.", "functional."))
    _row = _ROWS.setdefault(_key if _python else _key.partition(".")[0], {})
    _row[_key] = _rule


def ruled(name: str, path: str, start: int = 0) -> AnyValue:
    """The rule for a function of torch; None if it has none.

    Of a method the first argument is its tensor, and `start` is 1.
    """
    raw = RAW.get(path if start else name)
    if raw:
        return guarded(raw, path)
    own, base = _ROWS.get(name), name.removesuffix("_")
    if not own and name != base and name in LISTED["forms"]:
        inner = ruled(base, path, start)
        return inner and guarded(in_place(inner), path)
    if not own:
        return None

    def known(*args: AnyValue, **kwargs: AnyValue) -> AnyValue:
        for form, parameters in forms(name):
            values = fitted(parameters, args, kwargs, name, start)
            if values is not None:
                rule = own.get(form) or (own[name] if len(own) == 1 else None)
                rules.need(rule)
                found = rule(*values)  # type: ignore[misc]
                trained = kwargs.get("requires_grad")
                rules.need(not trained or found.dtype.category > 1)
                return found
        raise NoRule

    known.__name__ = name
    return guarded(known, path)


def guarded(
    known: Callable[..., AnyValue], name: str
) -> Callable[..., AnyValue]:
    """A rule of which any error but those of torch means that it has none."""

    @wraps(known)
    def guard(*args: AnyValue, **kwargs: AnyValue) -> AnyValue:
        try:
            last = name.rpartition(".")[2]
            given = (*args, *kwargs.values())
            rules.need(last in COMPLEX or not any(map(is_complex, given)))
            found = known(*args, **kwargs)
        except NoRule as error:
            raise unknown(name, error) from None
        except Exception as error:
            builtin = type(error).__module__ == "builtins"
            if builtin and not isinstance(error, RuntimeError):
                raise unknown(name) from None
            raise  # torch refuses it, or a class of the arguments
        in_order(last, (args, kwargs), found)
        return found

    return guard


def is_complex(value: AnyValue) -> bool:
    """Whether a value is of complex numbers, or their dtype."""
    kind = value.dtype if isinstance(value, Tensor) else value
    return isinstance(kind, dtype) and kind.is_complex


def unknown(name: str, why: object = "") -> NoRule:
    """The error for what has no rule, with a reason."""
    text = str(why)
    if "small torch" in text:
        return NoRule(text)
    return NoRule(
        f"the small torch has no rule for what {name} gives here"
        f"{': ' * bool(text)}{text} (the installed fx computes it)"
    )


_PACKED: Final = "matmul linear embedding contiguous layer_norm".split()
"""Functions whose results are in order, whatever their arguments are."""

_VIEWS: Final = (
    "permute transpose swapaxes swapdims movedim moveaxis T mT t expand unfold "
    "broadcast_to expand_as diagonal select narrow einsum diag real imag "
    "scaled_dot_product_attention broadcast_tensors fft ifft rfft irfft fft2 "
    "ifft2 fftn ifftn H mH inverse inv cholesky"
).split()
"""Functions whose results may be out of order."""


def in_order(name: str, given: AnyValue, found: AnyValue) -> None:
    """Note of results whether their numbers are known to be in order."""
    if name not in _PACKED and (
        name in _VIEWS or not all(one.packed for one in tensors_in(given))
    ):
        for one in tensors_in(found):
            one.packed = False


def tensors_in(value: AnyValue) -> Iterable[Tensor]:
    """The tensors in nested values."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, dict):
        yield from tensors_in([*value.values()])
    elif isinstance(value, (tuple, list)):
        for one in value:
            yield from tensors_in(one)


def no_rule(name: str) -> Callable[..., AnyValue]:
    """What is called for a function that has no rule here."""

    def lacking_rule(*args: AnyValue, **kwargs: AnyValue) -> AnyValue:
        raise unknown(name)

    return lacking_rule


def lacking(module: str, name: str, owner: str = "") -> AttributeError:
    """The error for a name of torch that is not here, or not in torch."""
    names = LISTED["names"].get(module, ())
    if name in names:
        return AttributeError(
            f"the small torch of this page has no {module}.{name}; the "
            "installed fx takes the real one"
        )
    close = difflib.get_close_matches(name, names, 1)
    meant = f"; did you mean {close[0]}?" if close else ""
    return AttributeError(f"{owner or module} has no {name!r}{meant}")


def of_torch(module: str, name: str) -> Callable[..., AnyValue]:
    """A function of torch, which asks its arguments first.

    One that torch has in Python asks them with all defaults filled in.

    Raises:
        AttributeError: torch has none, or none that can be recorded.
    """
    path = f"{module}.{name}"
    entry = LISTED["functions"].get(path)
    if entry is None:
        raise lacking(module, name)
    key = entry["module"], entry["name"]
    if key not in MADE:
        short = {"torch.nn.functional": "F", "torch.functional": "functional"}
        own = f"{short.get(entry['module'])}.{name}"
        known = ruled(own, path) or ruled(entry["name"], path)
        MADE[key] = _made(entry, known or no_rule(path))
    return MADE[key]


def _made(
    entry: dict[str, AnyValue], rule: Callable[..., AnyValue]
) -> Callable[..., AnyValue]:
    if "handed" not in entry:
        return overridable(rule, entry["name"], entry["module"])
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    signature = inspect.Signature(
        [
            inspect.Parameter(
                one, kind, default=[*default, inspect.Parameter.empty][0]
            )
            for one, *default in entry["parameters"]
        ]
    )

    def function(*args: AnyValue, **kwargs: AnyValue) -> AnyValue:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        given = dict(bound.arguments)
        first = tuple(given.pop(n) for n in [*given][: entry["handed"]])
        found = asked(function, first, given)
        return found[0] if found else rule(*first, **given)

    function.__name__ = function.__qualname__ = entry["name"]
    function.__module__ = entry["module"]
    return function


_NAMED: Final = {kind.name: kind for kind in DTYPES}
_TYPES: Final[dict[str, dtype]] = _NAMED | {
    other: _NAMED[name]
    for other, name in (
        *(("half", "float16"), ("float", "float32"), ("double", "float64")),
        *(("cfloat", "complex64"), ("cdouble", "complex128")),
        *(("short", "int16"), ("int", "int32"), ("long", "int64")),
    )
}
"""All names of the types; some are methods, too."""

_INVERSE: Final = "add sub mul truediv pow floordiv mod and or xor matmul"
_MAGIC: Final = {
    **{one: one for one in "add sub mul matmul pow eq ne lt le gt ge".split()},
    **{"neg": "neg", "abs": "abs", "bitwise_not": "invert"},
    "div": "truediv",
    "remainder": "mod",
    "bitwise_and": "and",
    "bitwise_or": "or",
    "bitwise_xor": "xor",
}


def _as_type(name: str) -> Callable[..., AnyValue]:
    return lambda input: shapes.cast(input, _TYPES[name])


RAW: Final[dict[str, Callable[..., AnyValue]]] = {
    "functional.einsum": rules.einsum,
    "functional.meshgrid": shapes.meshgrid,
    "functional.broadcast_tensors": shapes.broadcast_tensors,
    "tensor": shapes.tensor,
    "as_tensor": shapes.tensor,
    "Tensor.norm": rules.norm,
    "Tensor.where": lambda input, condition, other: rules.where(
        condition, input, other
    ),
    "Tensor.type": lambda input, dtype: shapes.cast(input, dtype),
    "Tensor.__floordiv__": rules.divided,
    "Tensor.__getitem__": shapes.taken,
    "Tensor.__setitem__": shapes.put,
    **dict.fromkeys(("Tensor.__lshift__", "Tensor.__rshift__"), rules.bits),
    **dict.fromkeys(("Tensor.cpu", "Tensor.cuda"), alike),
    **{
        f"Tensor.{name}": _as_type(name)
        for name in "float double half int long bool short bfloat16".split()
    },
}
"""Rules of what has no form: their own parameters say what they take."""


def _give_methods() -> None:
    """Give tensors their methods, operators and properties."""
    own = [name[7:] for name in RAW if name.startswith("Tensor.")]
    for name in (*LISTED["methods"], *own):
        path = f"Tensor.{name}"
        rule = ruled(name, path, 1)
        if rule or name not in vars(Tensor):
            made = overridable(rule or no_rule(path), name, "torch._tensor")
            made.__qualname__ = path
            setattr(Tensor, name, made)
    _give_operators()
    for name, rule in (
        *(("T", shapes.backwards), ("mT", shapes.transposed), ("data", alike)),
        *(("real", TABLE["real"]), ("imag", TABLE["imag"])),
        *(("H", shapes.turned), ("mH", shapes.transposed)),
    ):
        setattr(Tensor, name, property(guarded(rule, f"Tensor.{name}")))
    Tensor.__getattr__ = lambda tensor, name: _absent(name)


def _give_operators() -> None:
    for name, magic in _MAGIC.items():
        method = getattr(Tensor, name)
        beside = name in "eq ne lt le gt ge".split()
        own = _beside_others(method) if beside else method
        setattr(Tensor, f"__{magic}__", own)
    for name in ("add", "sub", "mul"):
        setattr(Tensor, f"__i{name}__", getattr(Tensor, f"{name}_"))
    Tensor.__itruediv__ = Tensor.div_  # type: ignore[attr-defined]
    for name in _INVERSE.split():
        turned = _turned(getattr(Tensor, f"__{name}__"))
        setattr(Tensor, f"__r{name}__", turned)


def _absent(name: str) -> NoReturn:
    """Raise the error for what tensors lack, here or in torch."""
    raise lacking("Tensor", name)


def in_place(rule: Callable[..., AnyValue]) -> Callable[..., AnyValue]:
    """The rule for a result that is written into the first argument."""

    def written(input: Tensor, *more: AnyValue, **named: AnyValue) -> Tensor:
        found = rule(input, *more, **named)
        rules.need(found.dtype.category <= input.dtype.category)
        if found.shape != input.shape:
            rules.refuse(f"{found.shape} does not fit into {input.shape}")
        return alike(input)

    return written


def _beside_others(method: Callable[..., AnyValue]) -> AnyValue:
    """A comparison, which says nothing of what is no number."""

    def compare(self: Tensor, other: AnyValue) -> AnyValue:
        if isinstance(other, (Tensor, int, float)) or is_traced(other):
            return method(self, other)
        return NotImplemented

    return compare


def _turned(method: Callable[..., AnyValue]) -> Callable[..., AnyValue]:
    """A method with its two arguments exchanged."""
    return lambda self, other: method(other, self)


_give_methods()


def typed(kind: dtype) -> AnyValue:
    """What makes a tensor of one type, of sizes or of data."""

    def made(*given: AnyValue) -> AnyValue:
        if not given or isinstance(given[0], int):
            return Tensor(given, kind)
        return of_torch("torch", "tensor")(*given).to(kind)

    return made
