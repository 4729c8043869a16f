"""Calls brought into one form, merged, and found again by their origin."""

from __future__ import annotations

import torch
from torch import nn

from tests.parity.harness import Lib, Seen, error, program
from tests.parity.programs._subjects import AnyValue, module


class Products(nn.Module):
    """Has two matrices."""

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.eye(2))
        self.v = nn.Parameter(torch.eye(2) * 2)


class TwoProducts(Products):
    def forward(self, x: AnyValue, y: AnyValue) -> AnyValue:
        return torch.matmul(x, self.w) + torch.matmul(y, self.w)


class WriteBetween(Products):
    def forward(self, x: AnyValue) -> AnyValue:
        a = torch.matmul(x, self.w)
        x.add_(1)
        return a + torch.matmul(x, self.w)


class TwoWeights(Products):
    def forward(self, x: AnyValue, y: AnyValue) -> AnyValue:
        a, b = torch.matmul(x, self.w), torch.matmul(y, self.w)
        return torch.matmul(a, self.v) + torch.matmul(b, self.v)


class Unknown(nn.Module):
    def forward(self, x: AnyValue, y: AnyValue, w: AnyValue) -> AnyValue:
        return torch.matmul(x, w) + torch.matmul(y, w)


class InPlace(Products):
    def forward(self, x: AnyValue, y: AnyValue) -> AnyValue:
        return torch.matmul(x, self.w).relu_() + torch.matmul(y, self.w)


def merged(lib: Lib, model: nn.Module, *inputs: AnyValue) -> Seen:
    """What a module computes, its products merged, or how it fails."""
    merge = module(lib, "experimental.merge_matmul").merge_matmul
    sums: list[float] = []
    said = error(
        lambda: sums.append(merge(model)(*inputs).sum().item()), chars=12
    )
    return sums[0] if sums else said


@program(differs="merge-effects", ours=6.0)
def a_write_between_products(lib: Lib) -> Seen:
    with torch.no_grad():
        return merged(lib, WriteBetween(), torch.ones(1, 2))


@program(differs="merge-several", ours=8.0)
def products_with_two_weights(lib: Lib) -> Seen:
    return merged(lib, TwoWeights(), torch.ones(1, 2), torch.ones(1, 2))


@program(differs="merge-shapes", ours=8.0)
def a_vector_and_a_matrix(lib: Lib) -> Seen:
    return merged(lib, TwoProducts(), torch.ones(2), torch.ones(2, 2))


@program(differs="merge-in-place", ours=4.0)
def a_result_that_is_written(lib: Lib) -> Seen:
    return merged(lib, InPlace(), torch.ones(1, 2), torch.ones(1, 2))


@program(differs="merge-unknown", ours=2)
def a_right_operand_of_unknown_shape(lib: Lib) -> Seen:
    merge = module(lib, "experimental.merge_matmul").merge_matmul
    new = merge(Unknown())
    return sum(node.target is torch.matmul for node in new.graph.nodes)


class RootOfZero(Products):
    def __init__(self) -> None:
        super().__init__()
        self.zero = nn.Parameter(torch.zeros(1, 2))

    def forward(self, x: AnyValue) -> AnyValue:
        used = torch.matmul(x, self.w)
        return used, torch.matmul(torch.sqrt(self.zero), self.w)


@program(differs="merge-gradients", ours=None)
def a_product_that_the_loss_does_not_use(lib: Lib) -> Seen:
    model = RootOfZero()
    merge = module(lib, "experimental.merge_matmul").merge_matmul
    merge(model)(torch.ones(1, 2))[0].sum().backward()
    grad: AnyValue = model.zero.grad
    return None if grad is None else str(grad.tolist())


@program(differs="normalize-keywords", ours=[3.0, 0.0])
def keywords_of_operators(lib: Lib) -> Seen:
    gm = lib.symbolic_trace(
        lambda x: (
            torch.add(x, x, alpha=2),
            torch.div(x, 2, rounding_mode="floor"),
        )
    )
    new = module(lib, "experimental.normalize").NormalizeOperators(gm)
    return [each.item() for each in new.transform()(torch.ones(1))]


@program(differs="normalize-numbers", ours=["Tensor"])
def a_function_of_two_numbers(lib: Lib) -> Seen:
    gm = lib.symbolic_trace(lambda x: torch.div(x.size(0), 3))
    new = module(lib, "experimental.normalize").NormalizeOperators(gm)
    return [type(new.transform()(torch.ones(4))).__name__]


@program(differs="normalize-self", ours=[3.0])
def an_argument_that_is_named_self(lib: Lib) -> Seen:
    add = torch.ops.aten.add.Tensor
    gm = lib.symbolic_trace(lambda x: add(torch.neg(x), 4))
    new = module(lib, "experimental.normalize").NormalizeArgs(gm).transform()
    said = error(lambda: new(torch.ones(1)), chars=12)
    return new(torch.ones(1)).tolist() if said == "no error" else said


@program(differs="normalize-types", ours=[2.0])
def an_argument_that_is_a_number(lib: Lib) -> Seen:
    gm = lib.symbolic_trace(lambda x: torch.max(x, x.dim() - 1)[0] + 1)
    for node in gm.graph.nodes:
        node.meta["type"] = int if node.name == "sub" else torch.Tensor
    new = module(lib, "experimental.normalize").NormalizeArgs(gm).transform()
    said = error(lambda: new(torch.ones(1, 2)), chars=9)
    return new(torch.ones(1, 2)).tolist() if said == "no error" else said


@program(differs="normalize-reduction", ours=[2, 2])
def a_loss_that_is_not_reduced(lib: Lib) -> Seen:
    def loss(x: AnyValue, y: AnyValue) -> AnyValue:
        return torch.binary_cross_entropy_with_logits(x, y)

    gm, inputs = lib.symbolic_trace(loss), (torch.ones(2), torch.ones(2))
    shapes = module(lib, "passes.shape_prop").ShapeProp
    shapes(gm).propagate(*inputs)
    new = module(lib, "experimental.normalize").NormalizeArgs(gm).transform()
    return [each(*inputs).numel() for each in (gm, new)]


@program(differs="normalize-factories", ours="no error")
def a_function_that_makes_a_tensor(lib: Lib) -> Seen:
    gm = lib.symbolic_trace(lambda x: torch.randperm(x.size(0)))
    new = module(lib, "experimental.normalize").NormalizeArgs(gm).transform()
    return error(lambda: new(torch.ones(2)), chars=9)


@program(differs="normalize-script", ours=None)
def a_function_of_numbers_in_torchscript_alone(lib: Lib) -> Seen:
    normalize = module(lib, "operator_schemas").normalize_function
    pair = normalize(torch.add, (2.0, 3.0), {}, (float, float))
    return pair and sorted(pair.kwargs)


@program(differs="normalize-packets", ours=None)
def an_overload_that_converts(lib: Lib) -> Seen:
    normalize = module(lib, "operator_schemas").normalize_function
    var, x = torch.ops.aten.var, torch.eye(2)
    pair = normalize(var, (x, 1), {}, (torch.Tensor, int))
    return pair and sorted(pair.kwargs)


@program(differs="normalize-from", ours="no error")
def an_argument_whose_name_is_a_keyword(lib: Lib) -> Seen:
    graph = lib.Graph()
    x = graph.placeholder("x")
    graph.output(graph.call_function(torch.ops.aten.uniform.default, (x,)))
    gm = lib.GraphModule({}, graph)
    made = module(lib, "experimental.normalize").NormalizeArgs
    return error(lambda: made(gm).transform(), chars=14)


class Hooked(nn.Module):
    """A module whose hook looks at the input."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Identity()
        self.seen: list[int] = []
        self.inner.register_forward_pre_hook(
            lambda _, args: self.seen.append(len(args))
        )

    def forward(self, x: AnyValue) -> AnyValue:
        return self.inner(x)


@program(differs="normalize-hooks", ours=[1])
def a_hook_that_looks_at_the_input(lib: Lib) -> Seen:
    model = Hooked()
    gm = lib.symbolic_trace(model)
    new = module(lib, "experimental.normalize").NormalizeArgs(gm).transform()
    new(torch.ones(1))
    return model.seen


def numbered(x: AnyValue, seen: AnyValue = []) -> AnyValue:  # noqa: B006
    """Counts its calls."""
    seen.append(x)
    return x * len(seen)


@program(differs="normalize-defaults", ours=2.0)
def a_default_that_all_calls_share(lib: Lib) -> Seen:
    numbered.__defaults__ = ([],)
    graph = lib.Graph()
    x = graph.placeholder("x")
    graph.output(graph.call_function(numbered, (x,)))
    gm = lib.GraphModule({}, graph)
    new = module(lib, "experimental.normalize").NormalizeArgs(gm).transform()
    new(torch.ones(1))
    return new(torch.ones(1)).item()


@program(differs="source-inputs", ours=["x", "y"])
def inputs_in_a_list(lib: Lib) -> Seen:
    graph = lib.Graph()
    pair = [graph.placeholder("x"), graph.placeholder("y")]
    cat = graph.call_function(torch.cat, (pair,))
    cat.meta["source_fn_stack"] = [("cat", torch.cat)]
    graph.output(cat)
    found = module(lib, "passes.utils.source_matcher_utils")
    parts = found.get_source_partitions(graph, [torch.cat])
    return [node.name for node in parts[torch.cat][0].input_nodes]


@program(differs="named-pattern", ours=["neg"])
def a_traced_pattern_with_names(lib: Lib) -> Seen:
    def pattern(x: AnyValue) -> AnyValue:
        value = torch.neg(x)
        return value, {"value": value}

    found = module(lib, "passes.utils.matcher_with_name_node_map_utils")
    traced = lib.symbolic_trace(pattern)
    gm = lib.symbolic_trace(lambda x: torch.neg(x) + 1)

    def match() -> list[AnyValue]:
        matcher = found.SubgraphMatcherWithNameNodeMap(traced)
        return list(matcher.match(gm.graph))

    said = error(match, chars=14)
    if said != "no error":
        return said
    return [str(each.name_node_map["value"]) for each in match()]


@program(differs="normalize-script", ours=["input = x", ""])
def a_function_with_overloads_of_torchscript(lib: Lib) -> Seen:
    gm = lib.symbolic_trace(lambda x: torch.neg(x))
    made = module(lib, "experimental.normalize").NormalizeArgs
    codes = [made(gm, each).transform().code for each in (True, False)]
    return ["input = x" if "input = x" in code else "" for code in codes]
