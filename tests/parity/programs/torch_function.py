"""torch's functions on proxies: caught by the __torch_function__ protocol."""

from __future__ import annotations

from typing import no_type_check

import torch
from torch import nn
from torch.nn import functional as F

from tests.parity.harness import Lib, Seen, error, program, show
from tests.parity.programs._subjects import (
    AnyValue,
    Root,
    lines,
    new_nodes,
    proxies,
    proxy,
    subclass,
)


@program(claims=("torch-function-intercepts",))
def torch_functions_ask_the_proxy(lib: Lib) -> Seen:
    asked = []

    def spy(cls: AnyValue, orig: AnyValue, *rest: object) -> AnyValue:
        asked.append(orig.__name__)
        return lib.Proxy.__torch_function__.__func__(cls, orig, *rest)

    def unaware(value: object) -> object:
        return value

    named = {"__torch_function__": classmethod(spy)}
    spying = subclass(lib.Proxy, **named)
    p = spying(lib.Graph().placeholder("x"))
    results = [torch.relu(p), F.gelu(p), torch.cat([p, p]), torch.sum(p, dim=0)]
    return [
        asked,
        [isinstance(r, lib.Proxy) for r in results],
        unaware(p) is p,
        lines(p.node.graph),
        torch.relu is torch._C._VariableFunctions.relu,
    ]


@program(claims=("torch-function-function-call",))
def a_free_function_is_recorded_under_its_name(lib: Lib) -> Seen:
    p = proxy(lib)
    results = [
        F.relu(p),
        torch.sum(p),
        torch.sum(p),
        torch.abs(p),
        F.gelu(p, approximate="tanh"),
        torch.nn.functional.conv2d(p, p, padding=1),
        torch.linalg.norm(p),
        torch.special.expit(p),
        torch.fft.fft(p),
        torch.max(p, dim=0),
        torch.where(p, p, 0.0),
        torch.ops.aten.add.Tensor(p, 1),
        torch.einsum("ij,jk->ik", p, p),
        torch.stack((p, p)),
        torch.split(p, [1, 2], dim=1),
        torch.any(p),
        torch.all(p),
        torch.pow(2, p),
    ]
    return [
        results[0].node.target is F.relu,
        [r.node.name for r in results],
        str(p.node.graph),
    ]


@program(claims=("torch-function-function-call",))
def a_functions_kwargs_stay_as_they_were_written(lib: Lib) -> Seen:
    @no_type_check
    def f(x, w):
        y = F.linear(x, w, bias=None)
        y = F.layer_norm(y, (2,), eps=1e-3)
        y = F.dropout(y, p=0.5, training=False)
        y = torch.softmax(y, -1, dtype=torch.float64)
        values, indices = torch.topk(y, 1)
        top = torch.max(y, dim=1)
        return values, indices, top.values, top[1], F.pad(y, (1, 0), value=-1.0)

    x, w = torch.tensor([[1.0, 2.0]]), torch.eye(2)
    return show(lib.symbolic_trace(f), x, w)


@program(claims=("torch-function-method-call",))
def a_tensor_method_is_recorded_as_call_method(lib: Lib) -> Seen:
    p = proxy(lib)
    one = torch.ones(2)
    graph = p.node.graph
    one.add(p)  # the base tracer keeps tensors as they are
    torch.Tensor.mul(one, p)
    added, multiplied = list(graph.nodes)[1:]
    return [
        (added.op, added.target, multiplied.op, multiplied.target),
        added.args[0] is one and added.args[1] is p.node,
        error(lambda: torch.Tensor.add(p, 1)),
        show(lib.symbolic_trace(lambda x: one.add(x)), torch.ones(2)),
    ]


@program(claims=("torch-function-method-call",))
def methods_of_tensor_constants_with_proxies(lib: Lib) -> Seen:
    table = torch.arange(6.0).reshape(3, 2)

    @no_type_check
    def f(x, i):
        return (
            table.mm(x),
            table.index_select(0, i),
            table.eq(x),
            table.where(i > 0, x),
            table[0].mul(x),
        )

    return show(lib.symbolic_trace(f))


@program(claims=("torch-function-single-tracer",))
def proxies_of_two_tracers_do_not_mix_in_torch_functions(lib: Lib) -> Seen:
    p, q = proxy(lib, "x"), proxy(lib, "y")
    return [
        error(lambda: torch.add(p, q), chars=32),
        error(lambda: torch.cat([p, q]), chars=32),
        error(lambda: torch.where(p, p, q), chars=32),
        error(lambda: torch.add(p, 1, alpha=q), chars=32),
        error(lambda: torch.ones(2).add(p)),
        lines(p.node.graph)[:1],
    ]


@program(claims=("torch-function-script-method",))
def a_scripted_submodule_is_called_as_a_method(lib: Lib) -> Seen:
    scripted = torch.jit.script(nn.Sequential(nn.ReLU()))
    root = Root(lambda self, x: self.sub(x) + 1, sub=scripted)
    gm = lib.symbolic_trace(root)
    return [lines(gm.graph), gm.code, gm(torch.tensor([-1.0, 1.0]))]


@program()
@no_type_check
def other_modules_of_torchscript_are_called_as_methods(lib):
    class Scripted(torch.jit.ScriptModule):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.full((2,), 3.0))

        @torch.jit.script_method
        def forward(self, x):
            return x * self.scale

    x = torch.tensor([[-1.0, 1.0], [2.0, 0.5]])
    seen = []
    norm = nn.BatchNorm1d(2).eval()
    for sub in (torch.jit.trace(norm, x), torch.jit.script(norm), Scripted()):
        gm = lib.symbolic_trace(Root(lambda self, x: self.sub(x) + 1, sub=sub))
        seen.append([lines(gm.graph), gm.code, gm(x)])
    return seen


@program(claims=("torch-function-higher-order",))
def higher_order_operators_refuse_arbitrary_callables(lib: Lib) -> Seen:
    p = proxy(lib)
    cond = torch.ops.higher_order.cond
    dispatch = lib.Proxy.__torch_function__

    def call(*args: object) -> object:
        return dispatch(cond, (lib.Proxy,), args, {})

    return [
        error(lambda: call(p, lambda x: x, lambda x: -x, (p,)), chars=48),
        error(lambda: call(p, [len], None, (p,)), chars=48),
        error(lambda: call(p, None, None, (p,))),
        lines(p.node.graph),
    ]


@program(claims=("torch-function-function-call",))
def no_grad_and_autocast_are_not_in_the_graph(lib: Lib) -> Seen:
    @no_type_check
    def f(x):
        with torch.no_grad():
            y = x * 2
        with torch.autocast("cpu", dtype=torch.bfloat16):
            z = torch.relu(y)
        return y, z

    return show(lib.symbolic_trace(f), torch.ones(2))


@program(claims=("torch-function-method-call",))
def what_torch_says_of_proxies_before_it_asks_them(lib: Lib) -> Seen:
    p, q = proxies(lib, "x", "y")
    graph = p.node.graph
    return [
        error(lambda: torch.Tensor.relu(p), chars=50),
        error(lambda: torch.Tensor.__add__(p, q), chars=50),
        new_nodes(graph, lambda: torch.is_floating_point(p)),
        new_nodes(graph, lambda: torch.numel(p)),
        torch.is_tensor(p),
        error(lambda: torch.tensor(p), chars=20),
        error(lambda: torch.add(p, [q]), chars=40),  # type: ignore[call-overload]
    ]


@program(claims=("torch-function-function-call",))
def modules_of_torch_entered_all_the_way(lib: Lib) -> Seen:
    torch.manual_seed(0)
    modules: list[nn.Module] = [
        nn.Conv2d(1, 2, 2, padding_mode="circular", padding=1),
        nn.Embedding(4, 2, max_norm=1.0),
        nn.GroupNorm(1, 2),
        nn.Softmax(dim=0),
        nn.MaxPool1d(2, return_indices=True),
        nn.Bilinear(2, 2, 1),
        nn.Upsample(scale_factor=2),
        nn.PReLU(),
        nn.CosineSimilarity(),
        nn.LayerNorm(2),
        nn.Unflatten(0, (1, 2)),
    ]
    seen = []
    for module in modules:
        tracer = subclass(
            lib.Tracer, is_leaf_module=lambda self, m, name: False
        )
        graph = tracer().trace(module)
        gm = lib.GraphModule(module, graph)
        seen.append((type(module).__name__, gm.code))
    return seen
