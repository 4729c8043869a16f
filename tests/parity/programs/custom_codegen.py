"""Code generators of the user's own, and changes to generated text."""

from __future__ import annotations

import typing

import torch

from tests.parity.harness import Lib, Seen, error, program, show
from tests.parity.programs._subjects import AnyValue, Inner, subclass


def list_codegen(lib: Lib) -> AnyValue:
    """A code generator whose forward takes its inputs as one list."""

    def gen_fn_def(self: AnyValue, free_vars: list[str], returns: str) -> str:
        return f"""
def forward(self, args_list: List[torch.Tensor]){returns}:
    {", ".join(free_vars)}, = args_list"""

    def additional_globals(self: AnyValue) -> list[tuple[str, object]]:
        return [("List", typing.List)]  # noqa: UP006

    def process_inputs(self: AnyValue, *inputs: AnyValue) -> AnyValue:
        assert len(inputs) == 1
        return inputs[0]

    return subclass(
        lib.CodeGen,
        gen_fn_def=gen_fn_def,
        additional_globals=additional_globals,
        process_inputs=process_inputs,
    )()


@program(claims=("codegen-object",))
def a_graph_owns_a_code_generator(lib: Lib) -> Seen:
    g = lib.Graph()
    x = g.placeholder("x")
    g.output(x)
    default = g.python_code("self").src
    asked: list[object] = []

    def gen_fn_def(self: AnyValue, free_vars: list[str], returns: str) -> str:
        asked.append((list(free_vars), returns))
        said = lib.CodeGen.gen_fn_def(self, free_vars, returns)
        asked.append((said, list(free_vars)))
        return str(said)

    g.set_codegen(subclass(lib.CodeGen, gen_fn_def=gen_fn_def)())
    custom = g.python_code("self").src
    g.set_codegen(lib.CodeGen())
    return [
        default,
        asked,
        custom == default,
        g.python_code("self").src == default,
    ]


@program(claims=("codegen-object",))
def the_class_of_a_graphs_code_generator(lib: Lib) -> Seen:
    trees = {"x": {"a": lib.PH}}
    gm = lib.symbolic_trace(lambda x: x["a"] + 1, concrete_args=trees)
    own = list_codegen(lib)
    graph = lib.Graph()
    first = graph._codegen
    graph.set_codegen(own)
    return [
        type(first) is lib.CodeGen,
        first is lib.Graph()._codegen,
        graph._codegen is own,
        type(gm.graph._codegen).__name__,
        isinstance(gm.graph._codegen, lib.CodeGen),
    ]


@program(claims=("codegen-object",))
def inputs_as_one_list(lib: Lib) -> Seen:
    gm = lib.symbolic_trace(lambda a, b: a + b)
    gm.graph.set_codegen(list_codegen(lib))
    gm.recompile()
    given = [torch.tensor(1.0), torch.tensor(2.0)]
    return [
        gm.code,
        gm(given),
        gm.graph.process_inputs(given) is given,
        gm.graph.process_outputs(3),
        lib.Interpreter(gm).run(given),
        [n.name for n in gm.graph.nodes],
    ]


@program(claims=("codegen-object", "codegen-output-return"))
def a_return_statement_of_its_own(lib: Lib) -> Seen:
    def generate_output(self: AnyValue, output_args: AnyValue) -> str:
        return f"return {{'result': {output_args!r}}}"

    def process_outputs(self: AnyValue, outputs: AnyValue) -> AnyValue:
        return {"result": outputs}

    own = subclass(
        lib.CodeGen,
        generate_output=generate_output,
        process_outputs=process_outputs,
    )
    gm = lib.symbolic_trace(lambda x: (x + 1, [x]))
    gm.graph.set_codegen(own())
    gm.recompile()
    return [gm.code, gm(1), lib.Interpreter(gm).run(1)]


@program(claims=("codegen-object",))
def names_added_to_the_globals(lib: Lib) -> Seen:
    def generate_output(self: AnyValue, output_args: AnyValue) -> str:
        return f"return finish({output_args!r})"

    def additional_globals(self: AnyValue) -> list[tuple[str, object]]:
        return [("finish", lambda out: out * 100), ("torch_also", torch)]

    own = subclass(
        lib.CodeGen,
        generate_output=generate_output,
        additional_globals=additional_globals,
    )
    gm = lib.symbolic_trace(lambda x: x + 1)
    gm.graph.set_codegen(own())
    names = gm.recompile().globals
    return [gm.code, gm(1), "finish" in names]


@program(claims=("codegen-object",))
def the_code_generators_own_methods(lib: Lib) -> Seen:
    codegen = lib.CodeGen()
    given = ["a", "b = 1"]
    with_self = ["self", "x"]
    return [
        codegen.gen_fn_def(given, ""),
        codegen.gen_fn_def(with_self, " -> int"),
        codegen.generate_output((1, [2])),
        codegen.process_inputs(1, 2),
        codegen.process_outputs([3]),
        codegen.additional_globals(),
    ]


@program(claims=("recompile-exec-compile",))
def a_transformer_of_the_generated_lines_stays(lib: Lib) -> Seen:
    gm = lib.symbolic_trace(lambda x: torch.relu(x))
    seen: list[object] = []

    def insert(body: list[str]) -> list[str]:
        return ["x = x + 10\n", *body]

    def make(current: AnyValue) -> AnyValue:
        seen.append(current)
        return insert

    gm.graph.on_generate_code(make)
    before = gm.code
    gm.recompile()
    first = gm.code
    gm.recompile()
    return [seen, before, first, gm.code == first, gm(torch.tensor(-1.0))]


@program(claims=("recompile-exec-compile",))
def transformers_can_be_chained(lib: Lib) -> Seen:
    gm = lib.symbolic_trace(lambda x: x * 2)

    def adding(line: str) -> AnyValue:
        def make(current: AnyValue) -> AnyValue:
            def change(body: list[str]) -> list[str]:
                return [line, *(current(body) if current else body)]

            return change

        return make

    gm.graph.on_generate_code(adding("x = x + 1\n"))
    gm.graph.on_generate_code(adding("x = x * 10\n"))
    gm.recompile()
    return [gm.code, gm(1)]


@program(claims=("recompile-exec-compile",))
def a_transformer_for_the_time_of_a_block(lib: Lib) -> Seen:
    gm = lib.symbolic_trace(lambda x: x * 2)
    plain = gm.code

    def make(current: AnyValue) -> AnyValue:
        return lambda body: ["x = 0\n", *body]

    with gm.graph.on_generate_code(make):
        gm.recompile()
        inside = gm.code
    after = gm.code
    result = gm(5)
    gm.recompile()
    return [inside, after == inside, result, gm.code == plain, gm(5)]


@program(claims=("recompile-exec-compile",))
def a_transformer_is_taken_back_after_an_exception(lib: Lib) -> Seen:
    gm = lib.symbolic_trace(lambda x: x * 2)
    plain = gm.code

    def fail() -> None:
        with gm.graph.on_generate_code(
            lambda _: lambda body: ["x = 0\n", *body]
        ):
            raise KeyError("inside")

    raised = error(fail)
    gm.recompile()
    return [raised, gm.code == plain]


@program(claims=("codegen-object",))
def the_body_can_be_replaced_altogether(lib: Lib) -> Seen:
    gm = lib.symbolic_trace(Inner())
    with gm.graph.on_generate_code(lambda _: lambda body: ["return x + 41\n"]):
        gm.recompile()
    return [gm.code, gm(1)]


@program(claims=("graphmodule-edit-needs-recompile",))
def set_codegen_needs_recompile_too(lib: Lib) -> Seen:
    gm = lib.symbolic_trace(lambda a, b: a + b)
    before = gm.code
    gm.graph.set_codegen(list_codegen(lib))
    return [gm.code == before, *show(gm, 1, 2)[2:]]
