"""Stage 05, codegen: CodeGen, from a graph to the source of a function.

    graph.python_code("self").src

        def forward(self, x):
            param = self.param
            add = x + param;  x = param = None
            relu = torch.relu(add);  add = None
            return relu

The emitter writes the body; here it is put together with what stands in front
of it, and here is what a subclass can change: the signature, the return
statement, and how a caller's inputs and outputs become those of the graph.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import zip_longest
from types import MappingProxyType
from typing import Final

from torch.utils import _pytree as pytree

from .._pytree import child_specs
from ..graph import Graph
from ..node import Node
from ..ordered.linked_list import LinkedList
from ..tracing.wrapping import wrap
from ..usedef.lint import parameter_problems
from ..usedef.protocols import (
    CodeOptions,
    PythonCode,
    PyTreeInfo,
    TransformCodeFunc,
)
from ..usedef.values import Argument, Value
from .emit import COUNTER, Emitter
from .global_names import PREFILLED
from .local_names import LocalNames
from .readable import ReadableEmitter

INDENT: Final = "    "

_counter = re.compile(rf"{COUNTER}(\d+)")
_parameter_name = re.compile(r"[^\s:=#]+")


class CodeGen:
    """Writes graphs out as Python functions; subclass it to change how.

    torch.fx: graph.py, CodeGen
    """

    _body_transformer: TransformCodeFunc | None = None
    _func_name: str = "forward"
    _spelled: Mapping[str, str] = MappingProxyType({n: n for n in PREFILLED})

    # -- what a subclass can change ----------------------------------------

    def gen_fn_def(
        self,
        free_vars: list[str],
        maybe_return_annotation: str,
        *,
        expanded_def: bool = False,
    ) -> str:
        """The first line of the function, and what comes before the body.

        Args:
            free_vars: the parameters, with annotation and default.
            maybe_return_annotation: " -> int", or nothing.
            expanded_def: write one parameter a line.

        torch.fx: graph.py, CodeGen.gen_fn_def
        """
        if free_vars[:1] != ["self"]:
            free_vars.insert(0, "self")
        parameters = ", ".join(free_vars)
        if expanded_def:
            lines = [_line_of(parameter) for parameter in free_vars]
            parameters = f"\n{''.join(lines)}"
        return f"def {self._func_name}({parameters}){maybe_return_annotation}:"

    def generate_output(
        self,
        output_args: Argument,
        *,
        descs: Sequence[str] | None = None,
        repr_fn: Callable[[object], str] | None = None,
    ) -> str:
        """The return statement.

        Args:
            output_args: what the graph returns.
            descs: a comment for each item of it, or None for one line.
            repr_fn: writes an argument as Python.

        torch.fx: graph.py, CodeGen.generate_output
        """
        return f"return {_output_text(output_args, descs, repr_fn or repr)}"

    def process_inputs(self, *args: Value) -> Value:
        """What the graph's placeholders get when the function is called so.

        `f(*args)` is `process_outputs(graph run on process_inputs(*args))`.

        torch.fx: graph.py, CodeGen.process_inputs
        """
        return args

    def process_outputs(self, outputs: Value) -> Value:
        """What the function returns when the graph returns `outputs`.

        torch.fx: graph.py, CodeGen.process_outputs
        """
        return outputs

    def additional_globals(self) -> list[tuple[str, Value]]:
        """Names that the text of a subclass uses, with their objects.

        torch.fx: graph.py, CodeGen.additional_globals
        """
        return []

    def _own_parameters(self) -> Iterable[str]:
        """Parameters of the function that are no placeholders."""
        return ()

    # -- putting it together -----------------------------------------------

    def _gen_python_code(
        self, nodes: LinkedList[Node], root_module: str, options: CodeOptions
    ) -> PythonCode:
        """The function that the nodes are, as source and globals.

        A graph without a statement has the body `pass`. What the emitter's
        globals spelled is kept in `_spelled`, for subclasses.

        Args:
            nodes: all nodes of the graph.
            root_module: how the code calls the module.
            options: what to show beyond what is necessary.

        Raises:
            RuntimeError: the graph cannot be written as Python.

        torch.fx: graph.py, CodeGen._gen_python_code
        """
        raise NotImplementedError("stage 05: CodeGen._gen_python_code")

    def _check(self, nodes: LinkedList[Node]) -> None:
        """Raise if the placeholders are no parameters of a function."""
        graph = next((node.graph for node in nodes), None)
        if graph is not None and type(self).gen_fn_def is CodeGen.gen_fn_def:
            for problem in parameter_problems(graph):
                raise problem.kind(problem.message)

    def _emitter(
        self, nodes: LinkedList[Node], root_module: str, options: CodeOptions
    ) -> Emitter:
        """What writes the body."""
        taken = {*self._own_parameters(), self._func_name, "__builtins__"}
        counting = self._body_transformer is not None
        if options == CodeOptions():
            return Emitter(
                nodes, root_module, self._return, taken, counting=counting
            )
        return ReadableEmitter(
            nodes,
            root_module,
            self._return,
            taken,
            options,
            counting=counting,
        )

    def _return(
        self,
        output_args: Argument,
        variables: LocalNames,
        *,
        descs: Sequence[str] | None,
        repr_fn: Callable[[object], str],
    ) -> str:
        """The return statement, as `generate_output` of any vintage has it."""
        if _is_ours(self.generate_output):
            return self.generate_output(
                output_args, descs=descs, repr_fn=repr_fn
            )
        with _printed_as(variables):
            return _call_with_what_it_takes(
                self.generate_output, output_args, descs=descs, repr_fn=repr_fn
            )

    def _body(self, emitter: Emitter) -> tuple[str, list[int | None]]:
        """The indented body, and the index of the node for each line."""
        origins = emitter.origins
        if self._body_transformer is None:
            text = "".join(emitter.pieces)
            origins.append(origins[-1])
        else:
            pieces = self._body_transformer(emitter.pieces)
            text, origins = _without_counters("".join(pieces))
        blank = len(text) - len(text.lstrip("\n"))
        lines = text[blank:].replace("\n", f"\n{INDENT}")
        return f"{INDENT}{lines}", origins[blank:]


class _PyTreeCodeGen(CodeGen):
    """Writes a function with nested inputs, of a graph with flat ones.

    The function has the parameters that the traced one had; its first
    statement takes them apart, its last puts the outputs together. The specs
    are looked up in the module, as `_in_spec` and `_out_spec`.

    torch.fx: graph.py, _PyTreeCodeGen
    """

    def __init__(self, pytree_info: PyTreeInfo) -> None:
        """Make a code generator for what a trace has left.

        Args:
            pytree_info: the names of the parameters, and both specs.
        """
        super().__init__()
        self.pytree_info = pytree_info

    def process_inputs(self, *inputs: Value) -> Value:
        """The leaves of the inputs."""
        return pytree.arg_tree_leaves(*inputs)

    def process_outputs(self, out: Value) -> Value:
        """The outputs, nested as the traced function's."""
        if self.pytree_info.out_spec is None:
            return out
        leaves = out if isinstance(out, list | tuple) else [out]
        return pytree.tree_unflatten(leaves, self.pytree_info.out_spec)

    def gen_fn_def(
        self,
        free_vars: list[str],
        maybe_return_annotation: str,
        *,
        expanded_def: bool = False,
    ) -> str:
        """The first line, and the statement that takes the inputs apart."""
        names = self.pytree_info.orig_args
        if names[:1] == ["self"]:
            free_vars.insert(0, "self")
        definition = super().gen_fn_def(
            _with_defaults(names, free_vars),
            maybe_return_annotation,
            expanded_def=expanded_def,
        )
        if free_vars:
            definition += self.gen_var_bindings(names, free_vars, expanded_def)
        return definition

    def gen_var_bindings(
        self, fn_args: list[str], free_vars: list[str], expanded_def: bool
    ) -> str:
        """The statement that takes the inputs apart, on lines of its own.

        Args:
            fn_args: the parameters of the function.
            free_vars: the placeholders, with their annotations.
            expanded_def: write one annotation a line.

        torch.fx: graph.py, _PyTreeCodeGen.gen_var_bindings
        """
        bare = [variable.partition(" = ")[0] for variable in free_vars]
        annotated = [variable for variable in bare if ":" in variable]
        text = ""
        if annotated and expanded_def:
            text = "".join([f"\n{INDENT}{each}" for each in annotated])
        elif annotated:
            text = f"\n{INDENT}{''.join([f'{a}; ' for a in annotated])}\n"
        names = [each.partition(":")[0].partition("#")[0] for each in bare]
        flatten = f"{self._spelled['fx_pytree']}.tree_flatten_spec"
        inputs = self._inputs(fn_args)
        return (
            f"{text}\n{INDENT}{', '.join(names)}, = "
            f"{flatten}({inputs}, self._in_spec)"
        )

    def _inputs(self, names: list[str]) -> str:
        """The inputs as the spec has them: a list, or args and kwargs.

        A trace by torch.export has a spec of the second kind.
        """
        spec = self.pytree_info.in_spec
        children = child_specs(spec)
        if spec.type is tuple and len(children) == 2:
            args, kwargs = children
            count = args.num_children
            if args.type is tuple and kwargs.type is dict:
                keys = list(kwargs.context)
                if names[count:] == keys:
                    pairs = [f"{key!r}:{key}" for key in keys]
                    named = f"{{{', '.join(pairs)}}}"
                    return f"([{', '.join(names[:count])}], {named})"
        return f"[{', '.join(names)}]"

    def generate_output(
        self,
        output_args: Argument,
        *,
        descs: Sequence[str] | None = None,
        repr_fn: Callable[[object], str] | None = None,
    ) -> str:
        """The return statement, which puts the outputs together."""
        if self.pytree_info.out_spec is None:
            return super().generate_output(
                output_args, descs=descs, repr_fn=repr_fn
            )
        text = _output_text(output_args, descs, repr_fn or repr)
        unflatten = f"{self._spelled['pytree']}.tree_unflatten"
        return f"return {unflatten}({text}, self._out_spec)"

    def _own_parameters(self) -> Iterable[str]:
        """The parameters of the traced function."""
        return self.pytree_info.orig_args


class _BoxedCodeGen(CodeGen):
    """Writes a function of one list, which it empties.

    So the caller's list does not keep the inputs alive.

    torch.fx: graph.py, _BoxedCodeGen
    """

    def gen_fn_def(
        self,
        free_vars: list[str],
        maybe_return_annotation: str,
        *,
        expanded_def: bool = False,
    ) -> str:
        """The first line, and the statements that empty the list."""
        names = [_name_of(each) for each in free_vars if each != "self"]
        box, items = (_unlike(names, each) for each in self._own_parameters())
        lines = [
            f"def {self._func_name}(self, {box}){maybe_return_annotation}:"
        ]
        if names:
            lines.append(f"{items} = iter({box})")
            lines += [f"{name} = next({items})" for name in names]
            lines.append(f"{box}.clear()")
        return f"\n{INDENT}".join(lines)

    def _own_parameters(self) -> tuple[str, str]:
        """The list, and the iterator over it."""
        return "args_list", "args_iter"


def default_codegen(pytree_info: PyTreeInfo | None) -> CodeGen:
    """The code generator of a graph nobody has given another one.

    Args:
        pytree_info: what a trace with nested inputs has left, if it was one.
    """
    return CodeGen() if pytree_info is None else _PyTreeCodeGen(pytree_info)


# -- text ------------------------------------------------------------------


def _line_of(parameter: str) -> str:
    """A parameter on a line of its own, its comment behind the comma."""
    text, hash_, comment = parameter.partition("#")
    comment = f"  # {comment.lstrip()}" if hash_ else ""
    return f"{INDENT}{text.rstrip()},{comment}\n"


def _output_text(
    value: Argument,
    descs: Sequence[str] | None,
    repr_fn: Callable[[object], str],
) -> str:
    """What is returned, on a line for each item if there are comments."""
    if descs is None or not isinstance(value, list | tuple):
        return repr_fn(value)
    left, right = "()" if isinstance(value, tuple) else "[]"
    comments = [f"  # {desc}" for desc in descs[: len(value)]]
    lines = [
        f"{INDENT}{repr_fn(item)},{comment}\n"
        for item, comment in zip_longest(value, comments, fillvalue="")
    ]
    return f"{left}\n{''.join(lines)}{right}"


def _with_defaults(names: list[str], free_vars: list[str]) -> list[str]:
    """The parameters, with the defaults of placeholders of the same name."""
    defaults = {
        _name_of(variable): variable.partition(" = ")[2]
        for variable in free_vars
    }
    result: list[str] = []
    may_have_one = True
    for name in reversed(names):
        default = defaults.get(name, "")
        may_have_one = may_have_one and bool(default)
        result.append(f"{name} = {default}" if may_have_one else name)
    return result[::-1]


def _name_of(parameter: str) -> str:
    """The name alone of a parameter with stars, annotation, default."""
    found = _parameter_name.match(parameter.lstrip("*"))
    return found[0] if found else parameter


def _unlike(names: list[str], name: str) -> str:
    """`name`, with underscores until it is none of `names`."""
    while name in names:
        name += "_"
    return name


def _wrap_statements(emitter: Emitter) -> str:
    """Lines that make the leaf functions of the graph leaves again.

    Without them, tracing the generated function would trace through them.
    """
    if not emitter.wrapped:
        return ""
    name = emitter.globals.bind("wrap", wrap)
    return "\n".join([f'{name}("{each}")' for each in emitter.wrapped])


def _without_counters(text: str) -> tuple[str, list[int | None]]:
    """The text without the counters' lines; what they said of the others."""
    lines: list[str] = []
    origins: list[int | None] = []
    index = None
    for line in text.split("\n"):
        if found := _counter.fullmatch(line.strip()):
            index = int(found[1])
        else:
            lines.append(line)
            origins.append(index)
    return "\n".join(lines), origins


# -- methods of users' subclasses ------------------------------------------


def _is_ours(method: Callable[..., str]) -> bool:
    """Whether a method is of a class of this file."""
    return getattr(method, "__module__", None) == __name__


def _call_with_what_it_takes(
    method: Callable[..., str], *args: Value, **kwargs: Value
) -> str:
    """Call a method that may have been written for fewer keywords.

    torch.fx: graph.py, CodeGen._call_method_with_signature_check
    """
    if not _is_ours(method):
        known = inspect.signature(method).parameters
        kwargs = {key: kwargs[key] for key in kwargs if key in known}
    return method(*args, **kwargs)


@contextmanager
def _printed_as(variables: LocalNames) -> Iterator[None]:
    """Have `repr(node)` say its variable, as old overrides expect."""
    before = {node: node._repr_fn for node in variables}  # noqa: SLF001
    try:
        for node in variables:
            node._repr_fn = variables.__getitem__  # noqa: SLF001
        yield
    finally:
        for node in variables:
            node._repr_fn = before[node]  # noqa: SLF001


Graph._make_codegen = staticmethod(default_codegen)  # noqa: SLF001
