"""Meta that new nodes inherit, and where each line of code comes from."""

from __future__ import annotations

import collections
import importlib
import pickle

import torch
from torch import nn

from tests.parity.harness import Lib, Seen, error, program
from tests.parity.programs._subjects import (
    AnyValue,
    Inner,
    Outer,
    Root,
    lines,
    module_of,
    proxy,
    trace_with,
)


def meta_of(graph: AnyValue) -> list[tuple[str, AnyValue]]:
    """Names and inherited meta of the nodes, but no provenance.

    torch.fx numbers nodes by autograd's counter too, for other tracers.
    """
    kept = ("stack_trace", "nn_module_stack", "custom", "val")
    return [
        (n.name, {k: n.meta[k] for k in kept if k in n.meta})
        for n in graph.nodes
    ]


def notes(lib: Lib) -> AnyValue:
    """The library's module `traceback`."""
    return importlib.import_module(f"{lib.__name__}.traceback")


class Notes(dict[str, AnyValue]):
    """A dict of the user's, whose copy() is a plain dict."""


class Uncopied(Notes):
    """One whose copy() fails."""

    def copy(self) -> Notes:
        raise NotImplementedError


@program()
def inherited_notes_keep_their_class(lib: Lib) -> Seen:
    traceback = notes(lib)
    p = proxy(lib)
    seen: list[Seen] = []
    for custom in (Notes(a=1), Uncopied(a=2), collections.Counter("aab")):
        origin = (p + 1).node
        origin.meta["custom"] = custom
        with traceback.preserve_node_meta(), traceback.set_current_meta(origin):
            note = (p * 2).node.meta["custom"]
        seen.append([type(note).__name__, dict(note), note is custom])
    return seen


@program(claims=("tracer-create-node-hook",))
def nodes_inherit_the_meta_of_the_node_that_is_run(lib: Lib) -> Seen:
    traceback = notes(lib)
    p = proxy(lib)
    origin = (p + 1).node
    origin.meta.update(
        stack_trace="where it was",
        nn_module_stack={"sub": ("sub", "Sub")},
        custom={"k": 1},
        val="not inherited",
    )
    with traceback.set_current_meta(origin):
        p * 2
    with traceback.preserve_node_meta():
        p * 3
        with traceback.set_current_meta(origin):
            p * 4
        p * 5
    return [meta_of(p.node.graph), traceback.has_preserved_node_meta()]


@program(claims=("tracer-create-node-hook",))
def annotations_are_inherited_inside_their_block(lib: Lib) -> Seen:
    traceback = notes(lib)
    p = proxy(lib)
    with traceback.preserve_node_meta():
        with traceback.annotate({"stage": 1}):
            p * 2
            with traceback.annotate({"device": "cpu"}):
                p * 3
            p * 4
        p * 5
    return meta_of(p.node.graph)


@program(claims=("tracer-create-node-hook",))
def stack_traces_set_by_hand_are_inherited(lib: Lib) -> Seen:
    traceback = notes(lib)
    p = proxy(lib)
    traceback.set_stack_trace(["outside"])
    with traceback.preserve_node_meta():
        traceback.set_stack_trace(["first line\\n", "second line"])
        p * 2
        said = traceback.format_stack()
        traceback.set_stack_trace([])
        p * 3
    p * 4
    return [meta_of(p.node.graph), said]


@program(claims=("tracer-create-node-hook", "module-stack"))
def preserving_meta_replaces_the_module_stack(lib: Lib) -> Seen:
    traceback = notes(lib)
    with traceback.preserve_node_meta():
        inside = lib.Tracer().trace(Outer())
    with traceback.preserve_node_meta(enable=False):
        disabled = lib.Tracer().trace(Outer())
    return [
        ["nn_module_stack" in n.meta for n in inside.nodes],
        ["nn_module_stack" in n.meta for n in disabled.nodes],
    ]


@program()
def proxies_can_be_pickled(lib: Lib) -> Seen:
    p = proxy(lib)
    p.note = "kept"
    q = pickle.loads(pickle.dumps(p))
    q + 1
    return [q.node.name, q.note, lines(q.node.graph), len(p.node.graph.nodes)]


@program(claims=("wrap-leaf-function",))
def a_wrapped_function_called_from_another_module(lib: Lib) -> Seen:
    leaves = """
    import functools
    lib.wrap("leaf")

    def leaf(x):
        return x * 2

    @lib.wrap
    @functools.lru_cache
    def cached(x):
        return x * 3

    lib.wrap(abs)

    def helper(x):
        return leaf(x) + cached(x) + abs(x)
    """
    user = """
    from leaves import helper, leaf as imported

    def f(x):
        return helper(x), imported(x)
    """
    with (
        module_of(leaves, name="leaves", lib=lib),
        module_of(user) as user_code,
    ):
        return lines(lib.Tracer().trace(user_code.f))


@program(claims=("concrete-args",))
def keys_of_placeholders_in_a_tuple_of_inputs(lib: Lib) -> Seen:
    tracing = importlib.import_module(f"{lib.__name__}._symbolic_trace")
    keyed = tracing.PHWithMeta(ph_key="the key")

    def forward(self: AnyValue, *args: AnyValue) -> AnyValue:
        return args[0] + args[1]

    def one_and_rest(x: AnyValue, *rest: AnyValue) -> AnyValue:
        return x + rest[0]

    both = (keyed, lib.PH)
    graph = lib.Tracer().trace(Root(forward), concrete_args=both)
    other = lib.Tracer().trace(one_and_rest, concrete_args=both)
    return [
        [getattr(n, "ph_key", None) for n in graph.nodes],
        [n.name for n in graph.nodes],
        [getattr(n, "ph_key", None) for n in other.nodes],
        [n.name for n in other.nodes],
        lines(lib.Tracer().trace(Root(forward), concrete_args=())),
    ]


@program()
def create_arg_must_keep_tuples_and_dicts(lib: Lib) -> Seen:
    def trace(create_arg: AnyValue) -> str:
        root = Inner()
        raised = error(lambda: trace_with(lib, root, create_arg=create_arg))
        return raised.partition(":")[0]

    return [
        trace(lambda self, a: list(a) if isinstance(a, tuple) else a),
        trace(lambda self, a: lib.Tracer.create_arg(self, a)),
    ]


class Failing(nn.Module):
    """Adds a constant and fails inside a child, until told otherwise."""

    def __init__(self) -> None:
        super().__init__()
        self.fails = True
        self.child = Root(lambda inner, x: self.step(x))

    def step(self, x: AnyValue) -> AnyValue:
        if self.fails:
            raise KeyError("in the child")
        return x * 2

    def forward(self, x):  # type: ignore[no-untyped-def]
        return self.child(x + torch.ones(1))


@program(
    claims=("module-stack", "create-arg-tensor-constant"),
    differs="a-trace-starts-afresh",
    ours=[
        "KeyError",
        False,
        [[], [], [], ["child"], []],
        [[], [], [], ["child"], []],
    ],
)
def a_failed_trace_leaves_nothing_behind(lib: Lib) -> Seen:
    tracer, root = lib.Tracer(), Failing()
    raised = error(lambda: tracer.trace(root)).partition(":")[0]
    left = hasattr(root, "_tensor_constant0")
    root.fails = False
    graphs = [tracer.trace(root) for _ in range(2)]
    return [
        raised,
        left,
        *(
            [list(n.meta.get("nn_module_stack", {})) for n in g.nodes]
            for g in graphs
        ),
    ]


@program(
    claims=("trace-error-points-at-user-code",),
    differs="trace-errors-say-where",
    ours=[[True, True, True], [True, True, True]],
)
def a_trace_error_names_file_line_and_expression(lib: Lib) -> Seen:
    def branching(x: AnyValue) -> AnyValue:
        y = x + 1
        return y if y.sum() > 0 else x

    def looping(x: AnyValue) -> AnyValue:
        return [row + 1 for row in x.unbind()]

    seen = []
    for root, expression in (
        (branching, "y.sum() > 0"),
        (looping, "x.unbind()"),
    ):
        line = root.__code__.co_firstlineno + (2 if root is branching else 1)
        try:
            lib.symbolic_trace(root)
        except lib.proxy.TraceError as raised:
            said = str(raised)
            seen.append(
                [
                    "recorded_meta.py" in said,
                    f"line {line}" in said,
                    expression in said,
                ]
            )
    return seen


@program(
    claims=("codegen-function-names",),
    differs="callable-without-name",
    ours=["runs", 6],
)
def bound_methods_as_targets(lib: Lib) -> Seen:
    class Own:
        def __init__(self, by: int) -> None:
            self.by = by

        def times(self, x: AnyValue) -> AnyValue:
            return x * self.by

    two, three = Own(2), Own(3)
    g = lib.Graph()
    x = g.placeholder("x")
    for target in (two.times, two.times, [].__len__, "a-b".split):
        g.call_function(target, (x,) if target == two.times else ())
    try:
        g.output(
            g.call_function(two.times, (g.call_function(three.times, (x,)),))
        )
        return ["runs", lib.GraphModule({}, g)(1)]
    except AttributeError as raised:
        return [type(raised).__name__]
