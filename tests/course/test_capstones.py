"""The capstones: our solutions pass, and wrong programs are told why."""

from __future__ import annotations

import math
import sys
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, TypeAlias

import pytest
import torch

from fx.experimental.proxy_tensor import make_fx
from fx.node import Node
from stages.capstones import board
from stages.capstones.board import FOLDER, Board, Row, _loaded, _ours, timed
from stages.capstones.gradient import test_gradient as gradient
from stages.capstones.gradient.networks import NETWORKS, program_of
from stages.capstones.gradient.variant import BINARY, UNARY, operators
from stages.capstones.int8 import test_int8 as int8
from stages.capstones.memory import test_memory as memory
from stages.checking import Mistake
from stages.manifest import EXERCISES, ROOT
from stages.tree import Tree
from tests.process import python

Anything: TypeAlias = Any

QUICK = (
    "not gpt2 and not siamese and not unet and not resnet and not densenet "
    "and (gradient or not random) and (gradient or int8 or not dlrm)"
)
"""Leaves out the large networks."""

CAPSTONES = ("gradient", "int8", "memory")


def _check(*arguments: str) -> str:
    """What a check of the capstones prints."""
    run = python(
        *("-m", "pytest", "-p", "no:cacheprovider", *arguments),
        env={"OMP_NUM_THREADS": "1"},
    )
    return run.stdout + run.stderr


def test_our_solutions_pass_and_are_measured() -> None:
    said = _check(
        "stages/capstones",
        "--reference",
        "-k",
        QUICK,
    )
    assert " passed" in said and "failed" not in said, said
    assert said.count("fx under test: fx, the reference itself") == 1
    for row in ("deep, calls", "dlrm, calls", "dlrm, error", "fpn, peak"):
        assert row in said, said
    assert "the same" in said


def _wrong(name: str, was: str, now: str) -> Anything:
    """Our solution of a capstone with a mistake in it."""
    path = FOLDER / "solutions" / f"{name}.py"
    source = path.read_text(encoding="utf-8")
    assert source.count(was) == 1, was
    module = ModuleType(f"wrong_{name}")
    sys.modules[module.__name__] = module
    exec(compile(source.replace(was, now), str(path), "exec"), vars(module))
    return module


def test_a_capstone_that_is_not_written_is_to_write() -> None:
    with pytest.raises(AssertionError, match="stages read memory"):
        _loaded("memory", FOLDER / "nothing.py")


def test_a_program_is_asked_for_once(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(board, "OWN", tmp_path)
    (tmp_path / "memory.py").touch()
    names = ("int8", "int8", "memory", "memory")
    items: list[Anything] = [
        SimpleNamespace(path=FOLDER / name / "test.py") for name in names
    ]
    tests = items[2:]
    own = Board(Tree(EXERCISES / "fx"))
    own.pytest_collection_modifyitems(request.session, items)
    asked, *others = items
    assert others == tests
    with pytest.raises(AssertionError, match=r"to write: .*int8\.py"):
        asked.runtest()


def test_a_stage_beside_a_capstone_is_refused() -> None:
    said = _check("stages/capstones/memory", "stages/01")
    assert "check the capstones alone" in said


def test_a_row_says_whose_is_better() -> None:
    assert Row("size", 8, 10, "").said.endswith("20.0% better")
    assert Row("size", 11, 10, "").said.endswith("10.0% worse")
    assert Row("time", 11, 10, "ms").said.endswith("the same")


def test_two_programs_are_timed_in_turn_with_one_thread() -> None:
    threads = torch.get_num_threads()
    said: list[object] = []

    def work(name: str) -> None:
        said.extend((name, torch.get_num_threads()))

    mine, best = timed(partial(work, "yours"), partial(work, "ours"))
    assert said[:8] == ["yours", 1, "ours", 1] * 2
    assert 0 <= mine < 100 and 0 <= best < 100
    assert torch.get_num_threads() == threads
    with pytest.raises(ZeroDivisionError):
        timed(lambda: 1 / 0, lambda: 1 / 0)
    assert torch.get_num_threads() == threads


@pytest.mark.parametrize("name", CAPSTONES)
def test_each_capstone_has_a_page_a_check_and_a_solution(name: str) -> None:
    assert (ROOT / "docs" / "capstones" / f"{name}.md").is_file()
    assert (FOLDER / name / f"test_{name}.py").is_file()
    assert _ours(name)


# --- wrong planners ---------------------------------------------------------


def _planned(change: Anything) -> None:
    """Check a planner that changes our plan."""

    def plan(gm: Anything, *inputs: torch.Tensor) -> dict[Node, Anything]:
        found: dict[Node, Anything] = change(_ours("memory").plan(gm, *inputs))
        return found

    def program(x: torch.Tensor) -> object:
        one = torch.add(x, 1)
        view = one.view(-1)
        two = torch.mul(x, 2)
        return view.view(4, 4) + two.t()

    inputs = (torch.arange(16.0).view(4, 4),)
    memory.checked(
        SimpleNamespace(plan=plan), make_fx(program)(*inputs), inputs
    )


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda plan: dict.fromkeys(plan, 0), "in the same bytes"),
        (lambda plan: {}, "give each such node its offset"),
        (lambda plan: {n: o + 4 for n, o in plan.items()}, "a multiple of 64"),
        (lambda plan: {n: o - 64 for n, o in plan.items()}, "not negative"),
        (lambda plan: [], "must return a dict"),
    ],
)
def test_a_wrong_plan_is_told(change: Anything, told: str) -> None:
    _planned(lambda plan: plan)
    with pytest.raises(Mistake, match=told):
        _planned(change)


@pytest.mark.parametrize(
    ("was", "now", "check", "told"),
    [
        (
            "(one.clone() for one in inputs)",
            "inputs",
            memory.test_a_program_that_writes_into_its_inputs,
            "`plan` changed its inputs",
        ),
        (
            "value.clone() if self._writes else value",
            "value",
            memory.test_a_program_that_writes_into_its_inputs,
            "`plan` changed its inputs, or the module",
        ),
        (
            "size = value.untyped_storage().nbytes()",
            "size = value.nbytes",
            memory.test_a_storage_is_longer_than_the_value,
            "as long as the value's storage",
        ),
    ],
)
def test_a_wrong_planner_is_told(
    was: str, now: str, check: Anything, told: str
) -> None:
    with pytest.raises(Mistake, match=told):
        check(_wrong("memory", was, now))


# --- wrong gradients --------------------------------------------------------


@pytest.mark.parametrize(
    ("case", "change", "told"),
    [
        ("sub", lambda found: (found[0], found[0]), "Gradient 1 differs"),
        ("sub", lambda found: found[:1], "a gradient for each of the 2"),
        ("broadcast", lambda found: (*found[:2], found[0]), "have the shape"),
    ],
)
def test_a_wrong_gradient_is_told(
    case: str, change: Anything, told: str
) -> None:
    ours = _ours("gradient")

    def wrong(gm: Anything, *inputs: torch.Tensor) -> Anything:
        made = ours.gradient(gm, *inputs)
        output = made.graph.output_node()
        output.args = (change(output.args[0]),)
        made.recompile()
        return made

    gradient.checked(ours, *gradient.ONE[case])
    with pytest.raises(Mistake, match=told):
        gradient.checked(SimpleNamespace(gradient=wrong), *gradient.ONE[case])


def _by_hand(*values: torch.Tensor) -> torch.Tensor:
    """A function of the learner, which may do anything."""
    return values[0]


def _changed(case: str, change: Anything) -> None:
    """Check our gradient of a case after a change of its module."""
    ours = _ours("gradient")

    def changed(gm: Anything, *inputs: torch.Tensor) -> Anything:
        made = ours.gradient(gm, *inputs)
        with made.graph.inserting_before(made.graph.output_node()):
            change(made, *inputs)
        made.recompile()
        return made

    gradient.checked(SimpleNamespace(gradient=changed), *gradient.ONE[case])


@pytest.mark.parametrize(
    "call", [torch.autograd.grad, torch.func.grad, _by_hand]
)
def test_a_gradient_of_other_calls_is_refused(call: Anything) -> None:
    with pytest.raises(Mistake, match="a graph of plain operators"):
        _changed(
            "exp", lambda made, _: made.graph.call_function(call, ((), ()))
        )


def test_a_gradient_for_one_value_is_refused() -> None:
    def keep(made: Anything, x: torch.Tensor) -> None:
        made.register_buffer("kept", torch.exp(x))
        kept = made.graph.get_attr("kept")
        made.graph.output_node().args = ((kept,),)

    with pytest.raises(Mistake, match="differs from the one"):
        _changed("exp", keep)


def test_the_derivative_at_the_kink_is_checked() -> None:
    def one_there(made: Anything, _: torch.Tensor) -> None:
        (x,) = made.graph.find_nodes(op="placeholder")
        step = made.graph.call_function(torch.ge, (x, 0))
        value = made.graph.call_method("float", (step,))
        made.graph.output_node().args = ((value,),)

    with pytest.raises(Mistake, match="differs from the one"):
        _changed("the kink of relu", one_there)


@pytest.mark.parametrize("name", NETWORKS)
def test_a_program_is_the_network_of_the_zoo(name: str) -> None:
    function, inputs, wanted = program_of(name)
    with torch.no_grad():
        torch.testing.assert_close(function(*inputs), wanted)


def test_a_transpose_of_other_dimensions_is_told() -> None:
    wrong = _wrong(
        "gradient",
        "back = torch.transpose(grad, *operands[1:])",
        "back = torch.transpose(grad, -2, -1)",
    )
    with pytest.raises(Mistake, match="have the shape"):
        gradient.test_an_operator(gradient.ONE["transpose"], wrong)


RULES: dict[str, Anything] = {
    "asinh": lambda g, y, a: (g / torch.sqrt(a * a + 1),),
    "atan": lambda g, y, a: (g / (a * a + 1),),
    "cos": lambda g, y, a: (-g * torch.sin(a),),
    "cosh": lambda g, y, a: (g * torch.sinh(a),),
    "erf": lambda g, y, a: (g * torch.exp(-a * a) * 2 / math.pi**0.5,),
    "expm1": lambda g, y, a: (g * (y + 1),),
    "log1p": lambda g, y, a: (g / (a + 1),),
    "reciprocal": lambda g, y, a: (-g * y * y,),
    "rsqrt": lambda g, y, a: (-g * y / a / 2,),
    "sin": lambda g, y, a: (g * torch.cos(a),),
    "sinh": lambda g, y, a: (g * torch.cosh(a),),
    "sqrt": lambda g, y, a: (g / y / 2,),
    "square": lambda g, y, a: (g * a * 2,),
    "atan2": lambda g, y, a, b: (
        g * b / (a * a + b * b),
        -g * a / (a * a + b * b),
    ),
    "hypot": lambda g, y, a, b: (g * a / y, g * b / y),
    "logaddexp": lambda g, y, a, b: (
        g * torch.sigmoid(a - b),
        g * torch.sigmoid(b - a),
    ),
}


def test_a_variant_needs_its_own_operators_and_can_be_solved() -> None:
    ours = _ours("gradient")
    wider = _wrong(
        "gradient",
        'node.op == "call_function"',
        'node.op.startswith("call")',
    )
    for name, rule in RULES.items():
        wider._RULES[name] = wider._RULES[getattr(torch, name)] = rule
    assert {*RULES} == {*UNARY, *BINARY}
    lists = {tuple(operators(seed)) for seed in range(8)}
    assert len(lists) == 8
    assert {one.name for each in lists for one in each} == {*RULES}
    for seed in range(8):
        for case in gradient.variant(seed).values():
            gradient.checked(wider, *case)
    for case in list(gradient.variant(1).values())[:6]:
        with pytest.raises((KeyError, Mistake)):
            gradient.checked(ours, *case)


def test_a_variant_is_listed_and_checked() -> None:
    first = operators(3)[0].written
    place = "stages/capstones/gradient"
    said = _check(place, "--reference", "--variant", "3", "-k", "operator")
    assert "failed" in said and f"the programs use\n  {first}\n" in said


# --- wrong int8 weights -----------------------------------------------------


def _small(name: str) -> Anything:
    return partial(int8.test_a_small_network, name)


def _worst(name: str) -> Anything:
    return partial(int8.test_the_worst_input, name)


def _copied(name: str) -> Anything:
    return partial(int8.test_copies_and_saved_states, name)


ONE_SCALE = "a scale for its own largest weight"
OFF = "its bound says at most"

INT8: dict[str, tuple[str, str, Anything, str]] = {
    "one scale for the whole weight": (
        ".amax(1, keepdim=True) / LEVELS",
        ".amax().expand(len(weight), 1) / LEVELS",
        _worst("ranges"),
        ONE_SCALE,
    ),
    "a scale for each input": (
        ".amax(1, keepdim=True) / LEVELS",
        ".amax(0)[:, None] / LEVELS",
        _worst("ranges"),
        "is off by",
    ),
    "a channel of zeros has a scale of one": (
        "    whole = (",
        "    scale[scale == 0] = 1\n    whole = (",
        _worst("zeros"),
        ONE_SCALE,
    ),
    "no scale is below a limit": (
        "keepdim=True) / LEVELS",
        "keepdim=True).clamp(min=1e-3) / LEVELS",
        _worst("ranges"),
        ONE_SCALE,
    ),
    "128 levels, of which int8 has no 128": (
        "/ torch.where(scale > 0, scale, 1)).round()",
        "/ torch.where(scale > 0, scale, 1) * 128 / 127).round()",
        _worst("one sign"),
        OFF,
    ),
    "a weight is cut off, and not rounded": (
        ".round()",
        ".trunc()",
        _worst("plain"),
        OFF,
    ),
    "scales of float16": (
        "weight = weight.float()",
        "pass",
        _worst("float16"),
        "in float32 at least",
    ),
    "a bound without rounding": (
        """(0.5 + LEVELS * own.eps) * scale[:, 0]
    return size.sum(-1, keepdim=True) * half + rounding""",
        """0.5 * scale[:, 0]
    return size.sum(-1, keepdim=True) * half""",
        _worst("halfway"),
        OFF,
    ),
    "a bound without the bias": (
        "sizes += 0 if bias is None else bias.detach().double().abs()",
        "",
        _worst("large bias"),
        OFF,
    ),
    "a bound by the Euclidean length of the input": (
        "size.sum(-1, keepdim=True) * half",
        "size.norm(dim=-1, keepdim=True) * half",
        _worst("plain"),
        OFF,
    ),
    "a bound that is safe and says nothing": (
        "* half + rounding",
        "* half * 4 + rounding",
        _worst("plain"),
        ONE_SCALE,
    ),
    "F.linear is forgotten": (
        'node.op != "call_function" or node.target is not F.linear',
        'node.op != "call_module"',
        _small("functional"),
        "0 numbers of int8",
    ),
    "a shared weight is made int8 for each linear": (
        "made.get(key) or _rounded(weight)",
        "_rounded(weight)",
        _small("shared"),
        "shared in int8, too",
    ),
    "the weight of an embedding": (
        "data_ptr() in others",
        "data_ptr() in ()",
        _small("tied to an embedding"),
        "head must stay in float: its weight is also the embedding's",
    ),
    "a weight that something else reads": (
        "found += _tensors(_fetched(gm, str(node.target)))",
        "pass",
        _small("weight used elsewhere"),
        "must stay in float",
    ),
    "a weight that its linear is applied to": (
        " or uses > 1",
        "",
        _small("weight used elsewhere"),
        "linear must stay in float: its weight is its input, too",
    ),
    "a linear's hooks do not run": (
        " or _has_hooks(module)",
        "",
        _small("own forward, hooks"),
        "before must stay in float: it has a hook, which must run",
    ),
    "a subclass of Linear is one": (
        "type(module) is not nn.Linear",
        "not isinstance(module, nn.Linear)",
        _small("own forward, hooks"),
        "doubling must stay in float: its type is not nn.Linear",
    ),
    "what shares memory is copied": (
        "held[path] = _fetched(gm, path)",
        "held[path] = copy.deepcopy(_fetched(gm, path))",
        _small("views"),
        "After a run, the result holds",
    ),
    "a transposed weight is in other memory": (
        "for one in found}",
        "for one in found if one.is_contiguous()}",
        _small("views"),
        "tied must stay in float: something else uses the memory",
    ),
    "float weights are kept for the next run": (
        "        if x.dtype == weight.dtype:",
        "        self.kept = weight\n        if x.dtype == weight.dtype:",
        _small("chain"),
        "After a run, the result holds",
    ),
    "the graph that is given is changed": (
        "copy.deepcopy(gm.graph)",
        "gm.graph",
        _small("functional"),
        "stay as it is, and its graph changed",
    ),
    "the module that is given is changed": (
        "    small = GraphModule(held, graph, type(gm).__name__)",
        "    small = gm.train()\n    small = GraphModule(held, graph)",
        _small("shared"),
        "must stay as it is, and its modules changed",
    ),
    "the result is in training mode": (
        "small.training = gm.training",
        "small.training = True",
        _small("shared"),
        "another mode",
    ),
    "scales are not in the state": (
        'self.register_buffer("scale", scale)',
        "self.scale = scale",
        _copied("chain"),
        "After load_state_dict",
    ),
    "autograd remembers the float weight": (
        "weight = weight.detach()",
        "pass",
        _small("chain"),
        "autograd has computed",
    ),
    "a function of the result cannot be saved": (
        "small.training = gm.training",
        "small.training, small.fn = gm.training, lambda: 0",
        _small("shared"),
        "cannot be saved",
    ),
    "no gradient reaches the input": (
        "return F.linear(x, weight, bias)\n",
        "return F.linear(x.detach(), weight, bias)\n",
        int8.test_a_gradient_reaches_the_input,
        "no gradient",
    ),
    "other linears take the place of those in a leaf": (
        "    small.training = gm.training",
        """    small.training = gm.training
    small = copy.deepcopy(small)
    for module in list(small.modules()):
        for name, child in module.named_children():
            if type(child) is nn.Linear:
                numbers = _rounded(child.weight)
                setattr(module, name, Int8Linear(numbers, child.bias))""",
        _small("leaf"),
        "cannot be run|layer must stay in float",
    ),
}
"""Wrong programs: our text, theirs, a check, and what it says of them."""


@pytest.mark.parametrize("name", INT8)
def test_wrong_int8_weights_are_told(name: str) -> None:
    was, now, check, told = INT8[name]
    with pytest.raises(Mistake, match=told):
        check(_wrong("int8", was, now))


def test_a_linear_under_another_name_is_told() -> None:
    def renamed(gm: Anything) -> Anything:
        small = _ours("int8").quantise(gm)
        node = small.graph.find_nodes(op="call_module", target="0")[0]
        with small.graph.inserting_after(node):
            other = small.graph.call_module("0", node.args)
        node.replace_all_uses_with(other)
        small.graph.erase_node(node)
        small.recompile()
        return small

    with pytest.raises(Mistake, match="must be named _0"):
        int8.test_a_small_network("chain", SimpleNamespace(quantise=renamed))
