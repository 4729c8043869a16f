"""The names that nodes get."""

from __future__ import annotations

import builtins
import functools
import keyword
import math
import operator

import torch
from torch import nn

from tests.parity.harness import Lib, Made, Seen, error, names, program


def named(lib: Lib, *wishes: str) -> list[str]:
    """The names that nodes get who wish for these, one after another."""
    g = lib.Graph()
    return names(g.create_node("call_function", abs, name=w) for w in wishes)


@program(claims=("node-names-unique",))
def repeated_targets_get_numbers(lib: Lib) -> Seen:
    g = lib.Graph()
    inputs = [g.placeholder("x") for _ in range(3)]
    calls = [g.call_function(torch.relu, (x,)) for x in inputs]
    return [(n.name, n.target) for n in inputs], names(calls)


@program(claims=("node-names-unique",))
def an_erased_nodes_name_is_not_used_again(lib: Lib) -> Seen:
    g = lib.Graph()
    g.erase_node(g.placeholder("x"))
    return names([g.placeholder("x"), g.placeholder("x")])


@program(claims=("node-names-unique",))
def a_number_that_is_taken_is_skipped(lib: Lib) -> Seen:
    return [
        named(lib, "x_1", "x", "x", "x"),
        named(lib, "x", "x_1", "x", "x_1"),
        named(lib, "x_3", "x", "x", "x_3", "x_3"),
        named(lib, "x_1", "x_1", "x_1_1", "x_1"),
        named(lib, "x_2", "x_1", "x", "x", "x"),
        named(lib, "x_10", "x_9", "x", "x_10"),
        named(lib, "x_007", "x", "x_7", "x_007"),
        named(lib, "x_", "x_", "x__1", "x_"),
        named(lib, "x_1_2", "x_1", "x_1_2"),
        named(lib, "_1", "_1", "_", "_", "__1"),
        named(lib, "x_0", "x", "x", "x_0"),
    ]


@program(claims=("node-names-unique",))
def many_nodes_of_one_target_count_on(lib: Lib) -> Seen:
    made = named(lib, *["add"] * 200, *["add_5"] * 3, "add_500", "add")
    return made[:3], made[197:], len(set(made)) == len(made)


@program(claims=("node-names-unique", "node-name-candidate"))
def kinds_of_nodes_share_one_namespace(lib: Lib) -> Seen:
    g = lib.Graph()
    x = g.placeholder("relu")
    made = [
        x,
        g.get_attr("relu"),
        g.call_module("relu", (x,)),
        g.call_method("relu", (x,)),
        g.call_function(torch.relu, (x,)),
        g.output(x),
        g.placeholder("output"),
    ]
    return [(n.op, n.name) for n in made]


@program(claims=("node-name-candidate",))
def a_function_may_be_called_nothing(lib: Lib) -> Seen:
    def call(x: object) -> object:
        return x

    call.__name__ = ""
    g = lib.Graph()
    return names(g.call_function(call, ()) for _ in range(2))


@program(claims=("node-name-candidate",))
def an_explicit_name_decides(lib: Lib) -> Seen:
    g = lib.Graph()
    x = g.placeholder("x")
    made = [
        g.create_node("call_function", torch.relu, (x,), name="my name"),
        g.create_node("call_function", torch.relu, (x,), {}, "my_name"),
        g.call_function(torch.relu, (x,), name="other"),
        g.call_function(torch.relu, (x,), name=None),
        g.create_node("placeholder", "y", name="z"),
    ]
    return [(n.name, n.target == "y") for n in made]


@program(claims=("node-name-candidate",))
def targets_become_snake_case_identifiers(lib: Lib) -> Seen:
    g = lib.Graph()
    x = g.placeholder("x")
    functions = (
        torch.relu,
        operator.getitem,
        operator.__getitem__,
        operator.__add__,
        operator.and_,
        math.sqrt,
        torch.nn.functional.gelu,
        torch._C._nn.avg_pool2d,
        torch.Tensor.add_,
        torch.ops.aten.add.Tensor,
        torch.ops.aten.add,
        isinstance,
        lambda: 1,
        nn.Linear,
    )
    modules = ("foo.bar", "layers.0.conv1", "a.b.c.d", "convReLU", "0")
    methods = ("__getitem__", "toUpper", "add_", "__len__", "__x", "x__")
    return [
        names(g.call_function(f, (x,)) for f in functions),
        names(g.call_module(m, (x,)) for m in modules),
        names(g.call_method(m, (x,)) for m in methods),
        names(g.get_attr(a) for a in ("weight", "foo.bar.baz", "_w")),
    ]


@program(claims=("node-name-candidate",))
def capitals_are_taken_apart_only_in_targets(lib: Lib) -> Seen:
    g = lib.Graph()
    wishes = ("camelCase", "HTTPServer", "aB1C", "ABC", "x.Y", "É", "doIt2Now")
    by_target = names(g.call_method(w, ()) for w in wishes)
    return by_target, named(lib, *wishes)


@program(claims=("node-name-candidate",))
def what_is_no_identifier_is_mended(lib: Lib) -> Seen:
    return [
        named(lib, "a b", "a-b", "a.b", "a  b", "a+b", "a_b"),
        named(lib, "1x", "1", "42_1", "_1x"),
        named(lib, "", "", "_unnamed"),
        named(lib, " ", "!", ".", "é", "名前", "naïve", "x_é"),
        named(lib, "$1", "x.1", "x-1", "x 1"),
        named(lib, "__init__", "__x", "_", "__", "x__"),
        named(lib, "tab\there", "quote'd", 'quote"d', "back\\slash"),
    ]


@program(claims=("node-name-candidate",))
def digits_of_other_alphabets(lib: Lib) -> Seen:
    made = named(lib, "x²", "x_²", "٣", "x٣")
    return made, [n.isidentifier() for n in made]


@program(claims=("node-name-candidate",))
def very_long_names_are_kept(lib: Lib) -> Seen:
    first, second = named(lib, "n" * 3000, "n" * 3000)
    return len(first), second.removeprefix(first)


@program(claims=("node-name-first-suffix",))
def the_first_name_has_no_number(lib: Lib) -> Seen:
    g = lib.Graph()
    x = g.placeholder("x")
    g.call_function(operator.add, (x, 1))
    g.call_module("linear", (x,))
    g.call_method("clamp", (x,))
    g.call_function(torch.relu, (x,))
    return names(g.nodes)


@program(claims=("node-name-first-suffix",))
def builtins_get_a_number_at_once(lib: Lib) -> Seen:
    g = lib.Graph()
    return (
        names(g.call_method(w, ()) for w in ("sum", "len", "abs", "sum")),
        names(g.call_function(f) for f in (torch.sum, len, max)),
        named(lib, "print", "print_1", "print", "ValueError", "__name__"),
        [named(lib, w) for w in dir(builtins) if w != "None" and w[0] != "_"],
    )


@program(claims=("node-name-first-suffix",))
def keywords_get_a_number_at_once(lib: Lib) -> Seen:
    others = [w for w in keyword.kwlist if w != "None"]
    return [named(lib, w, w) for w in (*others, *keyword.softkwlist)]


@program(claims=("node-name-first-suffix",))
def reserved_globals_get_a_number_at_once(lib: Lib) -> Seen:
    reserved = ("inf", "nan", "NoneType", "torch", "device")
    others = ("fx_pytree", "pytree", "self", "math", "operator", "np", "fx")
    return [named(lib, w, w) for w in (*reserved, *others)]


@program(
    claims=("node-name-first-suffix",),
    differs="keyword-none-as-name",
    ours=["None_1", "None_2"],
)
def none_is_a_keyword_too(lib: Lib) -> Seen:
    return named(lib, "None", "None")


@program(
    claims=("node-name-candidate",),
    differs="newline-in-name",
    ours=["x_", "y_1_"],
)
def a_newline_at_the_end_of_a_wish(lib: Lib) -> Seen:
    return named(lib, "x\n", "y_1\n")


@program(
    claims=("node-name-candidate",),
    differs="callable-without-name",
    ours=["partial", "re_lu"],
)
def callables_without_a_name(lib: Lib) -> Seen:
    g = lib.Graph()

    def make(target: object) -> Made:
        try:
            return g.call_function(target, ()).name
        except AttributeError as raised:
            return f"AttributeError: {raised}"[:30]

    return [make(functools.partial(abs, 1)), make(nn.ReLU())]


@program(claims=("node-names-unique",))
def assigning_a_name_renames_the_node(lib: Lib) -> Seen:
    g = lib.Graph()
    x = g.placeholder("x")
    g.output(g.call_function(torch.relu, (x,)))
    x.name = "renamed"
    return x.name, x.target, str(g)


@program(claims=("node-names-unique",))
def renaming_through_the_namespace_finds_a_free_name(lib: Lib) -> Seen:
    g = lib.Graph()
    x, y = g.placeholder("x"), g.placeholder("y")
    x._rename("y")
    seen = [x.name]
    x._rename("y_1")
    seen.append(x.name)
    y._rename("fresh")
    seen.append(y.name)
    return seen, names([g.placeholder("y"), g.placeholder("fresh")])


@program(claims=("node-names-unique", "node-copy-keeps-name-type-meta"))
def copies_ask_for_the_old_name(lib: Lib) -> Seen:
    g, h = lib.Graph(), lib.Graph()
    x = g.placeholder("x")
    sums = [g.call_function(torch.sum, (x,)) for _ in range(2)]
    copied = [h.node_copy(n, lambda n: None) for n in (x, *sums)]
    again = [h.node_copy(n, lambda n: None) for n in (*sums, x)]
    return names(copied), names(again), names([h.call_method("sum", ())])


@program(claims=("graph-init-state", "node-names-unique"))
def the_namespace_by_itself(lib: Lib) -> Seen:
    space = lib.Graph()._graph_namespace
    one, two = object(), object()
    seen = [
        space.create_name("x", one),
        space.create_name("x", two),
        space.create_name("other", one),
        space.create_name("len", len),
        space.create_name("len", None),
        space.create_name("", None),
        space.create_name("x", None),
    ]
    return seen, error(lambda: space.create_name(None, None)) != "no error"
