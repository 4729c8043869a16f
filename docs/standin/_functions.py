"""A stand-in for torch: its functions and methods, and which rule each has.

A function first asks the classes of its arguments, as torch does with
`__torch_function__`; this is how a proxy gets to know of the call.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Final

from . import _nets as nets
from . import _rules as rules
from . import _shapes as shapes
from ._forms import LISTED, fitted, forms
from ._rules import alike, counted, fractions, of_floats
from ._table import COMPLEX, TABLE
from ._tensor import DTYPES, AnyValue, NoRule, Tensor, asked, dtype, is_traced

FUNCTIONS: Final[dict[str, Callable[..., AnyValue]]] = {}
"""The functions of torch, by name."""


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


def strictly(
    rule: Callable[..., AnyValue], name: str
) -> Callable[..., AnyValue]:
    """A rule that does not know what it does not read.

    Its result is what torch gives, or torch refuses the call, too, or it
    raises NoRule: for an argument that the rule does not have, or one of a kind
    that it does not handle.
    """
    signature = inspect.signature(rule)

    @wraps(rule)
    def known(*args: AnyValue, **kwargs: AnyValue) -> AnyValue:
        fit(signature, args, kwargs)
        return rule(*args, **kwargs)

    return guarded(known, name)


def ruled(name: str, path: str = "", start: int = 0) -> AnyValue:
    """The rule for a function of torch by its forms; None if it has none.

    Of a method the first argument is its tensor, and `start` is 1.
    """
    own = {k: v for k, v in TABLE.items() if name in (k, k.rpartition(".")[0])}
    base = name.removesuffix("_")
    if not own and name != base and ruled(base) and name in LISTED["forms"]:
        return guarded(in_place(ruled(base, start=start)), path)
    if not own:
        return None

    def known(*args: AnyValue, **kwargs: AnyValue) -> AnyValue:
        for form, parameters in forms(name):
            values = fitted(parameters, args, kwargs, name, start)
            if values is not None:
                rule = own.get(form) or (own[name] if len(own) == 1 else None)
                rules.need(rule)
                found = rule(*values)  # type: ignore[misc]
                rules.need(
                    not kwargs.get("requires_grad") or found.dtype.category > 1
                )
                return found
        raise NoRule

    known.__name__ = name
    return guarded(known, path or f"torch.{name}")


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


def fit(signature: inspect.Signature, args: AnyValue, kwargs: AnyValue) -> None:
    """Raise unless arguments are of the types that a signature says.

    None is one only where it is written, as in `int | None`.
    """
    given = signature.bind(*args, **kwargs).arguments
    for name, value in given.items():
        parameter = signature.parameters[name]
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        kinds = str(parameter.annotation).split(" | ")
        own = type(value).__name__
        fits = own in kinds or (value is None and "None" in kinds)
        fits |= own == "int" and "float" in kinds
        fits |= "Tensor" in kinds and isinstance(value, Tensor)
        rest = {*kinds} - {"None", "int", "bool", "float", "str", "dtype"}
        rest -= {"Tensor"}
        rules.need(fits or (rest and value is not None))


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


def of_torch(
    module: str, name: str, rule: Callable[..., AnyValue] | None = None
) -> Callable[..., AnyValue]:
    """A function of torch, which asks its arguments first.

    One that torch has in Python asks them with all defaults filled in.

    Raises:
        AttributeError: torch has none, or none that can be recorded.
    """
    entry = LISTED["functions"].get(f"{module}.{name}")
    if entry is None:
        raise lacking(module, name)
    key = entry["module"], entry["name"]
    if key not in MADE:
        path = f"{module}.{name}"
        known = strictly(rule, path) if rule else None
        if not known:
            short = {
                "torch.nn.functional": "F",
                "torch.functional": "functional",
            }
            own = f"{short.get(entry['module'])}.{name}"
            known = ruled(
                own if own in LISTED["forms"] else entry["name"], path
            )
        MADE[key] = _made(entry, known or no_rule(path))
    return MADE[key]


def as_default(value: AnyValue, default: AnyValue) -> bool:
    """Whether an argument is the default, and of its type."""
    return type(value) is type(default) and bool(value == default)


def _made(
    entry: dict[str, AnyValue], rule: Callable[..., AnyValue]
) -> Callable[..., AnyValue]:
    if "handed" not in entry:
        return overridable(rule, entry["name"], entry["module"])
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    signature = inspect.Signature(
        [
            inspect.Parameter(one[0], kind, default=one[1])
            if len(one) == 2
            else inspect.Parameter(one[0], kind)
            for one in entry["parameters"]
        ]
    )

    def function(*args: AnyValue, **kwargs: AnyValue) -> AnyValue:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        given = dict(bound.arguments)
        first = tuple(given.pop(n) for n in [*given][: entry["handed"]])
        found = asked(function, first, given)
        if found:
            return found[0]
        own = signature.parameters
        changed = {
            k: v for k, v in given.items() if not as_default(v, own[k].default)
        }
        return rule(*first, **changed)

    function.__name__ = function.__qualname__ = entry["name"]
    function.__module__ = entry["module"]
    return function


_RULES: Final[tuple[tuple[str, Callable[..., AnyValue]], ...]] = (
    ("neg negative square sign relu positive", counted),
    (
        "sigmoid tanh exp log sqrt rsqrt sin cos tan erf erfc log1p expm1 log2 "
        "log10 exp2 asin acos atan sinh cosh reciprocal",
        fractions,
    ),
    ("trunc selu logit", of_floats),
    ("floor ceil round", counted),
    ("isnan isinf isfinite logical_not signbit", rules.asked_whether),
    ("mul multiply", rules.joined),
    ("fmod remainder floor_divide", rules.divided),
    ("maximum minimum", rules.paired),
    ("bitwise_and bitwise_or bitwise_xor", rules.bits),
    ("bitwise_not", rules.turned),
    ("pow", rules.raised),
    ("div divide", rules.div),
    ("eq ne lt le gt ge", rules.compared),
    ("logical_and logical_or logical_xor", rules.both),
    ("sum", rules.total),
    ("prod", rules.product),
    ("mean", rules.mean),
    ("amax amin", rules.extreme),
    ("max min", rules.largest),
    ("median", rules.middle),
    ("argmax argmin", rules.found_at),
    ("all any", rules.whether),
    ("cumsum cumprod", rules.running),
    ("softmax log_softmax", rules.shared),
    ("reshape", shapes.reshaped),
    ("permute", shapes.permuted),
    ("transpose swapaxes swapdims", shapes.transpose),
    ("tril triu", shapes.triangle),
    ("flip", shapes.flipped),
    ("clamp clip", rules.clamp),
)
_OWN: Final = (
    *(rules.masked_fill, rules.clamp_min, rules.clamp_max, rules.sort),
    *(rules.argsort, rules.topk, rules.matmul, rules.outer),
    *(shapes.flatten, shapes.unflatten, shapes.t),
    *(shapes.squeeze, shapes.unsqueeze, shapes.broadcast_to),
    *(shapes.repeat_interleave, shapes.diagonal, shapes.gather),
    *(shapes.index_select, shapes.select, shapes.narrow, shapes.chunk),
    *(shapes.unbind, shapes.multinomial),
)
_BOTH: Final[dict[str, Callable[..., AnyValue]]] = {
    **{name: rule for names, rule in _RULES for name in names.split()},
    **{own.__name__: own for own in _OWN},
    **{"mm": rules.mm, "bmm": rules.bmm, "mv": rules.mv, "dot": rules.dot},
    "detach": alike,
    "clone": alike,
}
"""What is a function and a method."""

_BESIDE: Final[dict[str, Callable[..., AnyValue]]] = {
    "where": rules.where,
    **dict.fromkeys(("cat", "concat", "concatenate"), shapes.cat),
    "stack": shapes.stack,
    "batch_norm": nets.batch_norm,
    **{f"conv{n}d": nets.convolution(n) for n in (1, 2, 3)},
    **{f"conv_transpose{n}d": nets.spreading(n) for n in (1, 2, 3)},
    "avg_pool1d": nets.average(1),
    **dict.fromkeys(("zeros_like", "ones_like", "empty_like"), shapes.like),
    **dict.fromkeys(("rand_like", "randn_like"), shapes.drawn_like),
    "full_like": shapes.full_like,
    "rms_norm": nets.rms_norm,
    "cosine_similarity": nets.cosine_similarity,
    "pixel_shuffle": nets.pixel_shuffle,
}
"""Functions that are no methods."""

FACTORIES: Final[dict[str, Callable[..., AnyValue]]] = {
    **dict.fromkeys(("zeros", "ones", "empty"), shapes.made),
    **dict.fromkeys(("rand", "randn"), shapes.drawn),
    **{
        name: getattr(shapes, name)
        for name in "full randint randperm eye linspace arange tensor".split()
    },
    "as_tensor": shapes.tensor,
}
_METHODS: Final[dict[str, Callable[..., AnyValue]]] = {
    **{name: getattr(shapes, name) for name in "reshape permute flip".split()},
    **{name: getattr(shapes, name) for name in "view expand repeat".split()},
    **{name: getattr(shapes, name) for name in "view_as expand_as to".split()},
    "type": shapes.of_type,
    "contiguous": shapes.contiguous,
    "size": shapes.size,
    "type_as": shapes.type_as,
    "split": shapes.split_method,
    "norm": rules.norm,
    "where": lambda input, condition, other: rules.where(
        condition, input, other
    ),
    **dict.fromkeys(("new_zeros", "new_ones", "new_empty"), shapes.new_made),
    "new_full": shapes.new_full,
    "is_contiguous": shapes.is_contiguous,
    **dict.fromkeys(("cpu", "cuda"), alike),
    "requires_grad_": of_floats,
    "__floordiv__": rules.divided,
    "__getitem__": shapes.taken,
    "__setitem__": shapes.put,
    **dict.fromkeys(("__lshift__", "__rshift__"), rules.bits),
}
_TYPES: Final[dict[str, dtype]] = {
    **{kind.name: kind for kind in DTYPES},
    **{"half": DTYPES[6], "float": DTYPES[8], "double": DTYPES[9]},
    **{"cfloat": DTYPES[10], "cdouble": DTYPES[11]},
    **{"short": DTYPES[3], "int": DTYPES[4], "long": DTYPES[5]},
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


def _define() -> None:
    """Fill FUNCTIONS."""
    for name, rule in {**_BOTH, **_BESIDE, **FACTORIES}.items():
        _function(name, rule)
    for name in {one.partition(".")[0] for one in TABLE}:
        if f"torch.{name}" in LISTED["functions"]:
            FUNCTIONS[name] = of_torch("torch", name)
    for named in (
        *(rules.einsum, shapes.split, rules.norm, shapes.meshgrid),
        shapes.broadcast_tensors,
    ):
        name = named.__name__
        FUNCTIONS[name] = of_torch("torch.functional", name, named)


def _function(name: str, rule: Callable[..., AnyValue]) -> None:
    FUNCTIONS[name] = overridable(strictly(rule, f"torch.{name}"), name)


def _give_methods() -> None:
    """Give tensors the methods of the same names, and operators."""
    for name, rule in {**_BOTH, **_METHODS}.items():
        _method(name, strictly(rule, f"Tensor.{name}"))
    for name in LISTED["methods"]:
        path = f"Tensor.{name}"
        if rule := ruled(name, path, 1):
            _method(name, rule)
        elif name not in vars(Tensor):
            _method(name, no_rule(path))
    for name in "float double half int long bool short bfloat16".split():
        rule = shapes.as_type(_TYPES[name])
        _method(name, strictly(rule, f"Tensor.{name}"))
    for name in ("mul", "div"):
        rule = in_place(getattr(Tensor, name))
        _method(f"{name}_", strictly(rule, f"Tensor.{name}_"))
    for name in ("relu_", "sigmoid_", "tanh_", "exp_", "sqrt_", "neg_"):
        _method(name, strictly(of_floats, f"Tensor.{name}"))
        _function(name, of_floats)
    _give_operators()
    for name, own in (
        *(("T", shapes.backwards), ("mT", shapes.transposed), ("data", alike)),
        *(("real", TABLE["real"]), ("imag", TABLE["imag"])),
        *(("H", shapes.turned), ("mH", shapes.transposed)),
    ):
        setattr(Tensor, name, property(strictly(own, f"Tensor.{name}")))
    Tensor.__getattr__ = _absent


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


def _absent(tensor: Tensor, name: str) -> AnyValue:
    """The error for what tensors lack, here or in torch."""
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


def _method(name: str, rule: Callable[..., AnyValue]) -> None:
    """Give tensors a method."""
    made = overridable(rule, name, "torch._tensor")
    made.__qualname__ = f"Tensor.{name}"
    setattr(Tensor, name, made)


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


_define()
_give_methods()
