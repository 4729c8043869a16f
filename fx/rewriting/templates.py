"""Stage 07, rewriter: replacements, traced and checked before the first edit.

A replacement is given as a function, a module, a graph, or a callback that
makes one for each match.  It is checked here, while nothing has been changed
yet.  What passes is a `Template`, and with the match that
it replaces a `Rewrite`.

The same replacement for all matches is traced and checked once, when the first
match asks for it; without a match it is not checked, as in torch.fx.
"""

from __future__ import annotations

import contextlib
import copy
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate, count
from typing import TypeAlias

from torch import nn

from ..codegen import attributes
from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node
from ..passes.utils.matcher_utils import InternalMatch, SubgraphMatcher, as_ours
from ..tracing.torch_marks import is_leaf_function
from ..tracing.tracer import Tracer
from ..tracing.wrapping import original_of
from ..use_def import dotted_path, lint
from ..use_def.annotations import signature_of
from ..use_def.arguments import map_aggregate, parts
from ..use_def.values import AnyValue, Argument

Program: TypeAlias = Callable[..., AnyValue] | nn.Module | Graph
"""A pattern or replacement: a function, a module, or a graph as it is."""

MakeReplacement: TypeAlias = Callable[[InternalMatch, Graph, Graph], Graph]
"""Given (match, graph, pattern), makes the replacement for a match."""

BY_PATH = ("get_attr", "call_module")
"""Opcodes whose target is a path in the owning module."""


class Copies:
    """The copies that a module has got of what replacements need.

    A replacement may be used for two modules, which should not share weights by
    accident, so objects are copied; what they share among each other stays
    shared.  A callback may give another constant of the same name for each
    match, so an object is identified by its path and by itself. Nothing is put
    into a user's `Sequential`, which would call it.

    Attributes:
        origins: path in the module -> the object that was copied.
    """

    def __init__(self) -> None:
        """Begin with none."""
        self.origins: dict[str, object] = {}
        self._paths: dict[tuple[str, int], str] = {}
        self._memo: dict[int, AnyValue] = {}
        self._numbers: dict[str, Iterator[int]] = {}

    def has(self, path: str) -> bool:
        """Whether what the module has at a path came from a replacement."""
        ways = accumulate(path.split("."), "{}.{}".format)
        return not self.origins.keys().isdisjoint(ways)

    def put(self, gm: GraphModule, template: Template, path: str) -> str:
        """The path of the copy of what a template needs at `path`.

        Weights that two of the objects share stay shared, and a buffer that
        the state dict leaves out stays so.
        """
        original = template.needed[path]
        key = (path, id(original))  # `origins` keeps the object alive
        if key in self._paths:
            return self._paths[key]
        new = copy.deepcopy(original, self._memo)
        if dotted_path.look_up(gm, path) is new:
            return path  # it came with the module that has it
        target = self._paths[key] = self._free_path(gm, path)
        self.origins[target] = original
        if isinstance(new, nn.Module):
            gm.add_submodule(target, new)
        else:
            saved = dotted_path.is_persistent(template.root, path)
            attributes.assign(gm, target, new, persistent=saved)
        return target

    def _free_path(self, gm: GraphModule, path: str) -> str:
        """`path`, or one like it that the module does not use yet.

        What is to go into a module of the user's gets a path at the root: a
        Sequential would call it, and it may be in another model, too.
        """
        holder = path.rpartition(".")[0]
        for step in dotted_path.walk(gm, holder) if holder else ():
            free = step.value is None or step.value is dotted_path.MISSING
            if not free and type(step.value) is not nn.Module:
                path = path.replace(".", "_")
                break
        if dotted_path.look_up(gm, path) is None:
            return path
        stem = path.rstrip("0123456789")
        numbers = self._numbers.setdefault(stem, count())
        paths = (f"{stem}{number}" for number in numbers)
        return next(path for path in paths if not dotted_path.exists(gm, path))


@dataclass
class Template:
    """A replacement that has been checked.

    Attributes:
        placeholders: its inputs.
        body: its operations.
        outputs: what it returns, one after the other.
        keys: those of each dict in what it returns.
        needed: path -> an object that the rewritten module has to get.
        renamed: path in the replacement -> path in the rewritten module, of
            what is needed, once it is there.
        root: where the needed objects are.
        copies: what the rewritten module has got already.
    """

    placeholders: list[Node]
    body: list[Node]
    outputs: list[Argument]
    keys: list[tuple[AnyValue, ...]]
    needed: dict[str, object] = field(default_factory=dict)
    renamed: dict[str, str] = field(default_factory=dict)
    root: object = None
    copies: Copies = field(default_factory=Copies)


@dataclass
class Rewrite:
    """A match, and the template that replaces it.

    Attributes:
        match: the nodes that are replaced.
        template: what replaces them.
        inputs: the placeholders of the pattern.
        stay: insert the new nodes where the match ends, even if its first
            user comes later.
        refused: why the rewrite must not be carried out; "" if it may.
        made: the new nodes, once they are inserted.
        operations: the nodes of the graph that are replaced, and will be
            erased, as keys.
    """

    match: InternalMatch
    template: Template
    inputs: list[Node]
    stay: bool = False
    refused: str = ""
    made: list[Node] = field(default_factory=list)
    operations: dict[Node, None] = field(init=False)

    def __post_init__(self) -> None:
        """Look up the operations of the match."""
        self.operations = dict.fromkeys(self.match.operations())

    @staticmethod
    def respect(graph: Graph, rewrites: Sequence[Rewrite]) -> None:
        """Refuse rewrites that would change what is written or read.

        `import fx` puts a method here that does; nobody else asks for it.
        """


def graph_of(program: Program) -> Graph:
    """The graph of a pattern or replacement; traced if need be.

    That of a leaf function (`fx.wrap`) is a call of it, as in every program. A
    graph or module of torch.fx is converted, and stays as it is.

    A pattern does not become a GraphModule, because its code would be compiled
    and never called.

    Raises:
        TypeError: a leaf function takes any number of arguments.
        TraceError: the program cannot be traced.
    """
    program = as_ours(program)
    if isinstance(program, GraphModule):
        return program.graph
    if isinstance(program, Graph):
        return program
    function = original_of(program)
    if is_leaf_function(function):
        return _call_of(function)
    tracer = Tracer()
    graph = tracer.trace(program)
    owner: AnyValue = tracer.root  # not a GraphModule, since it is never called
    graph.owning_module = owner
    return graph


def _call_of(function: Callable[..., AnyValue]) -> Graph:
    """A graph that calls a leaf function with all its parameters."""
    graph = Graph()
    args: list[Argument] = []
    kwargs: dict[str, Argument] = {}
    parameters: Mapping[str, inspect.Parameter] | None = None
    with contextlib.suppress(ValueError):  # written in C
        parameters = signature_of(function).parameters
    known = parameters is not None
    for name, parameter in (parameters or {}).items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            known = False
        elif parameter.kind is parameter.KEYWORD_ONLY:
            kwargs[name] = graph.placeholder(name)
        else:
            args.append(graph.placeholder(name))
    if not known:
        called = function.__name__
        raise TypeError(
            f"{called} is a leaf function, so that a call of it is meant; but "
            "it takes any number of arguments, or does not say how many: give "
            f"a function that calls it, such as lambda x: {called}(x)"
        )
    call = graph.call_function(function, tuple(args), kwargs)
    call.meta["is_wrapped"] = True
    graph.output(call)
    return graph


MakeTemplate: TypeAlias = Callable[[InternalMatch], Template]
"""Makes the checked replacement for a match."""


def template_maker(
    gm: GraphModule,
    matcher: SubgraphMatcher,
    replacement: Program | None,
    callback: MakeReplacement | None,
) -> MakeTemplate:
    """A function that makes the template for each match.

    A callback is asked for each match; a replacement is the same for all, and
    checked at the first of them, but for modules that are each match's own.

    Raises:
        AssertionError: neither is given.
    """
    if callback is not None:
        copies = Copies()

        def made_for(match: InternalMatch) -> Template:
            graph = as_ours(callback(match, gm.graph, matcher.pattern))
            owner = graph.owning_module
            template = make_template(gm, graph, owner, copies=copies)
            _check_fit(match, template, matcher)
            return template

        return made_for
    if replacement is None:
        raise AssertionError(
            "Must provide either a replacement GraphModule or a replacement "
            "callback"
        )
    program: AnyValue = as_ours(replacement)
    graph = graph_of(program)
    is_module = isinstance(program, nn.Module)
    root = program if is_module else graph.owning_module
    traced = not isinstance(program, nn.Module | Graph)

    same: list[Template] = []
    copies = Copies()
    by_class = matcher.options.get("modules_by_class", False)

    def same_for(match: InternalMatch) -> Template:
        if by_class or not same:
            own, paired = matcher.prepared.comparison, match.nodes_map
            path_of = partial(own.matched_path, root=root, paired=paired)
            template = make_template(
                gm, graph, root, path_of, own_constants=traced, copies=copies
            )
            _check_fit(match, template, matcher)
            same[:] = [template]
        return same[0]

    return same_for


def make_template(
    gm: GraphModule,
    graph: Graph,
    root: object,
    path_of: Callable[[str], str | None] | None = None,
    *,
    own_constants: bool = False,
    copies: Copies | None = None,
) -> Template:
    """Check a replacement.

    Args:
        gm: the module that will be rewritten.
        graph: the replacement's graph.
        root: where its targets are looked up if `gm` does not have them.
        path_of: see `Exact.matched_path`.
        own_constants: its get_attr targets were made up by tracing, so that
            they mean the replacement's own objects, whatever `gm` has under
            the same names.
        copies: what `gm` has got from other replacements; none by default.

    Raises:
        RuntimeError: the graph is broken, has no output, or names a module
            or attribute that neither `gm` nor `root` has.

    Cost: O(size of the graph).
    """
    for problem in lint.structure_problems(graph):
        raise problem.kind(f"in the replacement: {problem.message}")
    nodes = list(graph.nodes)
    if not nodes or nodes[-1].op != "output":
        raise RuntimeError(
            "the replacement has no output: end its graph with "
            "graph.output(value)"
        )
    outputs: list[Argument] = []
    map_aggregate(nodes[-1].args[0], outputs.append)
    template = Template(
        [node for node in nodes if node.op == "placeholder"],
        [node for node in nodes if node.op not in ("placeholder", "output")],
        outputs,
        [*_keys(nodes[-1].args[0])],
        root=root,
        copies=copies or Copies(),
    )
    for node in template.body:
        if node.op in BY_PATH:
            path = path_of(str(node.target)) if path_of else None
            own = path == "" or (own_constants and node.op == "get_attr")
            if path:
                template.renamed[str(node.target)] = path
            else:
                _resolve_path(gm, root, node, template, own=own)
    return template


def _keys(returned: Argument) -> Iterator[tuple[AnyValue, ...]]:
    """The keys of each dict in what a graph returns, in order."""
    if isinstance(returned, dict):
        yield tuple(returned)
    for part in parts(returned):
        yield from _keys(part)


def _resolve_path(
    gm: GraphModule, root: object, node: Node, template: Template, *, own: bool
) -> None:
    """Decide which object a node of a replacement is to fetch or call.

    If both modules have something at the path, that of `gm` is meant: a
    replacement names the weights that are there.  If only the replacement's has
    it, it will be copied.  Two things are the replacement's in any case:
    constants whose names tracing made up, and what `gm` has only because
    another replacement brought it.
    """
    path = str(node.target)
    ours = dotted_path.look_up(gm, path)
    theirs = dotted_path.look_up(root, path)
    is_own = own or template.copies.has(path)
    # What is called for its effect, as guards are, is one's own.
    is_own |= bool(getattr(theirs, "_is_impure", False))
    is_needed = theirs is not None and (ours is None or is_own)
    if ours is None and theirs is None:
        raise RuntimeError(
            f'Attempted to create a "{node.op}" node during subgraph '
            f"rewriting with target {path}, but the referenced attribute "
            "does not exist in the replacement GraphModule, nor in the one "
            f"that is rewritten: node {node} of the replacement needs it"
        )
    if is_needed and ours is not theirs:
        template.needed[path] = theirs
    value: object = theirs if is_needed else ours
    if node.op == "call_module" and not isinstance(value, nn.Module):
        where = "replacement" if is_needed else "module that is rewritten"
        raise RuntimeError(
            f"node {node} of the replacement calls the module {path!r}, but "
            f"what the {where} has there is a {type(value).__name__}: give "
            "the module another name"
        )


def _check_fit(
    match: InternalMatch, template: Template, matcher: SubgraphMatcher
) -> None:
    """Raise unless a template can replace a match.

    If the pattern does not use an input, no match says what it is paired with.
    If the pattern returns an input, that node stays, and the replacement can
    only return it as well.

    Raises:
        AssertionError: the numbers of inputs or outputs disagree.
        RuntimeError: the replacement uses an input that the match does not
            know; or the pattern returns an input, and the replacement
            something else in its place; or they return other keys.
    """
    inputs, outputs = match.placeholder_nodes, match.returning_nodes
    if len(inputs) != len(template.placeholders):
        raise AssertionError(
            f"Placeholder count mismatch: {len(inputs)} vs "
            f"{len(template.placeholders)}: pattern and replacement must have "
            "the same inputs, used or not"
        )
    if len(outputs) != len(template.outputs):
        raise AssertionError(
            f"Returning nodes count mismatch: {len(outputs)} vs "
            f"{len(template.outputs)}: pattern and replacement must return "
            "equally many values"
        )
    keys = [*_keys(matcher.pattern.output_node().args[0])]
    if keys and template.keys and keys != template.keys:
        raise RuntimeError(
            f"the pattern returns dicts with the keys {keys}, and the "
            f"replacement with {template.keys}: give the same keys in one order"
        )
    sought_inputs = matcher.prepared.placeholders
    partner = dict(zip(sought_inputs, template.placeholders, strict=True))
    for sought, given in partner.items():
        if sought not in match.nodes_map and given.users:
            raise RuntimeError(
                f"the replacement reads its input {given}, but the pattern "
                f"does not use its input {sought}: no match says what it is"
            )
    returned = matcher.prepared.returning
    for node, new in zip(returned, template.outputs, strict=True):
        if node.op == "placeholder" and partner[node] is not new:
            raise RuntimeError(
                f"the pattern returns its input {node}, and the replacement "
                f"{new} in its place: return input {partner[node]} there"
            )


def copy_needed(gm: GraphModule, template: Template) -> None:
    """Copy into a module what a template needs and the module lacks."""
    for path in template.needed:
        template.renamed[path] = template.copies.put(gm, template, path)
