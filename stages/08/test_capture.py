"""Stage 08's checks of the capture: operators run, and are recorded."""

from __future__ import annotations

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

from fx.capture.capture import Capture
from fx.capture.unsupported import Constants
from fx.experimental.proxy_tensor import make_fx
from fx.use_def.values import AnyValue
from stages.checking import (
    Mistake,
    check,
    raising,
    same,
    same_graph,
    uses_intact,
    working,
)

RUN = "capture.capture.Capture.run"

aten = torch.ops.aten

# The first fake mode imports half of torch. Make it before a test is timed.
FakeTensorMode()


def capture_of(**inputs: torch.Tensor) -> Capture:
    """A capture that knows some tensors as its inputs."""
    capture = Capture({}, guards=Constants)
    for name, tensor in inputs.items():
        node = capture.create_node("placeholder", name, (), {})
        capture.bind(tensor, node)
    return capture


@pytest.mark.exercise(RUN)
def test_the_operator_is_run() -> None:
    x = torch.tensor([-1.0, 2.0])
    result = capture_of(x=x).run(aten.relu.default, (x,), {})
    check(
        not isinstance(result, FakeTensor),
        "run returned a tensor without data, which is what `bind` answers: a "
        "description of the result. Return the result itself.",
    )
    check(
        isinstance(result, torch.Tensor) and result.tolist() == [0.0, 2.0],
        "run returns what the operator computes, because the code that called "
        "relu goes on with its result.",
        picture=f"yours:    {result!r}\nexpected: tensor([0., 2.])",
    )


@pytest.mark.exercise(RUN)
def test_the_operator_is_run_without_data() -> None:
    result = Capture({}, FakeTensorMode()).run(
        aten.relu.default, (torch.ones(2),), {}
    )
    check(
        isinstance(result, FakeTensor),
        "This capture has a fake mode: it runs the operators without data. "
        "relu was given a tensor from outside, which has data, and has "
        "computed with it. Let `self._call` run the operator.",
        picture=f"yours:    {result!r}",
    )


@pytest.mark.exercise(RUN)
def test_the_operator_is_recorded() -> None:
    x, y = torch.ones(2), torch.ones(2)
    capture = capture_of(x=x, y=y)
    capture.run(aten.add.Tensor, (x, y), {"alpha": 2})
    same_graph(
        capture.graph,
        """
        graph():
            %x : [num_users=1] = placeholder[target=x]
            %y : [num_users=1] = placeholder[target=y]
            %add : [num_users=0] = call_function[target=torch.ops.aten.add.Tensor](args = (%x, %y), kwargs = {alpha: 2})
        """,  # noqa: E501
        "One node for one operator: its target is the overload, its "
        "arguments are what create_arg makes of args and of kwargs, and it "
        "asks for the name func.overloadpacket.__name__.",
    )
    uses_intact(capture.graph, "The new node must be a user of its arguments.")


@pytest.mark.exercise(RUN)
def test_an_operator_that_writes_keeps_its_underscore() -> None:
    x = torch.ones(2)
    capture = capture_of(x=x)
    capture.run(aten.add_.Tensor, (x, 1), {})
    same(
        next(iter(reversed(capture.graph.nodes))).name,
        "add_",
        "The operator is add_, which writes into its operand, and the node "
        "asks for the whole name: `func.overloadpacket.__name__`.",
    )


@pytest.mark.exercise(RUN)
def test_a_tensor_given_by_name_becomes_a_node() -> None:
    x, order = torch.ones(2), torch.tensor([0, 1])
    capture = capture_of(x=x, order=order)
    capture.run(aten.searchsorted.Tensor, (x, x), {"sorter": order})
    node = list(capture.graph.nodes)[-1]
    same(
        str(node.kwargs),
        "{'sorter': order}",
        "An argument given by its name, too, is what create_arg makes of it: "
        "else each run would have this one tensor.",
    )


@pytest.mark.exercise(RUN)
def test_the_result_is_known_from_now_on() -> None:
    x = torch.ones(2)
    capture = capture_of(x=x)
    result = capture.run(aten.relu.default, (x,), {})
    capture.run(aten.neg.default, (result,), {})
    same_graph(
        capture.graph,
        """
        graph():
            %x : [num_users=1] = placeholder[target=x]
            %relu : [num_users=1] = call_function[target=torch.ops.aten.relu.default](args = (%x,), kwargs = {})
            %neg : [num_users=0] = call_function[target=torch.ops.aten.neg.default](args = (%relu,), kwargs = {})
        """,  # noqa: E501
        "neg takes the tensor that relu made. Only if the result was bound "
        "to its node does create_arg find relu. Otherwise it takes the tensor "
        "for an attribute that existed before.",
    )


@pytest.mark.exercise(RUN)
def test_an_operator_that_raises_leaves_nothing() -> None:
    x, y = torch.ones(2), torch.ones(3)
    capture = capture_of(x=x, y=y)
    with raising(RuntimeError, "must match", "add of 2 and 3 elements raises."):
        capture.run(aten.add.Tensor, (x, y), {})
    same(
        [node.op for node in capture.graph.nodes],
        ["placeholder", "placeholder"],
        "add raised, and the graph has a node for it although the user's code "
        "may catch the error and go on: run the operator first, then add its "
        "node.",
    )
    capture = capture_of(x=x)
    for args, kwargs in (((x, y), {}), ((x,), {"other": y})):
        with raising(RuntimeError, "must match", "add of 2 and 3 raises."):
            capture.run(aten.add.Tensor, args, kwargs)
    same(
        [node.op for node in capture.graph.nodes],
        ["placeholder"],
        "add raised, and the graph has a get_attr node for its argument, a "
        "tensor from outside: create_arg adds nodes, so ask it after the "
        "operator has run.",
    )


@pytest.mark.exercise(RUN)
def test_tensors_in_a_list_are_lowered_too() -> None:
    x, y = torch.ones(2), torch.ones(2)
    capture = capture_of(x=x, y=y)
    capture.run(aten.cat.default, ([x, y],), {})
    nodes = {node.name: node for node in capture.graph.nodes}
    same(
        nodes["cat"].args,
        ([nodes["x"], nodes["y"]],),
        "cat takes a list of tensors, and the node has the tensors themselves, "
        "so that the graph gives the same result for all inputs. Give each "
        "argument to create_arg, which looks into lists; a tensor may be "
        "anywhere in it.",
    )


@pytest.mark.exercise(RUN)
def test_an_operator_that_returns_nothing_is_recorded() -> None:
    x = torch.ones(())
    capture = capture_of(x=x)
    result = capture.run(aten._assert_async.default, (x,), {})
    same(result, None, "run returns what the operator returns, here None.")
    same(
        [str(node.target) for node in capture.graph.nodes][1:],
        ["aten._assert_async.default"],
        "_assert_async(x) returns None, and is called for its effect: each "
        "operator that runs has a node, whatever it returns.",
    )


@pytest.mark.exercise(RUN)
def test_several_results_have_a_node_each() -> None:
    x = torch.ones(2, 3)
    capture = capture_of(x=x)
    values, _ = capture.run(aten.max.dim, (x, 1), {})
    capture.run(aten.neg.default, (values,), {})
    same(
        [node.name for node in capture.graph.nodes],
        ["x", "max_1", "getitem", "getitem_1", "neg"],
        "max along a dimension returns two tensors, and bind makes a getitem "
        "node for each.",
    )


@pytest.mark.exercise(RUN)
def test_numbers_do_not_come_out_of_tensors() -> None:
    def doubled(x: torch.Tensor) -> torch.Tensor:
        return x * x.sum().item()

    with raising(
        RuntimeError,
        "It appears that you're trying to get value",
        "item() asks for a number that depends on the input. The graph would "
        "hold the number of this one run, so operators that read data go to "
        "self.constants.read, which refuses.",
    ):
        make_fx(doubled)(torch.ones(2))


@pytest.mark.exercise(RUN)
def test_a_number_may_come_out_of_a_constant() -> None:
    def scaled(x: torch.Tensor) -> torch.Tensor:
        return x * (torch.tensor(2.0) + 1).item()

    sentence = (
        "torch.tensor(2.) + 1 is the same in each run, so item() is allowed. "
        "The constant of a small tensor literal is a copy of it "
        "(copy_of_small), the result that fold has computed from constants is "
        "one too, and bind must be given the constant."
    )
    try:
        results = make_fx(scaled)(torch.ones(2))(torch.ones(2)).tolist()
    except NotImplementedError:
        raise
    except RuntimeError as refused:
        raise Mistake(sentence, f"yours:    {refused}") from refused
    same(results, [3.0, 3.0], sentence)


@pytest.mark.exercise(RUN)
def test_a_constant_is_computed_with_all_arguments() -> None:
    def scaled(x: torch.Tensor) -> torch.Tensor:
        two = torch.tensor(2.0)
        return x * torch.add(two, two, alpha=3).item()

    same(
        make_fx(scaled)(torch.ones(1))(torch.ones(1)).tolist(),
        [8.0],
        "two + 3 * two is 8, where the 3 is the keyword argument alpha: give "
        "`fold` the keyword arguments, too.",
    )


@pytest.mark.exercise(RUN)
def test_what_is_read_may_be_given_by_name() -> None:
    capture = capture_of()
    two = capture.run(aten.lift_fresh.default, (torch.tensor(2.0),), {})
    with working(
        "_local_scalar_dense(self=two) reads the number of a constant, which "
        "is given by name: give `read` the keyword arguments, too."
    ):
        number: AnyValue = capture.run(
            aten._local_scalar_dense.default, (), {"self": two}
        )
    same(number, 2.0, "The constant is 2.")
    read = aten._local_scalar_dense.default
    same(
        [node.name for node in capture.graph.nodes if node.target is read],
        [],
        "Reading a number gives Python its answer, and the graph nothing: an "
        "operator that reads data has no node, which would be dead.",
    )


@pytest.mark.exercise(RUN)
def test_a_constant_may_be_zero() -> None:
    def added(x: torch.Tensor) -> torch.Tensor:
        return x + torch.tensor(0.0).item()

    with working(
        "torch.tensor(0.0) is a constant, and its truth value is false: tell "
        "`bind` of it whatever its value is."
    ):
        results = make_fx(added)(torch.ones(1))(torch.ones(1)).tolist()
    same(results, [1.0], "The constant is 0.")


@pytest.mark.exercise(RUN)
def test_a_constant_may_be_written() -> None:
    def counted(x: torch.Tensor) -> torch.Tensor:
        total = torch.tensor(2.0)
        total.add_(1)
        total.add_(1)
        return x * total.item()

    same(
        make_fx(counted)(torch.ones(1))(torch.ones(1)).tolist(),
        [4.0],
        "torch.tensor(2.) was written twice, so item() is 4. The constant of "
        "a literal is a copy: `fold` repeats each write on the constant, and "
        "if that is the result itself, each write is done twice.",
    )


@pytest.mark.exercise(RUN)
def test_a_large_literal_is_no_constant() -> None:
    def scaled(x: torch.Tensor) -> torch.Tensor:
        return x * torch.tensor([1.0] * 2000).sum().item()

    with raising(
        RuntimeError,
        "It appears that you're trying to get value",
        "The literal has 2000 elements, and the capture would keep each of "
        "them twice: only a small one has a constant, as `copy_of_small` says.",
    ):
        make_fx(scaled)(torch.ones(1))


@pytest.mark.exercise(RUN)
def test_a_new_tensor_is_new_in_every_run() -> None:
    def counted(x: torch.Tensor) -> torch.Tensor:
        return torch.tensor([1.0]).add_(x)

    gm = make_fx(counted)(torch.ones(1))
    results = [gm(torch.ones(1)).tolist() for _ in range(2)]
    same(
        results,
        [[2.0], [2.0]],
        "torch.tensor([1.]) is a new tensor in each run, and add_ writes to "
        "it. Run and record lift_fresh_copy in the place of lift_fresh; "
        "otherwise all runs write to one attribute.",
    )
