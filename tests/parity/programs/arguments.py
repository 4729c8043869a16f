"""Walking over arguments, and the immutable containers they are kept in."""

from __future__ import annotations

import copy
import enum
import pickle
from collections import OrderedDict, defaultdict
from functools import partial
from typing import NamedTuple

import torch
from torch.utils import _pytree as pytree

from tests.parity.harness import Lib, Made, Seen, error, names, program


class Point(NamedTuple):
    """A named tuple."""

    x: object
    y: object


class Names(list[object]):
    """A user's own list."""


def kinds(value: object) -> Seen:
    """The classes of a value and of what is in it."""
    name = type(value).__name__
    match value:
        case tuple() | list():
            return [name, *map(kinds, value)]
        case dict():
            return {name: [kinds(item) for item in value.values()]}
        case slice():
            return [name, kinds(value.start), kinds(value.stop)]
    return name


@program(claims=("usedef-nested-containers",))
def map_arg_calls_the_function_for_nodes_alone(lib: Lib) -> Seen:
    g = lib.Graph()
    x, y = g.placeholder("x"), g.placeholder("y")
    met: list[str] = []

    def visit(node: Made) -> str:
        met.append(node.name)
        return f"{node.name.upper()}"

    args = ([x, (1, y)], {"k": slice(x, None, y), 3: "x"}, Point(y, [x]), x)
    mapped = lib.map_arg(args, visit)
    return repr(mapped), met, kinds(mapped), lib.node.map_arg is lib.map_arg


@program(claims=("usedef-nested-containers",))
def map_arg_of_what_is_no_container(lib: Lib) -> Seen:
    x = lib.Graph().placeholder("x")
    values = (1, "x", None, ..., 2.5, torch.float32, range(3), ValueError)
    same = [lib.map_arg(v, str) is v for v in values]
    return same, lib.map_arg(x, str), error(lambda: lib.map_arg(x, 3))


@program()
def map_arg_wants_a_function(lib: Lib) -> Seen:
    graph = lib.Graph()
    node = graph.call_function(torch.relu, (graph.placeholder("x"),))
    each = (node.args, node.kwargs, 1)
    return [error(partial(lib.node.map_arg, one, 3)) for one in each]


@program(claims=("usedef-nested-containers",))
def map_aggregate_calls_the_function_for_every_leaf(lib: Lib) -> Seen:
    met: list[object] = []

    def visit(leaf: object) -> str:
        met.append(leaf)
        return f"<{leaf}>"

    value = [1, (2, {"a": [3], "b": ()}), slice(4, None), Point(5, None)]
    mapped = lib.node.map_aggregate(value, visit)
    return repr(mapped), met, kinds(mapped), repr(value)


@program(claims=("usedef-nested-containers",))
def containers_that_nodes_keep(lib: Lib) -> Seen:
    g = lib.Graph()
    values = (
        [1, [2]],
        {"a": {"b": 1}},
        (1, (2,)),
        Point(1, [2]),
        torch.Size([1, 2]),
        OrderedDict(b=1, a=2),
        defaultdict(list, a=[1]),
        Names([1, 2]),
        slice(1, [2]),
        range(3),
        bytearray(b"b"),
        lib.immutable_collections.immutable_list([[1]]),
        lib.immutable_collections.immutable_dict(a=[1]),
    )
    made = [g.call_function(print, (v,), {"k": v}) for v in values]
    return [(kinds(n.args), kinds(n.kwargs), repr(n.args)) for n in made]


@program(claims=("usedef-nested-containers",))
def constants_are_kept_as_they_are(lib: Lib) -> Seen:
    g = lib.Graph()
    values = (
        torch.ones(1),
        object(),
        torch.nn.ReLU(),
        int,
        abs,
        lambda: 1,
        b"bytes",
        frozenset([1]),
        1j,
        torch.Generator(),
        enum.Enum("Colour", "RED").RED,  # type: ignore[attr-defined]
        iter([1]),
        NotImplemented,
        True,
        torch.float32,
        torch.device("cpu"),
        torch.ops.aten.add.Tensor,
    )
    same = []
    for value in values:
        n = g.call_function(print, (value, [value]), {"k": value})
        same.append([v is value for v in (n.args[0], n.args[1][0])])
        same.append([n.kwargs["k"] is value])
    return same


@program(claims=("usedef-on-create", "usedef-on-kwargs-assign"))
def args_and_kwargs_of_other_classes(lib: Lib) -> Seen:
    g = lib.Graph()
    x = g.placeholder("x")
    sized = g.call_function(print, torch.Size([1]))
    ordered = g.call_function(print, (), OrderedDict(b=1, a=x))
    sized.kwargs = defaultdict(list, k=[x])
    kwargs = (kinds(sized.kwargs), kinds(ordered.kwargs), list(ordered.kwargs))
    return kinds(sized.args), kwargs, names(x.users)


@program(claims=("usedef-nested-containers",))
def a_node_keeps_its_own_copy_of_containers(lib: Lib) -> Seen:
    g = lib.Graph()
    x = g.placeholder("x")
    given, named = [x], {"k": [x]}
    n = g.call_function(print, (given,), named)
    given.append(x)
    named["k"].append(x)
    named["m"] = [x]
    return repr(n.args), repr(n.kwargs), names(n.all_input_nodes)


@program(claims=("usedef-on-args-assign",))
def immutable_list_refuses_every_mutator(lib: Lib) -> Seen:
    made = lib.immutable_collections.immutable_list([3, 1])
    mutators = {
        "append": (1,),
        "clear": (),
        "extend": ([1],),
        "insert": (0, 1),
        "pop": (),
        "remove": (3,),
        "reverse": (),
        "sort": (),
        "__setitem__": (0, 1),
        "__delitem__": (0,),
        "__iadd__": ([1],),
        "__imul__": (2,),
    }
    raised = [
        error(partial(getattr(made, name), *given), chars=200)
        for name, given in mutators.items()
    ]
    return raised, repr(made)


@program(claims=("usedef-on-kwargs-assign",))
def immutable_dict_refuses_every_mutator(lib: Lib) -> Seen:
    made = lib.immutable_collections.immutable_dict(a=1)
    mutators = {
        "clear": (),
        "pop": ("a",),
        "popitem": (),
        "setdefault": ("b", 1),
        "update": ({"b": 1},),
        "__setitem__": ("a", 2),
        "__delitem__": ("a",),
        "__ior__": ({"b": 1},),
    }
    raised = [
        error(partial(getattr(made, name), *given), chars=200)
        for name, given in mutators.items()
    ]
    return raised, repr(made)


@program(claims=("usedef-on-args-assign",))
def the_refusal_says_what_to_do_instead(lib: Lib) -> Seen:
    g = lib.Graph()
    n = g.call_function(print, ([1],), {"k": {"a": 1}})
    texts = []
    for act in (n.args[0].append, n.kwargs["k"].setdefault):
        try:
            act(2)
        except TypeError as raised:
            texts.append("node.args = new_args" in str(raised))
    return texts, error(lambda: n.kwargs.update(k=2))


@program(claims=("usedef-on-args-assign",))
def immutable_containers_behave_as_values(lib: Lib) -> Seen:
    lists = lib.immutable_collections.immutable_list
    dicts = lib.immutable_collections.immutable_dict
    one, two = lists([1, 2]), dicts(a=1, b=2)
    as_list, as_tuple = [1, 2], (1, 2)
    longer: Made = one + [3]  # noqa: RUF005 - the operator is meant
    return [
        (one == as_list, as_list == one, one != as_tuple),
        (hash(one) == hash(as_tuple), hash(two) == hash(dicts(b=2, a=1))),
        (two == {"b": 2, "a": 1}, kinds(two | {}), kinds(longer)),
        (kinds(one * 2), kinds(one[:1])),
        (isinstance(one, list), isinstance(two, dict), repr(one), repr(two)),
        ({one: "key"}[lists([1, 2])], {two: "key"}[dicts(a=1, b=2)]),
        error(lambda: hash(lists([[]]))).partition(":")[0],
        (lists(), dicts(), len(lists("ab")), list(dicts([("k", 1)]))),
    ]


@program(claims=("usedef-on-args-assign",))
def immutable_containers_can_be_copied_and_pickled(lib: Lib) -> Seen:
    made = (
        lib.immutable_collections.immutable_list([1, [2]]),
        lib.immutable_collections.immutable_dict(a=1, b=[2]),
    )
    seen = []
    for one in made:
        again = pickle.loads(pickle.dumps(one))
        copies = (copy.copy(one), copy.deepcopy(one), again)
        seen.append([(kinds(c), c == one, c is one) for c in copies])
    return seen


@program(claims=("usedef-nested-containers",))
def immutable_containers_are_pytrees(lib: Lib) -> Seen:
    lists = lib.immutable_collections.immutable_list
    dicts = lib.immutable_collections.immutable_dict
    value = lists([1, dicts(b=2, a=lists([3]))])
    leaves, spec = pytree.tree_flatten(value)
    back = pytree.tree_unflatten(leaves, spec)
    doubled = pytree.tree_map(lambda leaf: leaf * 2, value)
    return leaves, kinds(back), back == value, repr(doubled), kinds(doubled)


@program(claims=("opcode-call-function",))
def arguments_matched_to_the_signature(lib: Lib) -> Seen:
    g = lib.Graph()
    x = g.placeholder("x")
    root = torch.nn.Module()
    root.linear = torch.nn.Linear(2, 2)

    def form(node: Made, **options: object) -> Seen:
        pair = node.normalized_arguments(root, **options)
        if pair is None:
            return None
        kind = type(pair).__name__
        return kind, repr(pair.args), repr(sorted(pair.kwargs.items()))

    nodes = (
        g.call_function(torch.nn.functional.relu, (x,)),
        g.call_function(torch.nn.functional.dropout, (x, 0.1), {}),
        g.call_function(torch.nn.functional.gelu, (x,)),
        g.call_module("linear", (x,)),
        g.call_method("relu", (x,)),
        g.call_function(print, (x,)),
        x,
    )
    return [
        [form(n) for n in nodes],
        [form(n, normalize_to_only_use_kwargs=True) for n in nodes],
    ]


@program(claims=("opcode-call-function",))
def arguments_matched_to_one_of_several_overloads(lib: Lib) -> Seen:
    g = lib.Graph()
    x = g.placeholder("x")
    n = g.call_function(torch.add, (x, x), {"alpha": 2})
    tensors = (torch.Tensor, torch.Tensor)
    pair = n.normalized_arguments(
        torch.nn.Module(), tensors, {"alpha": int}, True
    )
    unsure = g.call_function(torch.add, (x, x))
    return (
        pair and (repr(pair.args), repr(sorted(pair.kwargs.items()))),
        error(lambda: unsure.normalized_arguments(torch.nn.Module())),
    )
