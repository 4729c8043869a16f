"""Stage 07, rewriter: what compares calls, and when constants are equal.

`1`, `1.0` and `True` are equal to Python, and a call does not do with one what
it does with another.  So types have to agree, also those of items; and 0.0 is
not -0.0.

The rule for calls is torch.fx's, in patterns.py.  For the options that torch.fx
does not have, `import fx` puts another class in its place.
"""

from __future__ import annotations

import torch

from ..usedef.arguments import parts
from ..usedef.values import LEAVES, Argument, Value
from .patterns import Exact, MatchOptions


def exactly(options: MatchOptions) -> Exact:
    """What compares two calls, if only `Exact` is there.

    Raises:
        RuntimeError: an option asks for more.
    """
    if wanted := [name for name, on in options.items() if on]:
        raise RuntimeError(
            f"{wanted[0]}=True needs fx.extra.matching, which is not there: "
            "import fx as a whole, or leave the option out"
        )
    return Exact()


def equal_constants(sought: Argument, found: Argument) -> bool:
    """Whether two constants are equal and of one type, and so their items."""
    if type(sought) is not type(found):
        return False
    if isinstance(sought, torch.Tensor) and isinstance(found, torch.Tensor):
        return same_tensor(sought, found)
    if type(sought) in LEAVES:
        signed = isinstance(sought, (float, complex))  # 0.0 is not -0.0
        return bool(sought == found) and (
            not signed or repr(sought) == repr(found)
        )
    if isinstance(sought, dict) and isinstance(found, dict):
        return sought.keys() == found.keys() and all(
            equal_constants(value, found[key]) for key, value in sought.items()
        )
    ours, theirs = [*parts(sought)], [*parts(found)]
    if ours and len(ours) == len(theirs):
        return all(map(equal_constants, ours, theirs))
    same: Value = sought == found
    try:
        return bool(same)
    except (RuntimeError, ValueError):  # elementwise, as arrays compare
        return bool(same.all())


def same_tensor(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors are equal in all but how they lie in memory."""
    if (one.dtype, one.device) != (other.dtype, other.device):
        return False
    try:
        return torch.equal(one, other) and torch.equal(
            _signs(one), _signs(other)
        )
    except NotImplementedError:  # no data, or a layout that is not compared
        return one is other


def _signs(tensor: torch.Tensor) -> torch.Tensor:
    """Which numbers are negative, -0.0 among them; empty if 0 has one sign."""
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor.resolve_conj().resolve_neg())
    if not tensor.is_floating_point() or tensor.is_quantized:
        return torch.empty(0)
    is_small = tensor.dtype.itemsize == 1  # which signbit does not take
    return torch.signbit(tensor.float() if is_small else tensor)
