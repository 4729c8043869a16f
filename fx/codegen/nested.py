"""Stage 05, codegen: functions of nested inputs, and of inputs in a list.

A graph has flat inputs and outputs: a placeholder for each tensor.  Callers
may have something else in hand, and then the generated function takes it
apart in its first statement.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count

from .. import _pytree as fx_pytree
from .._pytree import child_specs, flatten_input
from ..graph import Graph
from ..torch_private.pytree import pytree
from ..use_def.protocols import PyTreeInfo
from ..use_def.values import AnyValue, Argument
from .codegen import CodeGen, output_text
from .emit import INDENT
from .names import PREFILLED

_parameter_name = re.compile(r"[^\s:=#]+")


class _PyTreeCodeGen(CodeGen):
    """Writes a function with nested inputs, of a graph with flat ones.

    The function has the parameters that the traced one had; its first
    statement takes them apart, its last puts the outputs together. The specs
    are looked up in the module, as `_in_spec` and `_out_spec`.

    An interpreter does not run the first statement, so `process_inputs` gives
    it the leaves by the same specs.

    torch.fx: graph.py, _PyTreeCodeGen
    """

    _spelled: Mapping[str, str] = {n: n for n in (*PREFILLED, "fx_pytree")}

    def __init__(self, pytree_info: PyTreeInfo) -> None:
        """Make a code generator for what a trace noted.

        Args:
            pytree_info: the names of the parameters, and both specs.
        """
        super().__init__()
        self.pytree_info = pytree_info

    def module_attributes(self) -> dict[str, AnyValue]:
        """Both specs."""
        info = self.pytree_info
        return {"_in_spec": info.in_spec, "_out_spec": info.out_spec}

    def process_inputs(self, *inputs: AnyValue) -> AnyValue:
        """The leaves of the inputs, which may be leaves already."""
        if all(pytree.tree_structure(value).is_leaf() for value in inputs):
            return list(inputs)
        names = self.pytree_info.orig_args
        specs = child_specs(self.pytree_info.in_spec)
        if self._keywords(names) is not None:
            specs = [child for spec in specs for child in child_specs(spec)]
        if names[:1] == ["self"] and len(inputs) < len(specs):
            specs = specs[1:]  # the module, which callers do not give
            names = names[1:]
        if len(inputs) > len(specs):
            raise RuntimeError(
                f"{len(inputs)} inputs were given, and the graph takes "
                f"{len(specs)}: {', '.join(names)}"
            )
        leaves = []
        for name, given, spec in zip(names, inputs, specs, strict=False):
            leaves += flatten_input(given, spec, name)
        return leaves

    def process_outputs(self, out: AnyValue) -> AnyValue:
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
        if names[:1] == ["self"] != free_vars[:1]:
            free_vars.insert(0, "self")
        definition = super().gen_fn_def(
            _with_defaults(names, free_vars),
            maybe_return_annotation,
            expanded_def=expanded_def,
        )
        if free_vars:
            definition += self.gen_var_bindings(names, free_vars, expanded_def)
        elif names:  # nothing to take apart: the inputs were empty, and must be
            definition += f"\n{INDENT}{self._flattened(names)}"
        return definition

    def gen_var_bindings(
        self, fn_args: list[str], free_vars: list[str], expanded_def: bool
    ) -> str:
        """The statement that takes the inputs apart, after a line break.

        Annotations stand in lines of their own, because `a: int, b: int = …` is
        a SyntaxError.

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
            text = "".join([f"\n{INDENT}{variable}" for variable in annotated])
        elif annotated:
            text = f"\n{INDENT}{'; '.join(annotated)};\n"
        names = [name.partition(":")[0].partition("#")[0] for name in bare]
        flattened = self._flattened(fn_args)
        return f"{text}\n{INDENT}{', '.join(names)}, = {flattened}"

    def _flattened(self, names: list[str]) -> str:
        """A call that takes the inputs apart, and refuses others."""
        flatten = f"{self._spelled['fx_pytree']}.tree_flatten_spec"
        keys, inputs = self._keywords(names), f"[{', '.join(names)}]"
        if keys is not None:  # the spec is of args and kwargs
            args = ", ".join(names[: len(names) - len(keys)])
            kwargs = ", ".join([f"{key!r}:{key}" for key in keys])
            inputs = f"([{args}], {{{kwargs}}})"
        return f"{flatten}({inputs}, self._in_spec)"

    def _keywords(self, names: list[str]) -> list[str] | None:
        """The parameters in the second half of a spec of args and kwargs.

        A trace by torch.export has such a spec; None for others.
        """
        spec = self.pytree_info.in_spec
        if spec.type is tuple and spec.num_children == 2:
            args, kwargs = child_specs(spec)
            if args.type is tuple and kwargs.type is dict:
                keys = list(kwargs.context)
                if names[args.num_children :] == keys:
                    return keys
        return None

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
        text = output_text(output_args, descs, repr_fn or repr)
        unflatten = f"{self._spelled['pytree']}.tree_unflatten"
        return f"return {unflatten}({text}, self._out_spec)"

    def _own_parameters(self) -> Iterable[str]:
        """The parameters of the traced function."""
        return self.pytree_info.orig_args


class _BoxedCodeGen(CodeGen):
    """Writes a function of one list, which the function empties.

    Otherwise the caller's list would keep all inputs alive to the end.

    AOTAutograd, which captures forward and backward for `torch.compile`, calls
    its functions in this way.

    torch.fx: graph.py, _BoxedCodeGen
    """

    def gen_fn_def(
        self, free_vars: list[str], maybe_return_annotation: str, **_: AnyValue
    ) -> str:
        """The first line, and the statements that empty the list."""
        names = [_name_of(text) for text in free_vars if text != "self"]
        box, items = (_unlike(names, name) for name in self._own_parameters())
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
    """The code generator of a graph without a `set_codegen`.

    Args:
        pytree_info: what a trace with nested inputs noted; None for others.
    """
    return CodeGen() if pytree_info is None else _PyTreeCodeGen(pytree_info)


# -- text ------------------------------------------------------------------


def _with_defaults(names: list[str], free_vars: list[str]) -> list[str]:
    """The parameters, with the defaults of placeholders of the same name."""
    defaults = {
        _name_of(variable): variable.partition(" = ")[2]
        for variable in free_vars
    }
    result: list[str] = []
    may_have_one = True
    for name in reversed(names):
        # A fixed input is taken as `m_1`, whose default is the parameter's.
        parts = (f"{name}_{number}" for number in count(1))
        default = defaults.get(next(p for p in parts if p not in names))
        default = defaults.get(name, default)
        may_have_one = may_have_one and bool(default)
        result.append(f"{name} = {default}" if may_have_one else name)
    return result[::-1]


def _name_of(parameter: str) -> str:
    """The name alone of a parameter with stars, annotation, default."""
    match = _parameter_name.match(parameter.lstrip("*"))
    return match[0] if match else parameter


def _unlike(names: list[str], name: str) -> str:
    """`name`, with underscores until it differs from all `names`."""
    while name in names:
        name += "_"
    return name


PREFILLED["fx_pytree"] = fx_pytree
Graph._make_codegen = staticmethod(default_codegen)  # noqa: SLF001
