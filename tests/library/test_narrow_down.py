"""Passes: narrow_down finds what is planted, and its program shows it."""

from __future__ import annotations

import importlib.util
import math
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType

import pytest
import torch
import torch.fx
from torch import nn

import fx
from fx.passes.narrow_down import each_alone, narrow_down
from fx.passes.two_ways import Comparison, Found, Way, _home, eager
from fx.use_def.values import AnyValue
from tests.process import python
from tests.zoo import ZOO, Network, borrow

X = torch.linspace(-1, 1, 12).reshape(3, 4)


def wrong_at(*names: str, by: float = 1.5) -> Way:
    """A backend that computes some calls wrongly, if it sees all of them."""

    def backend(gm: fx.GraphModule) -> fx.GraphModule:
        nodes = {n.name: n for n in gm.graph.nodes if n.op.startswith("call")}
        calls = [nodes[name] for name in names if name in nodes]
        if len(calls) == len(names):
            last = calls[-1]
            with gm.graph.inserting_after(last):
                new = gm.graph.call_function(torch.mul, (last, by))
            last.replace_all_uses_with(new, lambda user: user is not new)
            gm.recompile()
        return gm

    return backend


def names_found(
    gm: fx.GraphModule,
    inputs: Sequence[AnyValue],
    other: Way,
    **options: AnyValue,
) -> list[str]:
    """The calls that are found, by name; checks that they differ alone."""
    found = narrow_down(gm, inputs, other, **options)
    assert found is not None
    again = found.comparison.problem(found.module, found.inputs)
    assert again == found.problem
    assert all(node.graph is gm.graph for node in found.nodes)
    return [node.name for node in found.nodes]


FEW = [one for one in ZOO if one.name in ("resnet18", "mobilenet_v2")]


@pytest.mark.parametrize("network", FEW, ids=lambda n: str(n.name))
def test_a_wrong_call_of_a_network_is_found(network: Network) -> None:
    """Exactly that call, by bisection."""
    with borrow(network, training=False) as model:
        gm, inputs = fx.symbolic_trace(model), network.inputs()
        before = str(gm.graph)
        calls = [n for n in gm.graph.nodes if n.op.startswith("call")]
        modules = [n for n in calls if n.op == "call_module"]
        wrong = modules[len(modules) * 2 // 3]
        other = wrong_at(wrong.name)
        found = narrow_down(gm, inputs, other, rtol=1e-6)
        assert found is not None and found.nodes == (wrong,)
        assert found.runs <= 2 * math.log2(len(calls)) + 3
        assert narrow_down(gm, inputs, eager, rtol=0) is None
        assert str(gm.graph) == before


def test_calls_that_have_nothing_to_do_with_it_are_no_work() -> None:
    def forward(x):  # type: ignore[no-untyped-def]
        one, other = torch.relu(x), x
        for _ in range(60):
            other = other.sin()
        return one.exp(), other

    gm = fx.symbolic_trace(forward)
    found = narrow_down(gm, [X], wrong_at("relu", "exp"))
    assert found is not None
    assert [node.name for node in found.nodes] == ["relu", "exp"]
    assert found.runs <= 12


def chain(x: AnyValue, y: AnyValue) -> AnyValue:
    a = torch.relu(x) + y
    b = torch.sigmoid(a * 2)
    c = b.exp()
    return (c - y).tanh(), a


CHAIN = (X, X.flip(0))


@pytest.mark.parametrize(
    "name", ["relu", "add", "mul", "sigmoid", "exp", "sub"]
)
def test_each_place_of_a_chain(name: str) -> None:
    gm = fx.symbolic_trace(chain)
    assert names_found(gm, CHAIN, wrong_at(name)) == [name]
    alone = each_alone(gm, CHAIN, wrong_at(name))
    assert [[n.name for n in found.nodes] for found in alone] == [[name]]


def test_calls_that_are_wrong_only_together() -> None:
    """What a backend fuses is found, and nothing between it."""
    gm = fx.symbolic_trace(chain)
    fused = wrong_at("add", "exp")
    assert names_found(gm, CHAIN, fused) == ["add", "exp"]
    assert each_alone(gm, CHAIN, fused) == []


def test_a_difference_that_is_hidden_later() -> None:
    def hides(x):  # type: ignore[no-untyped-def]
        return torch.sign(x.exp())

    gm, other = fx.symbolic_trace(hides), wrong_at("exp")
    assert narrow_down(gm, [X], other) is None
    (found,) = each_alone(gm, [X], other)
    assert [node.name for node in found.nodes] == ["exp"]


def test_errors_that_accumulate_count_with_the_tolerance() -> None:
    def many(x):  # type: ignore[no-untyped-def]
        for _ in range(40):
            x = x * 1.0
        return x

    def slightly(gm: fx.GraphModule) -> Callable[..., AnyValue]:
        calls = sum(node.target is torch.mul for node in gm.graph.nodes)
        calls += sum(node.op == "call_function" for node in gm.graph.nodes)
        return lambda x: (x * (1 + 0.001 * calls),)

    gm = fx.symbolic_trace(many)
    found = narrow_down(gm, [X], slightly, rtol=0.0105)
    assert found is not None and len(found.nodes) == 11
    assert each_alone(gm, [X], slightly, rtol=0.0105) == []
    assert narrow_down(gm, [X], slightly, rtol=0.1) is None
    assert narrow_down(gm, [X], slightly, atol=0.1) is None


def test_an_exception_is_a_difference_of_its_own_kind() -> None:
    def raises(gm: fx.GraphModule) -> fx.GraphModule:
        names = {node.name for node in gm.graph.nodes if node.op[:4] == "call"}
        if "exp" in names:
            raise NotImplementedError("no exp here")
        if "sub" not in names:
            raise ValueError("too small")
        return gm

    gm = fx.symbolic_trace(chain)
    found = narrow_down(gm, CHAIN, raises)
    assert found is not None and found.problem.kind == "NotImplementedError"
    assert [node.name for node in found.nodes] == ["exp"]
    assert "raises NotImplementedError: no exp here" in str(found)


def test_what_the_graph_itself_raises_is_no_difference() -> None:
    gm = fx.symbolic_trace(chain)
    with pytest.raises(RuntimeError, match="size of tensor"):
        narrow_down(gm, (X, torch.ones(5)), eager)
    theirs: AnyValue = torch.fx.symbolic_trace(chain)
    with pytest.raises(TypeError, match="of torch"):
        narrow_down(theirs, CHAIN, eager)


def test_writes_are_seen_and_nothing_outside_is_changed() -> None:
    class Writes(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm = nn.BatchNorm1d(4)

        def forward(self, x: AnyValue) -> AnyValue:
            y = x * 2
            z = y.view(-1)
            x.add_(1)
            y.mul_(3)
            return self.norm(z.exp().view(3, 4) + x)

    gm = fx.symbolic_trace(Writes())
    state = {key: value.clone() for key, value in gm.state_dict().items()}
    x = X.clone()

    def forgets(gm: fx.GraphModule) -> fx.GraphModule:
        for node in gm.graph.nodes:
            if node.target == "mul_":
                node.target = "mul"
        gm.recompile()
        return gm

    assert names_found(gm, [x], forgets) == ["mul_"]
    assert torch.equal(x, X)
    assert all(torch.equal(state[k], v) for k, v in gm.state_dict().items())
    assert narrow_down(gm, [x], eager) is None


def test_random_draws_are_the_same_in_both_and_each_time() -> None:
    gm = fx.symbolic_trace(nn.Sequential(nn.Dropout(), nn.Linear(4, 4)))
    assert narrow_down(gm, [X], eager) is None
    assert names_found(gm, [X], wrong_at("_0")) == ["_0"]
    seen = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        state = torch.get_rng_state()
        found = [
            narrow_down(gm, [X], wrong_at("_1")),
            narrow_down(gm, [X], wrong_at("_0")),
        ]
        assert torch.equal(torch.get_rng_state(), state)
        assert found[0] is not None and found[1] is not None
        seen.append((found[0].inputs[0].tolist(), found[1].problem))
    assert seen[0] == seen[1]


def test_inputs_are_as_they_were_when_they_were_used() -> None:
    def forward(x):  # type: ignore[no-untyped-def]
        y = x + 1
        z = y.relu()
        y.zero_()
        return z, y.view(-1)

    gm = fx.symbolic_trace(forward)
    assert names_found(gm, [X], wrong_at("relu")) == ["relu"]
    (found,) = each_alone(gm, [X], wrong_at("relu"))
    assert torch.equal(found.inputs[0], X + 1)


def test_inputs_that_share_memory_still_do() -> None:
    def forward(x):  # type: ignore[no-untyped-def]
        y = x + 1
        z = y.view(-1)
        y.mul_(2)
        return z.exp()

    gm = fx.symbolic_trace(forward)
    fused = wrong_at("mul_", "exp")
    found = narrow_down(gm, [X], fused)
    assert found is not None
    assert [node.name for node in found.nodes] == ["mul_", "exp"]
    y, z = found.inputs
    assert y.data_ptr() == z.data_ptr()


def test_parameters_stay_parameters() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = nn.Parameter(torch.ones(4))

        def forward(self, x: AnyValue) -> AnyValue:
            return (x.exp() * self.w).relu()

    found = narrow_down(fx.symbolic_trace(Net()), [X], wrong_at("mul"))
    assert found is not None and len(found.inputs) == 1
    assert [name for name, _ in found.module.named_parameters()] == ["w"]


def test_lower_precision_and_a_pass_as_the_other_way() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.one, self.two = nn.Linear(4, 4), nn.Linear(4, 4)

        def forward(self, x: AnyValue) -> AnyValue:
            return self.two(self.one(x) * 1e-6) + 1

    def half(gm: fx.GraphModule) -> Callable[..., AnyValue]:
        low = gm.bfloat16()
        return lambda *inputs: low(*(x.bfloat16() for x in inputs))

    def folds(gm: fx.GraphModule) -> fx.GraphModule:
        fx.replace_pattern(gm, lambda x: x * 1e-6, lambda x: x * 1e-5)
        return gm

    torch.manual_seed(0)
    gm = fx.symbolic_trace(Net())
    assert narrow_down(gm, [X], half, rtol=0.1, atol=0.1) is None
    found = narrow_down(gm, [X], half, rtol=1e-4, atol=1e-4)
    assert found is not None and [n.name for n in found.nodes] == ["two"]
    assert names_found(gm, [X], folds, rtol=1e-7) == ["mul"]
    parameters = {p.dtype for p in gm.parameters()}
    assert parameters == {torch.float32}


# -- the program -------------------------------------------------------------

BACKEND = """
import torch
import fx


def backend(gm):
    for node in gm.graph.nodes:
        if node.target is torch.sigmoid{}:
            node.target = torch.tanh
    gm.recompile()
    return gm
"""


def imported(path: Path) -> ModuleType:
    """A module of a file that is in no package."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def run(program: Path) -> subprocess.CompletedProcess[str]:
    """Run the program with fx and torch alone."""
    root = Path(fx.__file__).parent.parent
    return python(str(program), env={"PYTHONPATH": str(root)})


def test_the_program_shows_the_difference_while_it_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "far").mkdir()
    file = tmp_path / "far" / "my_backend.py"
    file.write_text(BACKEND.format(""))
    monkeypatch.delitem(sys.modules, "my_backend", raising=False)
    backend = imported(file).backend
    found = narrow_down(fx.symbolic_trace(chain), CHAIN, backend, rtol=1e-5)
    assert found is not None
    program = found.write(tmp_path / "repro")
    file.unlink()
    shown = run(program)
    assert shown.returncode == 1, shown.stderr
    assert "torch.sigmoid(mul)" in shown.stdout
    assert found.problem.text in shown.stdout
    copied = tmp_path / "repro" / "my_backend.py"
    copied.write_text(BACKEND.format(" and False"))
    mended = run(program)
    assert (mended.returncode, mended.stderr) == (0, "")
    assert mended.stdout.endswith("no difference\n")
    monkeypatch.delitem(sys.modules, "my_backend")


def test_files_and_functions_that_a_program_cannot_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def found_by(name: str) -> Found:
        file = tmp_path / f"{name}.py"
        file.write_text(BACKEND.format(""))
        monkeypatch.delitem(sys.modules, name, raising=False)
        gm = fx.symbolic_trace(chain)
        found = narrow_down(gm, CHAIN, imported(file).backend, rtol=1e-5)
        assert found is not None
        return found

    with pytest.raises(ValueError, match="called as the program would be"):
        found_by("repro").write(tmp_path / "out")
    assert not (tmp_path / "out").exists()
    program = found_by("beside").write(tmp_path)
    assert run(program).returncode == 1
    found = found_by("other")
    monkeypatch.setattr(chain, "__module__", "__main__")
    for node in found.nodes:
        node.target = chain
    with pytest.raises(ValueError, match="function of the program that runs"):
        found.write(tmp_path / "out")


def test_a_module_of_a_package_may_be_called_as_the_program_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module: AnyValue = ModuleType("kit.repro")
    module.__file__ = "kit/repro.py"
    exec("def backend(gm): return gm", module.__dict__)
    monkeypatch.setitem(sys.modules, "kit.repro", module)
    assert _home(module.backend) == ("kit.repro", "backend", None)


def test_a_way_that_no_program_can_import() -> None:
    found = narrow_down(fx.symbolic_trace(chain), CHAIN, wrong_at("exp"))
    assert found is not None
    with pytest.raises(ValueError, match="top of a file"):
        found.write("never")
    assert not Path("never").exists()


@pytest.mark.parametrize(
    ("found", "right", "text"),
    [
        (lambda x: (x, x), lambda x: x, "3 values instead of 2"),
        (lambda x: None, lambda x: x, "NoneType, not Tensor"),
        (lambda x: x.sum(), lambda x: x, "shape"),
        (lambda x: 1.0, lambda x: x.sum(), "float, not Tensor"),
        (lambda x: 1, lambda x: 2, "1 != 2|not equal|not close"),
    ],
)
def test_results_of_other_kinds(
    found: AnyValue, right: AnyValue, text: str
) -> None:
    ways = Comparison(lambda gm: found, lambda gm: right)
    problem = ways.problem(fx.symbolic_trace(chain), [X])
    assert problem is not None
    assert any(part in problem.text for part in text.split("|")), problem


def test_a_graph_without_calls_has_none_that_differ() -> None:
    gm = fx.symbolic_trace(lambda x: x)
    assert narrow_down(gm, [X], lambda gm: lambda x: x + 1) is None


def test_nan_equals_nan_and_dtypes_do_not_count() -> None:
    gm = fx.symbolic_trace(chain)
    ways = Comparison(
        lambda gm: lambda x: (x / 0 * 0).double(),
        lambda gm: lambda x: x / 0 * 0,
    )
    assert ways.problem(gm, [X]) is None
