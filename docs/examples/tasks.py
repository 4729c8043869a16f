"""Answers to what people ask about torch.fx, each a program."""

from __future__ import annotations

import copy
import statistics

import torch
from torch import Tensor, nn

import fx
from fx.passes.fake_tensor_prop import FakeTensorProp
from fx.passes.split_module import split_module


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 3)
        self.drop = nn.Dropout(0.5)
        self.conv2 = nn.Conv2d(8, 4, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = self.drop(torch.relu(self.conv1(x)))
        x = self.conv2(x)
        return x


def insert_a_module() -> None:
    gm = fx.symbolic_trace(Net())
    conv = gm.graph.find_nodes(op="call_module", target="conv1")[0]
    gm.add_submodule("norm", nn.BatchNorm2d(8))
    with gm.graph.inserting_after(conv):
        norm = gm.graph.call_module("norm")
    conv.replace_all_uses_with(norm)
    norm.args = (conv,)
    gm.graph.lint()
    gm.recompile()
    print(gm.code.strip())


class Scaled(nn.Module):
    def __init__(self, conv: nn.Conv2d) -> None:
        super().__init__()
        self.conv = conv
        self.scale = nn.Parameter(torch.ones(conv.out_channels, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        x = self.conv(x) * self.scale
        return x


def replace_modules() -> None:
    gm = fx.symbolic_trace(Net())
    for path, old in list(gm.named_modules()):
        if isinstance(old, nn.Conv2d):
            gm.add_submodule(f"{path}_scaled", Scaled(old))
            for node in gm.graph.find_nodes(op="call_module", target=path):
                node.target = f"{path}_scaled"
    gm.delete_all_unused_submodules()
    gm.graph.lint()
    gm.recompile()
    print(gm.code.strip())
    print([name for name, _ in gm.named_children()])


def leave_out() -> None:
    @fx.rewrite("call_module")
    def drop(node: fx.Node, rewriter: fx.Rewriter) -> None:
        module = rewriter.gm.get_submodule(str(node.target))
        if isinstance(module, nn.Dropout | nn.Identity):
            rewriter.replace(node, node.args[0])

    gm = fx.symbolic_trace(Net())
    print(drop(gm), "left out")
    print(gm.code.strip())


class Functional(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.dropout(x, 0.5, self.training)


def drop_out() -> None:
    x = torch.ones(1000)
    fixed = fx.symbolic_trace(Functional().train()).eval()
    print("function:", bool((fixed(x) == 0).any()))
    asked = fx.symbolic_trace(nn.Sequential(nn.Dropout(0.5))).eval()
    print("module:  ", bool((asked(x) == 0).any()))


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 2)

    def encode(self, x: Tensor) -> Tensor:
        return torch.relu(self.linear(x))


def another_method() -> None:
    class Tracer(fx.Tracer):
        traced_func_name = "encode"

    model = Encoder()
    gm = fx.GraphModule(model, Tracer().trace(model))
    print(gm.code.strip())


def hooks() -> None:
    model = Net()
    for name in ("conv1", ""):
        module = model.get_submodule(name)
        module.register_forward_hook(
            lambda *_, name=name: print(f"hook of {name or 'the model'!r}")
        )
    gm = fx.symbolic_trace(model)
    print("the graph runs:")
    gm(torch.ones(1, 3, 8, 8))


class Filled(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        y = torch.zeros_like(x)
        y[0] = x[0] * 2
        return y


def item_assignment() -> None:
    try:
        fx.symbolic_trace(Filled())
    except TypeError as error:
        print(str(error).splitlines()[0])
    x = torch.arange(4.0).reshape(2, 2)
    gm = fx.trace(Filled(), x)
    print(gm(x))


class Config(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body: nn.Module = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
        self.version = 3

    def forward(self, x: Tensor) -> Tensor:
        x = self.body(x)
        return x

    def describe(self) -> str:
        return f"version {self.version}"


def attributes() -> None:
    model = Config()
    gm = fx.symbolic_trace(model)
    print(hasattr(gm, "version"), hasattr(gm, "describe"))
    model.body = fx.symbolic_trace(model.body)
    print(model.describe(), isinstance(model.body, fx.GraphModule))


class Median(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        middle: Tensor = statistics.median(x)
        return x - middle


def wrap_in_a_library() -> None:
    tracer = fx.Tracer(autowrap_modules=(statistics,))
    gm = fx.GraphModule(Median(), tracer.trace(Median()))
    print(gm.code.strip())
    print(gm(torch.tensor([1.0, 2.0, 6.0])))


def intermediate_features() -> None:
    gm = fx.symbolic_trace(Net().eval())
    nodes = {node.name: node for node in gm.graph.nodes}
    (output,) = gm.graph.find_nodes(op="output")
    output.args = ({name: nodes[name] for name in ("conv1", "relu")},)
    gm.graph.eliminate_dead_code(effects="torch")
    gm.delete_all_unused_submodules()
    gm.graph.lint()
    gm.recompile()
    found = gm(torch.ones(1, 3, 8, 8))
    print({name: tuple(value.shape) for name, value in found.items()})
    print([name for name, _ in gm.named_children()])


def signature() -> None:
    gm = fx.symbolic_trace(Net().eval())
    (x,) = gm.graph.find_nodes(op="placeholder")
    with gm.graph.inserting_after(x):
        scale = gm.graph.placeholder("scale", default_value=1.0)
        with gm.graph.inserting_after(scale):
            scaled = gm.graph.call_method("mul", (x, scale))
    x.replace_all_uses_with(scaled, lambda user: user is not scaled)
    gm.graph.lint()
    gm.recompile()
    print(gm.code.strip().splitlines()[0])
    print(gm(torch.ones(1, 3, 8, 8), scale=0.5).shape)


class Counter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(()))
        self.count: Tensor

    def forward(self, x: Tensor) -> Tensor:
        self.count.add_(1)
        return x + self.count


def state() -> None:
    class Tracer(fx.Tracer):
        proxy_buffer_attributes = True

    x = torch.zeros(())
    plain = fx.symbolic_trace(Counter())
    print("not recorded:", [int(plain(x)) for _ in range(3)])
    gm = fx.GraphModule(model := Counter(), Tracer().trace(model))
    print("recorded:    ", [int(gm(x)) for _ in range(3)])
    shown = fx.trace(Counter(), x)
    print("with fx.trace:", [int(shown(x)) for _ in range(3)])


class Reshaped(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.reshape(x.shape[0] * 2, -1)


def free_sizes() -> None:
    gm = fx.symbolic_trace(Reshaped())
    print([tuple(gm(torch.ones(n, 6)).shape) for n in (2, 5)])
    one = fx.trace(Reshaped(), torch.ones(2, 6), dynamic={"x": {0: True}})
    print(tuple(one(torch.ones(5, 6)).shape))
    try:
        one(torch.ones(5, 8))
    except fx.GuardError as error:
        print(str(error).splitlines()[0])


def devices() -> None:
    gm = fx.symbolic_trace(Net().eval())
    first = {"x", "conv1", "relu"}
    parts = split_module(gm, gm, lambda n: int(n.name not in first))
    places = ["cpu", "cpu"]  # such as "cuda:0", "cuda:1"
    for (_, part), place in zip(parts.named_children(), places, strict=True):
        part.to(place)
    for node in parts.graph.find_nodes(op="call_module"):
        place = places[int(str(node.target).removeprefix("submod_"))]
        with parts.graph.inserting_before(node):
            moved = parts.graph.call_method("to", (node.args[0], place))
        node.args = (moved, *node.args[1:])
    parts.graph.lint()
    parts.recompile()
    print(parts.code.strip())


def order_of_insertion() -> None:
    gm = fx.symbolic_trace(nn.Sequential(nn.ReLU()))
    x = gm.graph.find_nodes(op="placeholder")[0]
    with gm.graph.inserting_after(x):
        gm.graph.call_function(torch.sin, (x,))
        gm.graph.call_function(torch.cos, (x,))
    print([node.name for node in gm.graph.nodes])


def what_new_nodes_know() -> None:
    x = torch.ones(1, 3, 8, 8)
    gm = fx.trace(Net().eval(), x)
    relu = gm.graph.find_nodes(op="call_function", target=torch.relu)[0]
    with gm.graph.inserting_after(relu):
        new = gm.graph.call_function(torch.tanh, (relu,))
    relu.replace_all_uses_with(new, lambda user: user is not new)
    new.stack_trace = relu.stack_trace
    gm.recompile()
    FakeTensorProp(gm).propagate(x)
    print(tuple(new.meta["val"].shape))


class Two(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = Net()
        self.head = nn.BatchNorm2d(4)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        x = self.body(x)
        return x, self.head(x)


def nodes_of_a_layer() -> None:
    gm = fx.symbolic_trace(Two())
    for node in gm.graph.nodes:
        stack = node.meta.get("nn_module_stack", {})
        if "body" in [path for path, _ in stack.values()]:
            print(node.name, end=" ")
    print()


def without_a_branch() -> None:
    gm = fx.symbolic_trace(Two())
    (output,) = gm.graph.find_nodes(op="output")
    fx.set_outputs(gm.graph, output.all_input_nodes[0])
    gm.graph.eliminate_dead_code()
    print([node.name for node in gm.graph.nodes][-2:])
    gm.graph.eliminate_dead_code(effects="torch")
    print([node.name for node in gm.graph.nodes][-2:])


def batch_of_tensors() -> None:
    def forward(batch: dict[str, Tensor]) -> Tensor:
        return batch["x"] + batch["y"]

    leaves = {"batch": {"x": fx.PH, "y": fx.PH}}
    gm = fx.symbolic_trace(forward, concrete_args=leaves)
    print(gm({"x": torch.ones(2), "y": torch.ones(2)}))


def patterns_of_an_export() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    exported = torch.export.export(model, (torch.ones(2, 4),))
    for normalize in (False, True):
        gm = fx.from_torch(exported.module())
        found = fx.replace_pattern(
            gm,
            lambda x: torch.relu(x),
            lambda x: torch.tanh(x),
            normalize=normalize,
        )
        print(len(found))


class WithRelu(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(1, 1)

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.layer(x))


class WithGelu(WithRelu):
    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.gelu(self.layer(x))


def keep_the_weights() -> None:
    model = nn.Sequential(WithRelu(), WithRelu())
    gm = fx.symbolic_trace(model)
    fx.replace_pattern(gm, WithRelu(), WithGelu(), modules_by_class=True)
    print(gm.code.strip())
    path = "0.layer.weight"
    print("kept:", gm.get_parameter(path) is model.get_parameter(path))


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(10, 4)
        self.head = nn.Linear(4, 10, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, x: Tensor) -> Tensor:
        x = self.head(torch.relu(self.embed(x)))
        return x


def tied_weights() -> None:
    gm = fx.symbolic_trace(Tied())
    parts = split_module(gm, gm, lambda node: int(node.name == "head"))
    first, last = parts.children()
    weight = first.get_parameter("embed.weight")
    print("still tied:", last.get_parameter("head.weight") is weight)
    last = copy.deepcopy(last)  # before it goes to its device
    print("still tied:", last.get_parameter("head.weight") is weight)


@fx.wrap
def limit(x: Tensor, top: float) -> Tensor:
    return x.clamp(max=top) if bool((x > top).any()) else x


class Limited(nn.Module):
    top = 2.0

    def limited(self, x: Tensor) -> Tensor:
        return limit(x, self.top)

    def forward(self, x: Tensor) -> Tensor:
        return self.limited(x) + 1


def method_as_a_leaf() -> None:
    gm = fx.symbolic_trace(Limited())
    print(gm.code.strip())
    print(gm(torch.tensor([1.0, 5.0])))


@fx.wrap
@fx.has_side_effect
def show(x: Tensor) -> None:
    print("mean:", float(x.mean()))


def print_at_each_call() -> None:
    def forward(x: Tensor) -> Tensor:
        y = x * 2
        print("traced:", y)
        show(y)
        return y + 1

    gm = fx.symbolic_trace(forward)
    gm.graph.eliminate_dead_code()
    gm.recompile()
    gm(torch.ones(2))
    gm(torch.zeros(2))


def script_and_export() -> None:
    gm, x = fx.symbolic_trace(Net().eval()), torch.ones(1, 3, 8, 8)
    scripted = torch.jit.script(gm)
    exported = torch.export.export(gm, (x,)).module()
    compiled = torch.compile(gm, backend="eager")
    for result in (scripted, exported, compiled):
        print(torch.equal(result(x), gm(x)))
