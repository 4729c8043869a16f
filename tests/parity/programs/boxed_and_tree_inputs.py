"""Code generators for boxed inputs and trees, and the maps of their lines.

Their names are private in torch.fx, and their roles are not: torch.export and
the compiler set them on graphs.
"""

from __future__ import annotations

import contextlib
import importlib
import pickle
from pathlib import Path

import torch
from torch import nn
from torch.utils import _pytree as pytree

from tests.parity.harness import Lib, Seen, error, program
from tests.parity.programs._subjects import AnyValue, Overview, lines
from tests.parity.programs.saving import folder_of


def private(lib: Lib, name: str) -> AnyValue:
    """What torch.fx.graph calls `name`, wherever fx keeps it."""
    for home in ("graph", "codegen.nested", "use_def.protocols"):
        with contextlib.suppress(ModuleNotFoundError, AttributeError):
            module = importlib.import_module(f"{lib.__name__}.{home}")
            return getattr(module, name)
    return private(lib, name.removeprefix("_"))


def two_inputs(lib: Lib) -> AnyValue:
    """A GraphModule of two inputs."""
    return lib.symbolic_trace(lambda a, b: torch.relu(a) - b)


@program(claims=("codegen-object",))
def boxed_inputs_are_taken_out_of_a_list(lib: Lib) -> Seen:
    gm = two_inputs(lib)
    gm.graph.set_codegen(private(lib, "_BoxedCodeGen")())
    gm.recompile()
    given = [torch.ones(2), torch.ones(2) * 3]
    out = gm(given)
    none = lib.Graph()
    none.output(1)
    none.set_codegen(private(lib, "_BoxedCodeGen")())
    return [gm.code, out, given, none.python_code("self").src]


@program(claims=("codegen-object", "concrete-args"))
def outputs_put_together_by_a_tree(lib: Lib) -> Seen:
    info, codegen = private(lib, "_PyTreeInfo"), private(lib, "_PyTreeCodeGen")
    g = lib.Graph()
    a, b = g.placeholder("a"), g.placeholder("b")
    g.output([b, a])
    spec = pytree.tree_structure(((0, 1),))
    out = pytree.tree_structure({"first": 0, "second": 0})
    g.set_codegen(codegen(info(["both"], spec, out)))
    gm = lib.GraphModule({}, g)
    list(g.nodes)[-1].meta["desc"] = ["one", "two"]
    return [
        gm.code,
        gm((1, 2)),
        list(g.process_inputs((1, 2))),
        g.process_outputs([5, 6]),
        g.python_code("self", expanded_def=True).src,
    ]


@program(claims=("codegen-node-by-node",))
def comments_on_inputs_and_outputs(lib: Lib) -> Seen:
    g = lib.Graph()
    x, y = g.placeholder("x"), g.placeholder("y", default_value=2)
    x.meta["desc"] = "the first"
    out = g.output((y, [x]))
    out.meta["desc"] = ["what came second", "a list"]
    return [
        g.python_code("self", expanded_def=True).src,
        g.python_code("self").src,
    ]


@program()
def options_for_the_tracer_are_kept_by_graph_and_module(lib: Lib) -> Seen:
    extras = {"concrete_args": None}
    graph = lib.Graph(tracer_cls=lib.Tracer, tracer_extras=extras)
    graph.output(graph.placeholder("x"))
    gm = lib.GraphModule(nn.Module(), graph)
    return [
        gm._tracer_extras == extras,
        lib.GraphModule(
            nn.Module(), lib.Tracer().trace(lambda x: x)
        )._tracer_extras,
        lines(pickle.loads(pickle.dumps(gm)).graph),
    ]


@program(
    claims=("to-folder",),
    differs="to-folder-keeps-flags",
    ours=[[False, True], [True, False]],
)
def a_folder_keeps_what_is_frozen_and_in_eval_mode(lib: Lib) -> Seen:
    model = Overview()
    model.param.requires_grad_(False)
    model.linear.eval()
    gm = lib.symbolic_trace(model)
    with folder_of(gm) as package:
        new = package.FxModule()
        assert Path(package.__file__).exists()
        return [
            [new.param.requires_grad, new.linear.weight.requires_grad],
            [new.training, new.linear.training],
        ]


@program()
def adding_what_a_boxed_module_cannot_take(lib: Lib) -> Seen:
    gm = two_inputs(lib)
    gm.graph.set_codegen(private(lib, "_BoxedCodeGen")())
    gm.recompile()
    return [
        error(lambda: gm([1])).partition(":")[0],
        error(lambda: gm(1, 2), chars=20),
    ]
