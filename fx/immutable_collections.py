"""Stage 02, use-def: the lists and dicts that node arguments are kept in.

A node knows its inputs, and each input knows its users.  A list inside
`node.args` that could be appended to would make that knowledge wrong, and
nothing would notice.  So each list and dict among the arguments is made
immutable, and the error says what to do instead: assign a new one.

Tuples would lock as well, but a function may tell a tuple from a list, and
`torch.cat([a, b])` should be shown and called as it was written.  It is a lock
against accidents: `list.append(a, x)` still works.

Pickle makes a list by `append`, so `__reduce__` has it call the class with all
items.  torch's pytree goes by exact types and would take these classes for
leaves, so they are registered with it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn, Self, TypeAlias, TypeVar

from .torch_private.pytree import pytree
from .use_def.values import AnyValue, Open

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")

_Refused: TypeAlias = Callable[..., NoReturn]

_HELP = """
If you are attempting to modify the kwargs or args of a torch.fx.Node object,
instead create a new copy of it and assign the copy to the node:

    new_args = ...  # copy and mutate args
    node.args = new_args
""".strip()


def _no_mutation(self: object, *args: object, **kwargs: object) -> NoReturn:
    """Refuse to change a list or dict that belongs to a node."""
    kind = type(self).__name__
    raise TypeError(f"{kind!r} object does not support mutation. {_HELP}")


class immutable_list(list[T], metaclass=Open):
    """A list whose methods refuse to change it, and so can be hashed.

    Raises:
        TypeError: a method that would change it was called.

    torch.fx: immutable_collections.py, immutable_list
    """

    __slots__ = ()

    append: _Refused = _no_mutation
    extend: _Refused = _no_mutation
    insert: _Refused = _no_mutation
    clear: _Refused = _no_mutation
    pop: _Refused = _no_mutation
    remove: _Refused = _no_mutation
    reverse: _Refused = _no_mutation
    sort: _Refused = _no_mutation
    __setitem__: _Refused = _no_mutation
    __delitem__: _Refused = _no_mutation
    __iadd__: _Refused = _no_mutation
    __imul__: _Refused = _no_mutation

    def __hash__(self) -> int:  # type: ignore[override]  # list has none
        """The hash of the items, as a tuple's."""
        return hash(tuple(self))

    def __reduce__(self) -> tuple[type[Self], tuple[tuple[T, ...]]]:
        """Pickle without `append`."""
        return type(self), (tuple(self),)


class immutable_dict(dict[K, V], metaclass=Open):
    """A dict whose methods refuse to change it, and so can be hashed.

    Raises:
        TypeError: a method that would change it was called.

    torch.fx: immutable_collections.py, immutable_dict
    """

    __slots__ = ()

    setdefault: _Refused = _no_mutation
    update: _Refused = _no_mutation
    clear: _Refused = _no_mutation
    pop: _Refused = _no_mutation
    popitem: _Refused = _no_mutation
    __setitem__: _Refused = _no_mutation
    __delitem__: _Refused = _no_mutation
    __ior__: _Refused = _no_mutation

    def __hash__(self) -> int:  # type: ignore[override]  # dict has none
        """The hash of the items, whatever their order."""
        return hash(frozenset(self.items()))

    def __reduce__(self) -> tuple[type[Self], tuple[tuple[tuple[K, V], ...]]]:
        """Pickle without item assignment."""
        return type(self), (tuple(self.items()),)


# Registration: so that torch's pytree functions look inside arguments.
_untyped: AnyValue = pytree
pytree.register_pytree_node(
    immutable_list,
    lambda items: ([*items], None),
    lambda items, _: immutable_list(items),
    serialized_type_name="fx.immutable_collections.immutable_list",
    flatten_with_keys_fn=lambda items: (
        [(_untyped.SequenceKey(i), item) for i, item in enumerate(items)],
        None,
    ),
)
pytree.register_pytree_node(
    immutable_dict,
    lambda items: ([*items.values()], [*items]),
    lambda values, keys: immutable_dict(zip(keys, values, strict=True)),
    serialized_type_name="fx.immutable_collections.immutable_dict",
    flatten_with_keys_fn=lambda items: (
        [(_untyped.MappingKey(key), value) for key, value in items.items()],
        [*items],
    ),
)
