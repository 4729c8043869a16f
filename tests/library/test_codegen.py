"""Generated code: its text, beside torch.fx's, and what it does when run."""

from __future__ import annotations

import copy
import enum
import itertools
import math
import operator
import pickle
import sys
import typing
import weakref
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
import torch
import torch.fx
from torch import nn
from torch.nn import functional as F

import fx
from fx.codegen.codegen import CodeGen
from fx.graph import Graph
from fx.recording import operators
from tests.library.generated import (
    AnyValue,
    Build,
    Lib,
    function,
    lines_of,
    node_of_line,
    overview,
    run,
    torch_text,
    written,
)


class Colour(enum.Enum):
    RED = 1
    DARK_RED = 2


class Level(enum.IntEnum):
    LOW = 1


class Pair(NamedTuple):
    first: object
    second: object


class Plain:
    """A class to annotate with."""


OPTIONAL: AnyValue = typing.Optional[Plain]  # noqa: UP045 (as users write it)
T = typing.TypeVar("T")
UNION: AnyValue = typing.Union[int, Plain]  # noqa: UP007


def scale(x: AnyValue, by: float = 2.0) -> AnyValue:
    return x * by


def emptying(*args: AnyValue) -> AnyValue:
    first, *rest = args
    first.clear()
    return rest


emptying._boxed_arg_indices = (0, 2)  # type: ignore[attr-defined]


class Emptying:
    """A callable whose attribute is not for everybody to read."""

    @property
    def _boxed_arg_indices(self) -> tuple[int, ...]:
        raise AssertionError("read")

    def __call__(self, x: AnyValue) -> AnyValue:
        return x


OTHERS = (
    *(torch.linalg.norm, torch.special.expit, torch.Tensor, torch.device),
    *(isinstance, hasattr, Plain, np.ones, sys.getsizeof, operator.not_),
    *(operator.is_, operator.contains, operator.index, operator.concat),
    *(operator.abs, operator.delitem),
)
"""Functions that have names of many kinds, and operators without a symbol."""


# -- the same text as torch.fx -----------------------------------------------


def functions(lib: Lib, graph: Lib) -> None:
    x = graph.placeholder("x")
    y = graph.call_function(torch.relu, (x,))
    y = graph.call_function(F.gelu, (y,), {"approximate": "tanh"})
    y = graph.call_function(F.max_pool2d, (y, 2))
    y = graph.call_function(torch.Tensor.add, (y, x))
    y = graph.call_function(torch.ops.aten.add.Tensor, (y, x))
    y = graph.call_function(torch.ops.aten.add, (y, x))
    y = graph.call_function(scale, (y,))
    y = graph.call_function(scale, (y,), {"by": 3})
    y = graph.call_function(math.sqrt, (y,))
    y = graph.call_function(len, (y,))
    y = graph.call_function(Pair, (y, x))
    for each in OTHERS:
        y = graph.call_function(each, (y,))
    graph.output(graph.call_function(torch.nn.init.ones_, (y,)))


def all_operators(lib: Lib, graph: Lib) -> None:
    x, y, z = map(graph.placeholder, "xyz")
    for op in operators.OPERATORS:
        # Where a value is read later, an in-place operator has no syntax.
        first = graph.call_method("clone", (x,)) if op.in_place else x
        graph.call_function(op.function, (first, y, z)[: op.arity])
        if op.arity == 2 and not op.in_place:
            graph.call_function(op.function, (x, -1))
        if op.arity == 2 and not op.in_place and op.name != "getitem":
            graph.call_function(op.function, (2.5, x))
    graph.call_function(operator.getitem, (x, (slice(1, None), ..., None, y)))
    graph.call_function(operator.setitem, (x, slice(None, y, 2), [z, 1]))
    graph.output((x, y))


def attributes(lib: Lib, graph: Lib) -> None:
    x = graph.placeholder("x")
    graph.call_function(getattr, (x, "shape"))
    graph.call_function(getattr, (x, "not a name"))
    graph.call_function(getattr, (x, "shape", None))
    graph.call_function(getattr, (torch.float32, "itemsize"))
    graph.call_function(setattr, (x, "note", 1))
    graph.get_attr("seq.0.weight")
    graph.get_attr("a.b-c.1x")
    graph.call_module("seq.0", (x,))
    graph.call_module("seq.1.2", (x, x), {"key": x})
    graph.call_method("a.b", (x, 1))
    graph.output(None)


def constants(lib: Lib, graph: Lib) -> None:
    x = graph.placeholder("x")
    graph.call_function(
        scale,
        (
            *(1, -2, 10**30, 1.5, 1e300, 1e-5, 1e16, 0.1 + 0.2, -0.0),
            *(math.inf, -math.inf, math.nan, True, None, ..., "", "# x"),
            *("it's", 'a "quote"', "' and \"", "\n\t\\", "ü\U0001f600\0"),
            *("%s {} {{}}", b"\x00'", 1 + 2j, -1.5 - 0.5j, 1e22 + 1j),
            *(range(3), range(1, 9, 2), range(10, 0, -3)),
            *((), (1,), (1, 2), [], [x, [x]], {}, {"a": x, 1: (2,)}),
            *({(1, 2): 3, None: 4, 1.5: {"k": (torch.float32, math.inf)}},),
            *({1}, frozenset((1,)), set(), frozenset(), slice(x, None)),
            *(slice(None), slice(1, None, -1), slice((1, 2), [3], "x")),
            *(torch.float32, torch.bfloat16, torch.int64, torch.bool),
            *(torch.strided, torch.sparse_coo, torch.channels_last),
            *(torch.device("cpu"), torch.device("cuda", 1)),
            *(Colour.DARK_RED, [Level.LOW, (Colour.RED,)]),
            *(Pair(x, 1), Pair((1,), x), Pair(None, (1, [2]))),
            *(torch.ops.aten.add.Tensor, torch.per_tensor_affine),
        ),
        {"k": Colour.RED, "lambda_": [math.inf]},
    )
    graph.output({"x": x})


def complex_constants(lib: Lib, graph: Lib) -> None:
    parts = 0.0, -0.0, 1.5, -math.inf, math.nan
    graph.output([complex(*both) for both in itertools.product(parts, parts)])


def annotated(lib: Lib, graph: Lib) -> None:
    for index, kind in enumerate(
        (
            *(int, torch.Tensor, Plain, nn.Module, typing.Any, "Plain"),
            *(typing.List[int], typing.Dict[str, torch.Tensor]),  # noqa: UP006
            *(typing.Tuple[int, ...], typing.Tuple[()]),  # noqa: UP006
            *(typing.List, typing.Dict, typing.Tuple),  # noqa: UP006
            *(list[int], dict[str, list[Plain]], tuple[int, ...], tuple[()]),
            *(OPTIONAL, UNION, typing.Literal["a b", 3]),
            *(torch.device, torch.dtype, type(None), list["Plain"]),
            *(typing.Callable[..., int], typing.Type[int]),  # noqa: UP006
            *(float, str, bool, complex, bytes, object, list, dict, tuple),
            *(torch.Size, nn.Linear, nn.Parameter, type(...), Pair, Colour),
            *(set[int], type[int], list[list[torch.Tensor]], list[OPTIONAL]),
            *(typing.Callable, typing.Iterable[int], T, 3),
            typing.List[typing.Dict[str, typing.Tuple[int, Plain]]],  # noqa: UP006
            typing.Union[int, None, torch.Tensor],  # noqa: UP007
        )
    ):
        graph.placeholder(f"x{index}", kind)
    relu = graph.call_function(torch.relu, (1,), type_expr=Plain)
    add = graph.call_function(operator.iadd, (relu, 1), type_expr=OPTIONAL)
    graph.output(add, tuple[int, Plain])


def unions(lib: Lib, graph: Lib) -> None:
    graph.placeholder("x", int | None)
    graph.placeholder("y", str | list[int | Plain] | None)
    graph.output(1, tuple[int, Plain | None])


def boxes(lib: Lib, graph: Lib) -> None:
    x, y, z, w = map(graph.placeholder, "xyzw")
    a, b = (graph.call_function(torch.relu, (each,)) for each in (x, y))
    run = graph.call_function(scale, ([a, b, {"k": z}], z), {"k": y})
    run.meta["boxed_arg_indices"] = (0,)
    args = ([run, (w,)], w, [x, z])
    run = graph.call_function(emptying, args, type_expr=Plain)
    for said in ((), (0,)):
        run = graph.call_function(emptying, ([run, (y,)], y))
        run.meta.update(boxed_arg_indices=said, is_wrapped=True)
    add = graph.call_function(operator.add, (run, run))
    add.meta["boxed_arg_indices"] = (0, 1)
    unused = graph.call_function(scale, ([add], 2.0))
    unused.meta["boxed_arg_indices"] = [0, 1]
    graph.output(add)


def parameters(lib: Lib, graph: Lib) -> None:
    x = graph.placeholder("x", int)
    graph.placeholder("toUpper")
    graph.placeholder("len")
    graph.placeholder("y", default_value=None)
    graph.placeholder("z", float, default_value=(1, Colour.RED))
    rest = graph.placeholder("*args")
    options = graph.placeholder("**kwargs")
    graph.output((x, rest, options), int)


def dead_values(lib: Lib, graph: Lib) -> None:
    x, y = graph.placeholder("x"), graph.placeholder("y")
    graph.placeholder("unused")
    a = graph.call_function(torch.add, (x, y))
    graph.call_function(print, (a,))
    b = graph.call_function(torch.add, (y, a), {"out": x})
    c = graph.call_method("add", (b, [b, {"k": a}]))
    graph.call_module("effect", ())
    graph.output(c)


def leaf_functions(lib: Lib, graph: Lib) -> None:
    x = graph.placeholder("x")
    for target in (scale, len, scale):
        x = graph.call_function(target, (x,))
        x.meta["is_wrapped"] = True
    graph.output(x)


def many_of_one_name(lib: Lib, graph: Lib) -> None:
    x = graph.placeholder("add_1")
    for _ in range(3):
        x = graph.call_function(operator.add, (x, x))
    x.name = "len"
    graph.call_function(print, (x,)).name = "not legal"
    graph.call_function(print, (x,)).name = "add"
    graph.output(x)


def nothing(lib: Lib, graph: Lib) -> None:
    pass


BUILDS: tuple[Build, ...] = (
    overview,
    functions,
    all_operators,
    attributes,
    constants,
    annotated,
    parameters,
    dead_values,
    leaf_functions,
    many_of_one_name,
    nothing,
)
SINCE_2_15: tuple[Build, ...] = (complex_constants, unions, boxes)
OPTIONS: tuple[dict[str, AnyValue], ...] = (
    {},
    {"verbose": True},
    {"expanded_def": True},
    {"record_func": True},
    {"colored": True},
    {"verbose": True, "colored": True, "record_func": True},
    {"verbose": True, "include_stride": True, "include_device": True},
)


def option_name(options: dict[str, AnyValue]) -> str:
    return "+".join(options) or "plain"


# torch.fx writes the names of profiler ranges with nodes' own names.
def _both_can(build: Build, options: dict[str, AnyValue]) -> bool:
    return not (build is many_of_one_name and "record_func" in options)


@pytest.mark.parametrize(
    ("build", "options"),
    [(b, o) for b in BUILDS for o in OPTIONS if _both_can(b, o)],
    ids=lambda x: option_name(x) if isinstance(x, dict) else x.__name__,
)
def test_text_is_that_of_torch(
    build: Build, options: dict[str, AnyValue]
) -> None:
    theirs = written(build, torch.fx, **options)
    ours = written(build, fx, **options)
    assert ours.src == torch_text(theirs)
    assert ours._prologue_start == theirs._prologue_start


@pytest.mark.newest
@pytest.mark.parametrize("options", OPTIONS, ids=option_name)
@pytest.mark.parametrize("build", SINCE_2_15, ids=lambda x: x.__name__)
def test_text_is_that_of_torch_2_15(
    build: Build, options: dict[str, AnyValue]
) -> None:
    test_text_is_that_of_torch(build, options)
    test_globals_are_those_of_torch(build)


@pytest.mark.parametrize("build", BUILDS)
def test_globals_are_those_of_torch(build: Build) -> None:
    theirs, ours = written(build, torch.fx), written(build, fx)
    assert ours.globals.keys() - {"wrap"} == theirs.globals.keys()
    for name in theirs.globals.keys() - {"fx_pytree"}:
        mine, other = ours.globals[name], theirs.globals[name]
        assert mine is other or mine == other


@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("options", [{}, {"record_func": True}], ids=str)
def test_line_map_is_that_of_torch(
    build: Build, options: dict[str, AnyValue]
) -> None:
    theirs = written(build, torch.fx, **options)
    ours = written(build, fx, **options)
    assert ours._lineno_map == theirs._lineno_map


@pytest.mark.claims("codegen-type-annotations")
def test_annotations_are_evaluated_to_what_they_were() -> None:
    forward = function(written(annotated, fx))
    kinds = forward.__annotations__
    assert kinds["x2"] is Plain
    assert kinds["x5"] == "Plain"
    assert kinds["x14"] == dict[str, list[Plain]]
    assert kinds["x17"] == OPTIONAL
    assert kinds["x19"] == typing.Literal["a b", 3]
    assert kinds["return"] == tuple[int, Plain]
    kinds = function(written(unions, fx)).__annotations__
    assert kinds["y"] == str | list[int | Plain] | None


def test_annotations_that_torch_garbles() -> None:
    graph = Graph()
    annotated_int = typing.Annotated[int, "metres"]
    takes_ints = typing.Callable[[int, int], str]
    graph.placeholder("x", annotated_int)
    graph.placeholder("f", takes_ints)
    graph.placeholder("y", [Plain])
    graph.output(None)
    code = graph.python_code("self")
    kinds = function(code).__annotations__
    assert "f : collections_abc_Callable[[int,int],str]" in code.src
    assert kinds["x"] == annotated_int
    assert typing.get_args(kinds["f"]) == typing.get_args(takes_ints)
    assert kinds["y"] == [Plain]


@pytest.mark.claims("codegen-wrap-statements")
def test_leaf_functions_are_wrapped_again() -> None:
    code = written(leaf_functions, fx)
    name = f"{__name__.replace('.', '_')}_scale"
    assert code.src.startswith(f'\nwrap("{name}")\nwrap("len")\n\ndef ')
    assert code._prologue_start == 5
    assert code.globals["wrap"] is fx.wrap
    assert code.globals[name] is scale


def test_an_operator_as_a_leaf_function_is_not_wrapped() -> None:
    graph = Graph()
    x = graph.placeholder("x")
    node = graph.call_function(torch.relu, (x,))
    node.meta["is_wrapped"] = True  # by Tracer(autowrap_functions=…)
    graph.output(node)
    assert "wrap(" not in graph.python_code("self").src


def test_a_graph_without_output_returns_none() -> None:
    graph = Graph()
    x = graph.placeholder("x")
    graph.call_function(operator.neg, (x,))
    assert run(graph, 3) is None


# -- what the code does ------------------------------------------------------


@pytest.mark.parametrize("op", operators.OPERATORS, ids=lambda op: op.name)
def test_operators_compute_what_the_function_computes(
    op: operators.Operator,
) -> None:
    operands: dict[str, list[AnyValue]] = {
        "getitem": [[1, 2, 3], 1],
        "setitem": [[1, 2, 3], 1, 9],
        "matmul": [torch.eye(2), torch.ones(2)],
        "imatmul": [torch.eye(2), torch.ones(2)],
    }
    values = operands.get(op.name, [6, 2])[: op.arity]
    graph = Graph()
    nodes = tuple(graph.placeholder(f"x{i}") for i in range(op.arity))
    node = graph.call_function(op.function, nodes)
    graph.output((node, nodes[0]) if op.name == "setitem" else node)
    expected = copy.deepcopy(values)
    result = op.function(*expected)
    if op.name == "setitem":
        assert run(graph, *values) == (None, expected[0])
    else:
        assert torch.equal(
            torch.as_tensor(run(graph, *values)), torch.as_tensor(result)
        )


def test_operators_that_their_syntax_does_not_fit_are_called() -> None:
    graph = Graph()
    x = graph.placeholder("x")
    graph.call_function(operator.iadd, (1, x))
    graph.call_function(operator.iadd, ([x], [1]))
    graph.call_function(operator.getitem, (None, x))
    graph.call_function(operator.add, (x,))
    graph.call_function(operator.add, (x, x), {"k": 1})
    graph.call_function(operator.setitem, ([x], 0, 1))
    graph.call_function(getattr, (x,))
    graph.call_function(getattr, (x, "class"))
    graph.output(None)
    code = graph.python_code("self")
    function(code)  # no SyntaxError, no SyntaxWarning
    assert [line.partition(";")[0] for line in lines_of(code)[:-1]] == [
        "iadd = _operator_iadd(1, x)",
        "iadd_1 = _operator_iadd([x], [1])",
        "getitem = _operator_getitem(None, x)",
        "add = _operator_add(x)",
        "add_1 = _operator_add(x, x, k = 1)",
        "setitem = _operator_setitem([x], 0, 1)",
        "getattr_1 = getattr(x)",
        "getattr_2 = getattr(x, 'class')",
    ]


def test_a_member_of_an_enum_that_python_reads_as_another() -> None:
    kind = enum.Enum("Ligature", {"\ufb01": 1, "fi": 2})  # type: ignore[misc]
    graph = fx.Graph()
    graph.output(kind["\ufb01"])
    assert fx.GraphModule(nn.Module(), graph)() is kind["\ufb01"]


ODD_NAMES = (
    *("0", "class", "None", "a b", 'quote"key', "it's", "new\nline"),
    *("back\\slash", "ﬁ", "\ud800", "x)(", "{}"),
)


@pytest.mark.parametrize("name", ODD_NAMES)
def test_submodules_may_have_any_name(name: str) -> None:
    class Root:
        """Has the attributes that it is given."""

    root = Root()
    setattr(root, name, scale)
    graph = Graph()
    x = graph.placeholder("x")
    called = graph.call_module(name, (x,))
    fetched = graph.get_attr(name)
    graph.output((called, fetched))
    assert run(graph, 3, root=root) == (6, scale)


@pytest.mark.parametrize(
    "name", ["class", "None", "ﬁ", "_private", "x.class", "match", "naïve"]
)
def test_methods_may_have_any_identifier_for_a_name(name: str) -> None:
    class Holder:
        """Has the attributes that it is given."""

        x: AnyValue

    holder = Holder()
    holder.x = Holder()
    owner = holder.x if "." in name else holder
    setattr(owner, name.removeprefix("x."), scale)
    graph = Graph()
    x = graph.placeholder("x")
    graph.output(graph.call_method(name, (x, 3)))
    assert run(graph, holder) == 6


# -- which node a line is from -----------------------------------------------


def test_lines_lead_to_their_nodes_also_below_comments() -> None:
    graph = Graph()
    overview(fx, graph)
    for node in graph.nodes:
        node.meta["stack_trace"] = f'File "a.py", line 1, in {node.name}\n  x'
    code = graph.python_code("self", verbose=True)
    found = node_of_line(graph, code)
    assert found["param = self.param"] == "param"
    assert found["add = x + param;  x = param = None"] == "add"
    assert found["return clamp"] == "output"


# -- code transformers -------------------------------------------------------


def transformed(
    lib: Lib, transformer: Callable[[list[str]], list[str]]
) -> tuple[AnyValue, AnyValue]:
    graph = lib.Graph()
    parameters(lib, graph)
    relu = graph.call_function(torch.relu, ("# COUNTER: 7",))
    relu.prepend(graph.call_function(torch.neg, (1,)))
    graph.on_generate_code(lambda _: transformer)
    return graph, graph.python_code("self")


def test_transformers_get_the_pieces_that_torch_gives_them() -> None:
    seen: list[list[str]] = []

    def look(pieces: list[str]) -> list[str]:
        seen.append([*pieces])
        return pieces

    transformed(torch.fx, look)
    transformed(fx, look)
    theirs, ours = seen
    assert ours == theirs


def test_transformed_text_and_line_map() -> None:
    def edit(pieces: list[str]) -> list[str]:
        extra = ["import os\n", "first = 1\nsecond = 2\n"]
        return [*extra, *pieces, "last = 3\n"]

    graph, code = transformed(fx, edit)
    found = node_of_line(graph, code)
    assert lines_of(code)[:3] == ["import os", "first = 1", "second = 2"]
    assert found["second = 2"] is None
    assert found["_args = args"] == "_args"
    # A string is no counter, whatever it says.
    assert found["relu = torch.relu('# COUNTER: 7');  relu = None"] == "relu"
    _, theirs = transformed(torch.fx, edit)
    line = "    relu = torch.relu('# COUNTER: 7');  relu = None\n"
    assert theirs.src == code.src.replace(line, "")


def test_a_transformer_of_nothing() -> None:
    graph = Graph()
    with graph.on_generate_code(lambda _: lambda pieces: [*pieces, "a = 1\n"]):
        code = graph.python_code("self")
        assert lines_of(code) == ["pass", "a = 1"]
    assert lines_of(graph.python_code("self")) == ["pass"]


# -- subclasses of CodeGen ---------------------------------------------------


class ListCodeGen(CodeGen):
    """As in torch's tests: one parameter, a list of all inputs."""

    def gen_fn_def(
        self, free_vars: list[str], maybe_return_annotation: str, **_: AnyValue
    ) -> str:
        taken = ", ".join(free_vars)
        return (
            f"def forward(self, args_list: List[torch.Tensor])"
            f"{maybe_return_annotation}:\n    {taken}, = args_list"
        )

    def additional_globals(self) -> list[tuple[str, AnyValue]]:
        return [("List", list), ("Tensor", torch.Tensor)]

    def process_inputs(self, *args: AnyValue) -> AnyValue:
        return args[0]


def test_a_signature_of_its_own() -> None:
    graph = Graph()
    x, y = graph.placeholder("x"), graph.placeholder("y")
    graph.output(graph.call_function(operator.sub, (x, y)))
    graph.set_codegen(ListCodeGen())
    code = graph.python_code("self")
    assert function(code)(None, [5, 3]) == 2
    # torch.fx binds no name for what lives in torch.
    assert code.globals["Tensor"] is torch.Tensor
    assert graph.process_inputs([1, 2]) == [1, 2]
    assert node_of_line(graph, code)["return sub"] == "output"


class OldCodeGen(CodeGen):
    """Written against older signatures, with repr for text."""

    def gen_fn_def(  # type: ignore[override]  # on purpose
        self, free_vars: list[str], maybe_return_annotation: str
    ) -> str:
        return super().gen_fn_def(free_vars, maybe_return_annotation)

    def generate_output(  # type: ignore[override]  # on purpose
        self, output_args: AnyValue
    ) -> str:
        return f"result = {output_args!r}\nreturn result"


def renamed_add(lib: Lib, graph: Lib) -> None:
    x = graph.placeholder("x")
    add = graph.call_function(operator.add, (x, 1))
    add.name = "len"
    graph.output((add, [x]))


def test_overrides_of_any_age_and_reprs_of_nodes() -> None:
    texts = []
    for lib, base in ((torch.fx, torch.fx.graph.CodeGen), (fx, CodeGen)):
        graph: AnyValue = lib.Graph()
        renamed_add(lib, graph)
        override = {"generate_output": OldCodeGen.generate_output}
        old = type("Old", (base,), override)
        graph.set_codegen(old())
        texts.append(graph.python_code("self").src)
    assert texts[0] == texts[1]
    assert "result = (len_1, [x])\n    return result" in texts[1]


def test_old_signatures_are_called_as_they_are() -> None:
    graph = Graph()
    renamed_add(fx, graph)
    graph.set_codegen(OldCodeGen())
    assert run(graph, 1) == (2, [1])
    found = node_of_line(graph, graph.python_code("self"))
    assert found["return result"] == "output"
    assert [repr(node) for node in graph.nodes] == ["x", "len", "output"]


def test_reprs_come_back_if_an_override_raises() -> None:
    class Broken(CodeGen):
        def generate_output(self, output_args: AnyValue, **_: AnyValue) -> str:
            raise ValueError(repr(output_args))

    graph = Graph()
    renamed_add(fx, graph)
    graph.set_codegen(Broken())
    with pytest.raises(ValueError, match=r"\(len_1, \[x\]\)"):
        graph.python_code("self")
    assert [repr(node) for node in graph.nodes] == ["x", "len", "output"]


def test_code_generators_are_copied_and_pickled_with_their_graph() -> None:
    graph = Graph()
    overview(fx, graph)
    graph.set_codegen(ListCodeGen())
    text = graph.python_code("self").src
    for twin in (copy.deepcopy(graph), pickle.loads(pickle.dumps(graph))):
        assert type(twin._codegen) is ListCodeGen
        assert twin.python_code("self").src == text


# -- what cannot be written --------------------------------------------------


def test_unknown_opcodes() -> None:
    graph = Graph()
    x = graph.placeholder("x")
    x.op = "jump"  # type: ignore[assignment]  # the point of the test
    with pytest.raises(NotImplementedError, match="node: jump x"):
        graph.python_code("self")


@pytest.mark.parametrize(
    ("op", "target"),
    [
        ("call_module", torch.relu),
        ("call_method", torch.relu),
        ("get_attr", torch.relu),
        ("call_function", "relu"),
    ],
)
def test_targets_of_the_wrong_type(op: AnyValue, target: AnyValue) -> None:
    graph = Graph()
    x = graph.placeholder("x")
    node = graph.create_node("call_module", "m", (x,))
    node.op, node.target = op, target
    with pytest.raises(ValueError, match=r"Node \[name = 'm'\] target"):
        graph.python_code("self")


def test_an_output_of_nothing() -> None:
    graph = Graph()
    graph.output(None).args = ()
    with pytest.raises(RuntimeError, match="output returns nothing"):
        graph.python_code("self")


def break_order(graph: Graph) -> None:
    graph.placeholder("x", default_value=1)
    graph.placeholder("y")


def break_uniqueness(graph: Graph) -> None:
    graph.placeholder("x")
    graph.placeholder("x")


def break_stars(graph: Graph) -> None:
    graph.placeholder("**kwargs")
    graph.placeholder("x")


def break_identifier(graph: Graph) -> None:
    graph.placeholder("x").target = "x=print(1)"


@pytest.mark.parametrize(
    "build", [break_order, break_uniqueness, break_stars, break_identifier]
)
def test_parameters_that_no_function_can_have(
    build: Callable[[Graph], None],
) -> None:
    graph = Graph()
    build(graph)
    with pytest.raises(RuntimeError, match=r"placeholder [xy]"):
        graph.python_code("self")


def test_arguments_of_another_graph() -> None:
    graph, other = Graph(), Graph()
    x = graph.placeholder("x")
    y = other.placeholder("y")
    node = graph.call_function(torch.relu, (x,))
    node._args = (y,)  # what no public call can do
    with pytest.raises(RuntimeError, match=r"Node y, used by .*replace_input"):
        graph.python_code("self")


# -- boxes ---------------------------------------------------------------------


def test_what_is_in_a_box_is_freed_when_the_box_is_emptied() -> None:
    alive: list[list[bool]] = []

    def watch(box: list[AnyValue], kept: AnyValue) -> AnyValue:
        known = [weakref.ref(each) for each in box]
        box.clear()
        alive.append([each() is not None for each in known])
        return kept

    graph = Graph()
    x = graph.placeholder("x")
    a, b, c = (graph.call_function(torch.add, (x, i)) for i in range(3))
    first = graph.call_function(watch, ([a, b], c))
    first.meta["boxed_arg_indices"] = (0,)
    graph.output((first, b))
    gm = fx.GraphModule({}, graph)
    seen = gm(torch.ones(2))
    assert alive == [[False, True]]
    torch.testing.assert_close(
        seen, (torch.full((2,), 3.0), torch.full((2,), 2.0))
    )
    code = graph.python_code("self")
    lines = node_of_line(graph, code)
    assert [lines[line] for line in lines if "box" in line] == ["watch"] * 2


@pytest.mark.parametrize("said", [(1,), (-1,), ("0",), 0, {0}])
def test_a_box_that_no_argument_can_be(said: object) -> None:
    graph = Graph()
    node = graph.call_function(scale, ([graph.placeholder("x")],))
    node.meta["boxed_arg_indices"] = said
    graph.output(node)
    with pytest.raises(RuntimeError, match="Node scale is said to take boxes"):
        graph.python_code("self")


def test_what_a_function_says_of_boxes_runs_no_code() -> None:
    graph = Graph()
    graph.output(graph.call_function(Emptying(), (graph.placeholder("x"),)))
    with pytest.raises(RuntimeError, match="boxes at <property object"):
        graph.python_code("self")


def test_a_fixed_input_beside_nested_ones_keeps_its_default() -> None:
    def root(d: AnyValue, m: AnyValue = None, k: float = 3.0) -> AnyValue:
        return d["a"] * k if m is None else d["a"]

    gm = fx.symbolic_trace(root, {"d": {"a": fx.PH}, "m": None})
    assert "forward(self, d, m = None, k = 3.0)" in gm.code
    assert gm({"a": torch.ones(1)}).item() == 3


def test_a_function_of_torch_that_is_replaced_has_its_name_by_torchs_rule(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    relu = torch.relu
    gm = fx.symbolic_trace(lambda x: torch.relu(x))
    monkeypatch.setattr(torch, "relu", lambda x: relu(x) + 1)
    gm.recompile()
    assert "torch_relu(x)" in gm.code
    with fx.effects.by_rule("torch"):
        gm.recompile()
    assert "torch.relu(x)" in gm.code
