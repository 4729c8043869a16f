"""Stage 02, use-def: which parameters can follow each other in a `def`.

The placeholders of a graph become the parameters of a Python function.  Here
are Python's rules for such a list, about text alone, so that `lint` can say
what is wrong before the compiler does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..linked_list.namespace import is_parameter_name
from .values import Value


def parameter_faults(
    parameters: Iterable[tuple[str, bool]],
) -> Iterator[tuple[int, str]]:
    """What is wrong with `def forward(self, …)`.

    Args:
        parameters: the name of each, with its stars, and whether it has a
            default value.

    Yields:
        The index of a parameter and what is wrong with it.
    """
    seen = {"self"}
    last = ""
    for index, (parameter, has_default) in enumerate(parameters):
        bare = parameter.lstrip("*")
        if not is_parameter_name(bare):
            yield index, f" has the target {parameter!r}, not a name"
        if bare in seen:
            yield index, f": a second parameter named {bare}"
        if reason := _misplaced(parameter, has_default, last):
            yield index, f": {reason}"
        seen.add(bare)
        if parameter.startswith("*"):
            last = parameter
        elif has_default:
            last = "="


def is_own_self(node: Value) -> bool:
    """Whether a first placeholder is the `self` of the generated method.

    It is, as in torch.fx, if it has this name and nothing else.
    """
    plain = not node.args and node.type is None
    return plain and node.op == "placeholder" and node.target == "self"


def _misplaced(parameter: str, has_default: bool, last: str) -> str:
    """Why a parameter cannot come after the ones before it, or "".

    Args:
        parameter: its name, with its stars.
        has_default: whether it has a default value.
        last: "" after plain parameters, "=" after one with a default, the
            starred parameter itself after that.
    """
    if last.startswith("**"):
        return f"{parameter} comes after {last}, which must be last"
    starred = parameter.startswith("*")
    if last.startswith("*") and starred and not parameter.startswith("**"):
        return f"{parameter} is a second *args, after {last}"
    if last == "=" and not has_default and not starred:
        return "has no default, but the parameter before it has one"
    if starred and has_default:
        return f"{parameter} cannot have a default"
    return ""
