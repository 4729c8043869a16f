"""Hygiene: what a graph contains never changes what its code means.

Constants come back as they are, names never collide, and nothing of a user's
object is run by writing or defining the code.
"""

from __future__ import annotations

import builtins
import collections
import dataclasses
import datetime
import decimal
import enum
import functools
import inspect
import keyword
import math
import operator
import pathlib
import struct
import sys
from typing import ClassVar, NamedTuple, NoReturn

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F

from fx.graph import Graph
from fx.graph_module import GraphModule
from fx.immutable_collections import immutable_dict, immutable_list
from fx.node import Node
from fx.use_def.arguments import holds_node
from fx.use_def.protocols import PythonCode
from tests.library.generated import AnyValue, function, lines_of, run

# -- objects that fight back -------------------------------------------------


def refuse(self: object, *args: object) -> NoReturn:
    raise SystemExit(f"a method of {type(self).__name__} was run")


class Armed:
    """An object none of whose methods may be run."""

    __repr__ = __str__ = __format__ = __hash__ = refuse
    __eq__ = __bool__ = __len__ = __getattr__ = __iter__ = refuse
    __call__ = __index__ = refuse


class ArmedStr(str):
    __slots__ = ()
    __repr__ = __str__ = __format__ = __hash__ = __eq__ = refuse


class ArmedInt(int):
    __repr__ = __str__ = __format__ = __hash__ = __eq__ = refuse


class ArmedFloat(float):
    __repr__ = __str__ = __format__ = __hash__ = __eq__ = refuse


class ArmedTensor(torch.Tensor):
    __repr__ = refuse  # type: ignore[assignment]  # it takes no arguments
    __str__ = __format__ = __bool__ = refuse


class ArmedMeta(type):
    __repr__ = __str__ = refuse


class ArmedClass(metaclass=ArmedMeta):
    pass


class Colour(enum.Enum):
    RED = 1
    DARK_RED = 2

    __repr__ = __str__ = refuse


class Number(enum.IntEnum):
    ONE = 1


class Access(enum.Flag):
    READ = 1
    WRITE = 2


Odd = enum.Enum("Odd", {"with-hyphen": 1, "class": 2, "fine": 3})


class Pair(NamedTuple):
    first: object
    second: object


@dataclasses.dataclass
class Point:
    x: object
    y: object = 0
    size: object = dataclasses.field(init=False, default=1)

    made: ClassVar[int] = 0

    def __post_init__(self) -> None:
        Point.made += 1


def identity(*args: AnyValue, **kwargs: AnyValue) -> AnyValue:
    return args, kwargs


def constant_through(value: AnyValue) -> AnyValue:
    """A constant, written out and evaluated again."""
    graph = Graph()
    call = graph.call_function(identity, (value,))
    graph.output(call)
    return run(graph)[0][0]


def written_constant(value: AnyValue) -> str:
    """How a constant is written."""
    graph = Graph()
    graph.output(value)
    return lines_of(graph.python_code("self"))[0].removeprefix("return ")


def same(a: AnyValue, b: AnyValue) -> bool:
    """Equal in type, value and structure; floats to the bit, nan aside."""
    kind = type(a)
    if kind is immutable_list:
        kind = list
    if kind is immutable_dict:
        kind = dict
    if kind is not type(b):
        return False
    match a:
        case float():
            bits = struct.pack("d", a) == struct.pack("d", b)
            return bits or (math.isnan(a) and math.isnan(b))
        case complex():
            return same(a.real, b.real) and same(a.imag, b.imag)
        case tuple() | list():
            return len(a) == len(b) and all(map(same, a, b))
        case dict():
            pairs = zip(a.items(), b.items(), strict=True)
            return len(a) == len(b) and all(same(x, y) for x, y in pairs)
        case slice():
            return same((a.start, a.stop, a.step), (b.start, b.stop, b.step))
    return bool(a == b)


# -- constants come back -----------------------------------------------------

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.complex_numbers(),
    st.text(st.characters()),
    st.binary(),
    st.just(...),
    st.sampled_from([torch.float32, torch.bool, torch.float8_e4m3fn]),
    st.sampled_from([torch.strided, torch.sparse_csr, torch.contiguous_format]),
    st.sampled_from([torch.device("cpu"), torch.device("cuda", 3)]),
    st.sampled_from([*Number, *Access, Odd.fine, nn.ReLU, len, torch.relu]),
    st.builds(range, st.integers(), st.integers(), st.sampled_from((-3, 1, 2))),
)
hashable = scalars.filter(lambda x: x == x)
containers = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner),
        st.lists(inner).map(tuple),
        st.dictionaries(hashable, inner),
        st.builds(slice, inner, inner, inner),
        st.builds(Pair, inner, inner),
        st.sets(hashable),
        st.frozensets(hashable),
    ),
    max_leaves=12,
)


@given(containers)
def test_constants_come_back(value: AnyValue) -> None:
    assert same(constant_through(value), value)


ZEROS = (0.0, -0.0, 1.0, -2.0, 1e300, math.inf, -math.inf, math.nan)


@pytest.mark.parametrize("real", ZEROS)
@pytest.mark.parametrize("imag", ZEROS)
def test_signs_of_zeros_come_back(real: float, imag: float) -> None:
    value = complex(real, imag)
    assert same(constant_through(value), value)


LARGE = 10**5000

BOUND: tuple[AnyValue, ...] = (
    *(Armed(), ArmedStr("a"), ArmedInt(3), ArmedFloat(1.5)),
    *(torch.ones(2), ArmedTensor(), nn.Linear(1, 1), torch.Generator()),
    *(Access.READ | Access.WRITE, Access(0), Odd["class"], Odd["with-hyphen"]),
    *(decimal.Decimal("0.1"), datetime.date(2020, 1, 1), pathlib.Path("x")),
    *(np.float64(1.5), np.int64(3), np.arange(3), functools.partial(len)),
    *(list[int], int | None, NotImplemented, bytearray(b"x"), F, Point(1)),
    *(LARGE, Armed, ArmedClass, lambda x: x, identity, [].append, nn.Linear),
    *(Armed.__init__, str.upper, object(), collections.Counter),
)


@pytest.mark.parametrize("value", BOUND, ids=lambda v: type(v).__name__)
def test_everything_else_is_the_very_same_object(value: AnyValue) -> None:
    graph = Graph()
    alone = graph.call_function(identity, (value,), {"key": value})
    nested = graph.call_function(identity, ([(value, {"k": value})],))
    graph.output((alone, nested))
    ((first,), options), (([(second, third)],), _) = run(graph)
    assert first is value
    assert options["key"] is value
    assert second is value
    assert third["k"] is value


@pytest.mark.parametrize("value", BOUND, ids=lambda v: type(v).__name__)
def test_defaults_are_the_very_same_object(value: AnyValue) -> None:
    graph = Graph()
    graph.output(graph.placeholder("x", default_value=value))
    assert run(graph) is value


def test_bound_constants_have_readable_names() -> None:
    assert written_constant(decimal.Decimal(1)) == "_constant_decimal"
    assert written_constant(torch.ones(1)) == "_constant_tensor"
    assert written_constant(LARGE) == "_constant_int"
    assert written_constant(range(LARGE)) == "range(0, _constant_int)"
    two = (decimal.Decimal(1), decimal.Decimal(1))
    text = "(_constant_decimal, _constant_decimal_1)"
    assert written_constant(two) == text
    text = "(_constant_decimal, _constant_decimal)"
    assert written_constant((two[0], two[0])) == text


def test_shapes() -> None:
    # Among arguments a shape is a tuple, as in torch.fx; in a set it stays.
    found = constant_through(frozenset((torch.Size((1, 2)),)))
    assert [type(item) for item in found] == [torch.Size]


def test_enum_members_as_keys_and_items() -> None:
    value = {Colour.RED: [Colour.DARK_RED], Number.ONE: (Number.ONE,)}
    assert written_constant(value) == (
        "{Colour.RED: [Colour.DARK_RED], Number.ONE: (Number.ONE,)}"
    )
    assert constant_through(value) == value


def test_two_classes_of_one_name() -> None:
    make: AnyValue = enum.Enum
    other = make("Colour", {"RED": 5})
    value = (Colour.RED, other["RED"])
    assert constant_through(value) == value


# -- nodes inside ------------------------------------------------------------


def test_nodes_inside_every_container() -> None:
    graph = Graph()
    x = graph.placeholder("x")
    value = [x, (x,), {"k": x}, slice(x, None, x), Pair(x, [x]), Point(x, [x])]
    graph.output(graph.call_function(identity, (value,)))
    made = Point.made
    code = graph.python_code("self")
    assert Point.made == made  # writing constructs nothing
    assert "_Point(x=x, y=[x])" in code.src
    ((found,), _) = function(code)(None, 7)
    expected = [7, (7,), {"k": 7}, slice(7, None, 7), Pair(7, [7])]
    assert found[:-1] == expected
    assert (found[-1].x, found[-1].y, found[-1].size) == (7, [7], 1)


def test_a_dataclass_without_nodes_keeps_its_identity() -> None:
    point = Point(1, [2])
    assert constant_through(point) is point


def nested(depth: int, kind: str, inside: AnyValue) -> AnyValue:
    """`inside` in so many containers."""
    value = inside
    for _ in range(depth):
        match kind:
            case "list":
                value = [value]
            case "tuple":
                value = (value,)
            case "dict":
                value = {"k": value}
            case "slice":
                value = slice(None, value)
            case "pair":
                value = Pair(1, value)
    return value


def unnested(depth: int, kind: str, value: AnyValue) -> AnyValue:
    """What is in so many containers."""
    for _ in range(depth):
        match kind:
            case "list" | "tuple":
                (value,) = value
            case "dict":
                value = value["k"]
            case "slice":
                value = value.stop
            case "pair":
                value = value.second
    return value


KINDS = ("list", "tuple", "dict", "slice", "pair")


@pytest.mark.parametrize("kind", KINDS)
def test_nodes_as_deep_as_python_can_read(kind: str) -> None:
    graph = Graph()
    x = graph.placeholder("x")
    graph.output(graph.call_function(identity, (nested(181, kind, x),)))
    ((found,), _) = run(graph, 7)
    assert unnested(181, kind, found) == 7


@pytest.mark.parametrize("kind", KINDS)
def test_nodes_deeper_than_that(kind: str) -> None:
    graph = Graph()
    x = graph.placeholder("x")
    graph.output(graph.call_function(identity, (nested(205, kind, x),)))
    with pytest.raises(RuntimeError, match=r"generated code|recursion"):
        GraphModule({}, graph)


def test_finding_nodes_does_not_recurse() -> None:
    graph = Graph()
    x = graph.placeholder("x")
    assert holds_node(nested(50_000, "list", x))
    assert not holds_node(nested(50_000, "tuple", 1))
    cyclic: list[AnyValue] = []
    cyclic.append(cyclic)
    assert not holds_node(cyclic)


# -- names -------------------------------------------------------------------

TAKEN = (
    *("torch", "nan", "inf", "device", "NoneType", "fx_pytree", "pytree"),
    *("len", "slice", "getattr", "complex", "set", "frozenset", "range"),
    *("Ellipsis", "math_sqrt", "Number", "wrap", "_constant_decimal", "int"),
    *("forward", "tests_library_test_hygiene_identity", "_", "f", "print"),
)


def everything(graph: Graph, x: Node) -> AnyValue:
    """Nodes that use every kind of global; the constants that they hold."""
    constants: tuple[AnyValue, ...] = (
        *(math.inf, math.nan, 1.5, torch.float32, torch.device("cpu"), ...),
        *(slice(1, 2), complex(-0.0, 1), set(), frozenset((1,)), range(3)),
        *(Number.ONE, decimal.Decimal(1), int, len, type(None), None),
    )
    held = graph.call_function(identity, constants)
    node = graph.call_function(torch.relu, (x,))
    node.meta["is_wrapped"] = True
    node = graph.call_function(math.sqrt, (node,), type_expr=list[int])
    node.meta["is_wrapped"] = True
    odd = graph.call_function(getattr, (x, "not a name", len))
    text = graph.get_attr("0")
    graph.output((held, node, odd, text, graph.call_function(len, ("abc",))))
    return constants


@pytest.mark.parametrize("name", TAKEN)
def test_parameters_hide_no_global(name: str) -> None:
    graph = Graph()
    x = graph.placeholder(name, torch.Tensor | None)
    constants = everything(graph, x)
    code = graph.python_code("self")
    root: AnyValue = type("Root", (), {"0": "zero"})()
    forward = defined_without_wrapping(code)
    result = forward(root, **{name: torch.tensor(4.0)})
    assert same(result[0][0], constants)
    assert result[1:] == (2.0, len, "zero", 3)
    assert f"def forward(self, {name} : " in code.src


def defined_without_wrapping(code: PythonCode) -> AnyValue:
    """The function of code whose `wrap` lines are to do nothing."""
    wrapping = [line for line in code.src.split("\n") if line.endswith('")')]
    for line in wrapping:
        name = line.partition("(")[0]
        if name.startswith("wrap"):
            code.globals[name] = identity
    return function(code)


@pytest.mark.parametrize("name", [*TAKEN, "self", "x", "class", "a b", ""])
def test_variables_hide_no_global(name: str) -> None:
    graph = Graph()
    x = graph.placeholder("x")
    shadow = graph.call_function(operator.add, (x, 0))
    shadow._name = name
    constants = everything(graph, shadow)
    root: AnyValue = type("Root", (), {"0": "zero"})()
    forward = defined_without_wrapping(graph.python_code("self"))
    result = forward(root, torch.tensor(4.0))
    assert same(result[0][0], constants)
    assert result[1:] == (2.0, len, "zero", 3)


@given(
    st.lists(
        st.sampled_from([*TAKEN, "a", "a_1", "b", "torch_1", "x" * 3, "class"]),
        min_size=1,
        max_size=6,
    ),
    st.lists(
        st.sampled_from([n for n in TAKEN if not keyword.iskeyword(n)]),
        max_size=4,
        unique=True,
    ),
)
def test_any_names_at_all(names: list[str], parameters: list[str]) -> None:
    graph = Graph()
    nodes = [graph.placeholder(name) for name in parameters]
    for name in names:
        nodes.append(graph.call_function(operator.add, (1, len(nodes))))
        nodes[-1]._name = name
    picked = graph.call_function(math.sqrt, (9,))
    graph.output((*nodes, picked, math.inf))
    values = [f"value {i}" for i in range(len(parameters))]
    rest = [1 + i for i in range(len(parameters), len(nodes))]
    assert run(graph, *values) == (*values, *rest, 3.0, math.inf)


def test_renamed_parameters_are_copied_before_they_are_hidden() -> None:
    graph = Graph()
    a, b = graph.placeholder("a"), graph.placeholder("b")
    a.name, b.name = "b", "a"
    graph.output((a, b))
    assert run(graph, 1, 2) == (1, 2)


def test_a_placeholder_behind_a_variable_of_its_name() -> None:
    graph = Graph()
    x = graph.call_function(operator.add, (1, 1), name="x")
    y = graph.placeholder("x")
    graph.output((x, y))
    assert run(graph, 7) == (2, 7)


def test_identifiers_that_python_spells_in_another_way() -> None:
    graph = Graph()
    sum_ = graph.call_function(operator.add, (1, 2), name="fi")
    x = graph.placeholder("ﬁ")
    graph.output((x, sum_))
    assert run(graph, 7) == (7, 3)
    graph.call_function(identity, (), {"ﬁ": 1})
    with pytest.raises(RuntimeError, match="keyword 'ﬁ', which no call"):
        graph.python_code("self")


def test_torch_is_renamed_as_documented() -> None:
    graph = Graph()
    x = graph.placeholder("torch")
    graph.output(graph.call_function(torch.relu, (x,)))
    code = graph.python_code("self")
    assert code.src == (
        "\n\n\ndef forward(self, torch):\n"
        "    torch_1 = torch\n"
        "    relu = torch_2.relu(torch_1);  torch_1 = None\n"
        "    return relu\n    "
    )
    assert code.globals["torch_2"] is torch
    assert "torch" not in code.globals


def test_generated_names_are_never_builtins_or_keywords() -> None:
    graph = Graph()
    for name in (*keyword.kwlist, *vars(builtins)):
        graph.call_function(operator.add, (1, 2))._name = name
    graph.output(None)
    assert run(graph) is None


# -- text that is not a name -------------------------------------------------

INJECTION = "x\nraise SystemExit('injected')\n#"


def test_notes_cannot_leave_their_comment() -> None:
    graph = Graph()
    x = graph.placeholder("x")
    relu = graph.call_function(operator.neg, (x,))
    for key in ("custom", "seq", "stack_trace", "ac_graph_id", "recompute"):
        relu.meta[key] = INJECTION
    relu.meta["custom"] = {INJECTION: INJECTION, "armed": Armed()}
    relu.meta["armed"] = Armed()
    relu.meta["colour"] = Colour.RED
    relu.meta["stack_trace"] = (
        f'File "a\rraise SystemExit(1)", line 1, in {INJECTION}\n  {INJECTION}'
    )
    x.meta["desc"] = INJECTION
    graph.output([relu]).meta["desc"] = [INJECTION]
    code = graph.python_code(
        "self",
        verbose=True,
        expanded_def=True,
        additional_meta=["seq", "armed", "colour"],
    )
    assert function(code)(None, 1) == [-1]
    assert "armed: <Armed>, colour: Colour.RED" in code.src
    assert "# x raise SystemExit('injected') #" in code.src


@pytest.mark.parametrize(
    "separator", [*"\r\n\x0b\x0c\x1c\x85\u2028\0", "\ud800"]
)
def test_no_character_ends_a_comment(separator: str) -> None:
    graph = Graph()
    node = graph.call_function(operator.neg, (1,))
    node.meta["note"] = f"a{separator}raise SystemExit(1){separator}#"
    graph.output(node)
    code = graph.python_code("self", verbose=True, additional_meta=["note"])
    assert function(code)(None) == -1


def test_class_names_cannot_leave_their_quotes() -> None:
    name = '", exec("raise SystemExit(1)"), "\n'
    armed = type(name, (torch.Tensor,), {"__repr__": refuse})
    graph = Graph()
    x = graph.placeholder("x")
    x.meta["val"] = torch.ones(2).as_subclass(armed)
    graph.call_function(identity, (armed, x.meta["val"]))
    graph.output(x)
    code = graph.python_code("self", verbose=True)
    assert function(code)(None, 1) == 1


def test_qualified_names_are_cleaned() -> None:
    def sly() -> int:
        return 5

    sly.__name__ = "f(), print('x')\n"
    sly.__qualname__ = "torch.relu"
    sly.__module__ = "torch"
    graph = Graph()
    graph.output(graph.call_function(sly))
    assert run(graph) == 5


def test_a_function_that_claims_to_be_another() -> None:
    def relu(x: AnyValue) -> AnyValue:
        return "mine"

    relu.__module__ = "torch"

    def length(x: AnyValue) -> AnyValue:
        return "mine too"

    length.__name__, length.__module__ = "len", "builtins"
    graph = Graph()
    x = graph.placeholder("x")
    calls = [
        graph.call_function(target, (x,))
        for target in (relu, length, torch.relu, len)
    ]
    graph.output(calls)
    one = torch.ones(1)
    assert run(graph, one) == ["mine", "mine too", one, 1]


def test_equal_targets_that_are_not_the_same() -> None:
    class Scale:
        def __init__(self, by: int) -> None:
            self.by = by

        def __call__(self, x: int) -> int:
            return x * self.by

        def __eq__(self, other: object) -> bool:
            return True

        __hash__ = None  # type: ignore[assignment]  # as Python does

    graph = Graph()
    x = graph.placeholder("x")
    double = graph.call_function(Scale(2), (x,))
    graph.output(graph.call_function(Scale(5), (double,)))
    assert run(graph, 1) == 10


def test_methods_of_one_object_share_a_global() -> None:
    box = collections.Counter("aab")
    graph = Graph()
    first = graph.call_function(box.total)
    second = graph.call_function(box.total)
    other = graph.call_function(collections.Counter("a").total)
    graph.output((first, second, other))
    code = graph.python_code("self")
    assert function(code)(None) == (3, 3, 1)
    bound = [v for v in code.globals.values() if getattr(v, "__self__", 0)]
    assert len(bound) == 2


@pytest.mark.parametrize(
    "text",
    ["'", '"', "\\", "\n", "{}", "{0}", "%s", "# COUNTER: 0", "\0", "\ud800"],
)
def test_strings_of_any_kind(text: str) -> None:
    graph = Graph()
    x = graph.placeholder("x", default_value=text)
    node = graph.call_function(operator.add, (text, x))
    node = graph.call_method("join", (text, (node, x)), {})
    graph.output([node, text])
    graph.on_generate_code(lambda _: lambda pieces: pieces)
    assert run(graph) == [text.join([text + text, text]), text]


def test_printing_runs_nothing_of_a_dict_key() -> None:
    key = Armed.__new__(ArmedHashable)
    assert list(constant_through({key: 1})) == [key]


class ArmedHashable:
    """Can be a key, and cannot be printed."""

    __repr__ = __str__ = __format__ = refuse


def test_classes_can_be_looked_through() -> None:
    """As `inspect`, `help`, mocks and TorchScript do."""
    for module in [m for n, m in sys.modules.items() if n.startswith("fx.")]:
        for kind in [*vars(module).values()]:
            if isinstance(kind, type) and kind.__module__.startswith("fx."):
                assert inspect.getmembers(kind)
