"""Stage 02, use-def: Graph, a function as an ordered list of nodes with values.

The nodes of a graph, read from first to last, are the lines of one Python
function.  A Graph makes nodes (`create_node`, and a method for each opcode),
erases them, copies them from another graph, checks them, and passes them to
the code generator.  Order and names are the work of `OrderedGraph`, the edges
between nodes that of `Node`.
"""

from __future__ import annotations

import contextlib
import copy
import inspect
import warnings
from collections.abc import Callable, Hashable, Iterable, Iterator
from functools import cached_property
from itertools import chain
from operator import attrgetter
from typing import ClassVar, Final, TypeAlias

from .linked_list.namespace import target_to_str
from .linked_list.opcodes import Opcode, Target
from .linked_list.ordered_graph import OrderedGraph
from .node import Node, map_arg
from .use_def import errors, lint
from .use_def.arguments import NO_KWARGS
from .use_def.dead_code import Rule, TorchsRule, Unknown
from .use_def.dotted_path import is_state
from .use_def.protocols import (
    CodeGenerator,
    CodeOptions,
    GraphOwner,
    GraphTracer,
    PythonCode,
    PyTreeInfo,
    TransformCodeFunc,
)
from .use_def.text import table
from .use_def.values import AnyValue, Argument, Open

__all__ = ["Graph", "PythonCode", "map_arg"]

NO_DEFAULT: Final = inspect.Signature.empty
"""What `Graph.placeholder` takes for "no default value"."""


# OrderedGraph.create_node takes `name` by keyword, and so does Graph's, which
# has more parameters before it.  That is compatible, but not for pyright:
# pyright: reportIncompatibleMethodOverride=false


class Graph(OrderedGraph[Node], metaclass=Open):
    """A function as data: nodes in order, each with its inputs and users.

        graph = Graph()
        x = graph.placeholder("x")
        y = graph.call_function(torch.relu, (x,))
        graph.output(y)

    torch.fx: graph.py, Graph
    """

    _make_codegen: ClassVar[Callable[..., CodeGenerator[Node]]]
    """Makes a code generator of a PyTreeInfo or None; stage 05 puts it here."""
    _dead_code_rule: ClassVar[TorchsRule] = TorchsRule()
    """Says what is dead code. `import fx` puts the rule of fx.effects here."""
    to_torch: ClassVar[Callable[[Graph], AnyValue]]
    """`fx.to_torch`, which the package root puts here."""
    owning_module: GraphOwner[Node] | None
    """The module that the graph belongs to, if any.

    torch.fx: graph.py, Graph.owning_module
    """

    def __init__(
        self,
        owning_module: GraphOwner[Node] | None = None,
        tracer_cls: type[GraphTracer] | None = None,
        tracer_extras: dict[str, AnyValue] | None = None,
    ) -> None:
        """Make an empty graph.

        Args:
            owning_module: the module that the nodes' dotted targets are in.
            tracer_cls: the class of the tracer that fills the graph.
            tracer_extras: keyword arguments for that tracer's `trace`.

        torch.fx: graph.py, Graph.__init__
        """
        super().__init__(Node)
        self.owning_module = owning_module
        self._tracer_cls = tracer_cls
        self._tracer_extras = tracer_extras
        self._pytree_info: PyTreeInfo | None = None
        self._co_fields: dict[str, AnyValue] = {}
        self._table = NodeTable(self._nodes)

    # -- making nodes ------------------------------------------------------

    def create_node(
        self,
        op: Opcode,
        target: Target,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        name: str | None = None,
        type_expr: AnyValue = None,
    ) -> Node:
        """Make a node and put it at the insert point.

        The six methods below, tracing and `node_copy` all use it.

        Args:
            op: one of the six opcodes.
            target: a callable for call_function, else a str.
            args: positional arguments, as a tuple.  Empty values of other
                types are taken for an empty tuple.
            kwargs: keyword arguments.
            name: the name to ask for; by default made from the target.
            type_expr: the type of the value, for annotations.

        Raises:
            AssertionError: the opcode is unknown, args is not a tuple, kwargs
                is not a dict, or the insert point is beside an erased node.
            ValueError: wrong type of target; an illegal keyword or parameter.
            RuntimeError: an argument node is erased or of another graph.

        If it raises, or a hook does, the graph is as before (but a name may be
        used up).

        torch.fx: graph.py, Graph.create_node
        """
        if not args:
            args = ()
        elif not isinstance(args, tuple):
            raise AssertionError(f"args must be a tuple, got {type(args)}")
        if not kwargs:
            kwargs = NO_KWARGS
        elif not isinstance(kwargs, dict):
            raise AssertionError(f"kwargs must be a dict, got {type(kwargs)}")
        wish = target_to_str(target) if name is None else name
        node = Node(self, wish, op, target, args, kwargs, type_expr)
        try:
            node._name = self._graph_namespace.create_name(wish)
            if self.owning_module is not None:
                self._tell_owner("_create_node_hooks", node)
            self._table.add(node)
            self._nodes.add(node, self._insert)
        except BaseException:
            node._drop_inputs()  # else they would have a user in no graph
            self._table.forget()
            raise
        return node

    def placeholder(
        self,
        name: str,
        type_expr: AnyValue = None,
        default_value: AnyValue = NO_DEFAULT,
    ) -> Node:
        """Add a parameter of the function.

        Args:
            name: the parameter's name; `*rest` and `**options` are allowed.
            type_expr: its annotation.
            default_value: its default, which may be None;
                `inspect.Signature.empty` is no default.

        Raises:
            ValueError: `name` cannot be a parameter.

        torch.fx: graph.py, Graph.placeholder
        """
        args = () if default_value is NO_DEFAULT else (default_value,)
        return self.create_node(
            "placeholder", name, args=args, type_expr=type_expr
        )

    def get_attr(self, qualified_name: str, type_expr: AnyValue = None) -> Node:
        """Add a fetch of a parameter, buffer or other attribute.

        Args:
            qualified_name: dotted path from the owning module, "foo.weight".
            type_expr: the type of the value, for annotations.

        Warns if the owning module has no such parameter, buffer or module.

        torch.fx: graph.py, Graph.get_attr
        """
        owner = self.owning_module
        if owner is not None and not is_state(owner, qualified_name):
            warnings.warn(errors.no_state(qualified_name), stacklevel=2)
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_module(
        self,
        module_name: str,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        type_expr: AnyValue = None,
    ) -> Node:
        """Add a call of a submodule.

        Args:
            module_name: dotted path from the owning module, "layer1.0.conv".
            args: positional arguments, without the module itself.
            kwargs: keyword arguments.
            type_expr: the type of the value, for annotations.

        Raises:
            AttributeError: the graph has an owner without such a submodule.

        torch.fx: graph.py, Graph.call_module
        """
        if self.owning_module is not None:
            self.owning_module.get_submodule(module_name)
        return self.create_node(
            "call_module", module_name, args, kwargs, type_expr=type_expr
        )

    def call_method(
        self,
        method_name: str,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        type_expr: AnyValue = None,
    ) -> Node:
        """Add a call of a method.

        Args:
            method_name: the method's name.
            args: the object it is called on, then the positional arguments.
            kwargs: keyword arguments.
            type_expr: the type of the value, for annotations.

        torch.fx: graph.py, Graph.call_method
        """
        return self.create_node(
            "call_method", method_name, args, kwargs, type_expr=type_expr
        )

    def call_function(
        self,
        the_function: Callable[..., AnyValue],
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        type_expr: AnyValue = None,
        name: str | None = None,
    ) -> Node:
        """Add a call of a free function.

        Args:
            the_function: the function itself: an operator of torch, a
                builtin, a member of `operator`, any Python callable.
            args: positional arguments.
            kwargs: keyword arguments.
            type_expr: the type of the value, for annotations.
            name: the name to ask for.

        torch.fx: graph.py, Graph.call_function
        """
        return self.create_node(
            "call_function", the_function, args, kwargs, name, type_expr
        )

    def output(self, result: Argument, type_expr: AnyValue = None) -> Node:
        """Add the return statement.

        Args:
            result: what the function returns: a Node, or a structure of them.
            type_expr: the return annotation.

        torch.fx: graph.py, Graph.output
        """
        return self.create_node(
            "output", "output", (result,), type_expr=type_expr
        )

    def _tell_owner(self, hooks: str, node: Node) -> None:
        """Call the owning module's hooks for a node made or erased."""
        for hook in [*getattr(self.owning_module, hooks, ())]:
            hook(node)

    @property
    def is_finished(self) -> bool:
        """Whether the last node is an output."""
        return self._root._prev._op == "output"

    @property
    def inserts_at_end(self) -> bool:
        """Whether the next node will be the last."""
        return self._insert == self._root.prepend

    # -- finding and removing nodes ----------------------------------------

    def output_node(self) -> Node:
        """The output, which is the last node.

        Raises:
            AssertionError: the graph is empty or its last node is another.

        torch.fx: graph.py, Graph.output_node
        """
        last = self._root._prev
        if last.op != "output":
            raise AssertionError(
                f"Expected output node, got op={last.op}: the last node of "
                "the graph must be made by graph.output(value)"
            )
        return last

    def find_nodes(
        self, *, op: Opcode, target: Target | None = None, sort: bool = True
    ) -> list[Node]:
        """The nodes with an opcode and, if given, a target, in order.

        Args:
            op: the opcode.
            target: the target; required for call_function.
            sort: taken for torch.fx's sake; the result is always in order.

        Raises:
            AssertionError: call_function without a target.

        Cost: O(found), or O(found log found) if they were not made in order;
        the first time O(nodes).

        torch.fx: graph.py, Graph.find_nodes
        """
        if op == "call_function" and target is None:
            raise AssertionError("target must not be None for call_function op")
        return self._table.find(op, target)

    def erase_node(self, to_erase: Node) -> None:
        """Take a node out of the graph; its inputs lose it as a user.

        A loop that is at this node can go on; it must not be used for
        anything else.  The hooks of the owning module are called before
        anything changes.  A node that was erased before is left alone, with
        a warning at the caller's line.

        Args:
            to_erase: a node of this graph without users.

        Raises:
            RuntimeError: the node has users, is of another graph, or a hook
                has erased it.

        torch.fx: graph.py, Graph.erase_node
        """
        if to_erase._erased and to_erase.graph is self:
            warnings.warn(f"{to_erase} is erased already", stacklevel=2)
            return
        if to_erase._op == "placeholder":
            self._release(to_erase)
        self._check_erasable(to_erase)
        if self.owning_module is not None:
            self._tell_owner("_erase_node_hooks", to_erase)
            self._check_erasable(to_erase)
        self._nodes.erase(to_erase)
        self._table.drop(to_erase)
        to_erase._drop_inputs()

    def _release(self, place: Node) -> None:
        """Told of a placeholder before it is erased.

        `import fx` puts a method here that takes it out of the guards of
        `fx.trace`.
        """

    def _check_erasable(self, to_erase: Node) -> None:
        """Raise unless a node is in this graph and has no users."""
        is_mine = to_erase.graph is self and to_erase._state == "linked"
        if to_erase.users or not is_mine:
            raise errors.not_erasable(to_erase, self)

    def eliminate_dead_code(
        self,
        is_impure_node: Callable[[Node], bool] | None = None,
        *,
        unknown: Unknown = "drop",
        effects: Rule | None = None,
    ) -> bool:
        """Erase the nodes without users that have no side effect.

        Placeholders, the output, and calls with a known side effect (see
        `effects.classify`) are live; so are the nodes that they need.  A write
        into memory that the graph itself has made, and that nothing looks at
        afterwards, is not such an effect.  If a get_attr node fetches a child
        module that has a graph, that graph is cleaned too, with the same
        settings, and the child recompiled.

        Args:
            is_impure_node: says which nodes have side effects, in place of
                `effects.classify`.
            unknown: whether to drop or keep calls that nothing is known about,
                such as a user's function, or a method of an input that is not
                annotated.  torch.fx drops them.
            effects: "torch" keeps the calls that torch.fx keeps, "sound" the
                calls whose effect somebody may see; by default the rule of
                `effects.by_rule`, which is "sound".

        Returns:
            Whether something was erased.

        Raises:
            RuntimeError: the graph is broken, for instance a node is used
                before it is defined.  Nothing has been erased then.

        Cost: O(nodes + uses).

        torch.fx: graph.py, Graph.eliminate_dead_code
        """
        for problem in lint.structure_problems(self):
            raise problem.kind(problem.message)
        must_stay = is_impure_node
        if must_stay is None:
            must_stay = self._dead_code_rule.must_keep(unknown, effects)
        changed = False
        for node in reversed(self._nodes):
            if not node.users and not must_stay(node):
                self.erase_node(node)
                changed = True
        for child, graph in self._child_graph_modules():
            changed |= graph.eliminate_dead_code(
                is_impure_node, unknown=unknown, effects=effects
            )
            child.recompile()
        return changed

    def _child_graph_modules(self) -> Iterator[tuple[AnyValue, Graph]]:
        """The owner's children that have a graph and that a node fetches."""
        if self.owning_module is None:
            return
        fetched = {node.target for node in self.find_nodes(op="get_attr")}
        for name, child in self.owning_module.named_children():
            graph = getattr(child, "graph", None)
            if name in fetched and isinstance(graph, Graph):
                yield child, graph

    def _is_impure(self, node: Node, impure_random: bool) -> bool:
        """What `Node.is_impure` answers."""
        return self._dead_code_rule.is_impure(node, impure_random)

    # -- copying -----------------------------------------------------------

    def node_copy(
        self,
        node: Node,
        arg_transform: Callable[[Node], Argument] = lambda node: node,
    ) -> Node:
        """Make a copy of a node, of this or another graph, in this one.

        Args:
            node: the node to copy: name (if free), type and a shallow copy
                of meta come with it.
            arg_transform: turns each argument node into what the copy uses.
                Required if `node` is of another graph and has inputs.

        Raises:
            RuntimeError: an argument of the copy is not in this graph.
            TypeError: `node` is a node of torch.fx.

        torch.fx: graph.py, Graph.node_copy
        """
        if type(node) is not Node:
            errors.refuse_torchs(node)
        args, kwargs = node._args, node._kwargs
        if node._inputs:
            args = map_arg(args, arg_transform)
            kwargs = kwargs and map_arg(kwargs, arg_transform)
        result = self.create_node(
            node._op, node._target, args, kwargs, node._name, node.type
        )
        if node.meta:
            result.meta = copy.copy(node.meta)
        return result

    def graph_copy(
        self,
        g: Graph,
        val_map: dict[Node, Node],
        return_output_node: bool = False,
    ) -> Argument:
        """Copy all nodes of `g` except its output to the insert point.

        Args:
            g: the graph to copy from.
            val_map: filled with node of `g` -> node here.  A node that is in
                it beforehand is not copied; what it is mapped to is used.
            return_output_node: return a pair: also the output node of `g`.

        Returns:
            What `g` returns, in terms of this graph; None if `g` has no
            output.

        Raises:
            TypeError: `g` is a graph of torch.fx.

        Cost: O(size of `g`).

        torch.fx: graph.py, Graph.graph_copy
        """
        output = self._copy_body(g, val_map)
        if output is None:
            return None
        result = map_arg(output._args[0], val_map.__getitem__)
        return (result, output) if return_output_node else result

    def _copy_body(self, g: Graph, val_map: dict[Node, Node]) -> Node | None:
        """Copy the nodes up to the output of `g`, which is returned."""
        errors.refuse_torchs(g)
        lookup = val_map.__getitem__
        # If g is this graph, the copies must not be copied in turn.
        for node in list(g._nodes) if g is self else g._nodes:
            if node in val_map:
                continue
            if node._op == "output":
                return node
            val_map[node] = self.node_copy(node, lookup)
        return None

    def __deepcopy__(self, memo: dict[int, AnyValue] | None = None) -> Graph:
        """A copy of the graph; constants and targets are shared with it.

        A node in the `meta` of a node becomes the node of the new graph, in
        whatever container or object it is. `memo` gets each node's copy, so
        that a node that is kept elsewhere in a structure being copied becomes
        the node of the new graph, too.

        torch.fx: graph.py, Graph.__deepcopy__
        """
        memo = {} if memo is None else memo
        new = Graph(None, self._tracer_cls, self._tracer_extras)
        memo[id(self)] = new
        copies: dict[Node, Node] = {}
        output = new._copy_body(self, copies)
        if output is not None:
            copies[output] = new.node_copy(output, copies.__getitem__)
        memo.update(zip(map(id, copies), copies.values(), strict=True))
        self._move_notes(copies)
        new._pytree_info = self._pytree_info
        new._co_fields = self._co_fields
        if "_codegen" in vars(self):
            new._codegen = copy.deepcopy(self._codegen)
        return new

    def _move_notes(self, copies: dict[Node, Node]) -> None:
        """Told of the copies of a graph's nodes, whose notes name old nodes.

        `import fx` puts a method here that makes them name the copies.
        """

    # -- checking and printing ---------------------------------------------

    def lint(self) -> None:
        """Raise if the graph is not a well-formed program.

        Raises the first fault that `lint.problems` finds, with the nodes
        around it.  For all of them: `list(fx.lint.problems(graph))`.

        Raises:
            ValueError: a target of the wrong type.
            RuntimeError: any other fault.

        Cost: O(nodes + uses).

        torch.fx: graph.py, Graph.lint
        """
        for problem in lint.problems(self):
            near = lint.excerpt(self, problem.node)
            raise problem.kind(f"{problem.message}\n{near}")

    def print_tabular(self) -> None:
        """Print the nodes as a table: opcode, name, target, args, kwargs.

        torch.fx: graph.py, Graph.print_tabular (which needs tabulate)
        """
        rows = [
            (n.op, n._name, str(n.target), str(n._args), str(n._kwargs))
            for n in self._nodes
        ]
        print(table(("opcode", "name", "target", "args", "kwargs"), rows))

    # -- code, which is stage 05's -----------------------------------------

    @cached_property
    def _codegen(self) -> CodeGenerator[Node]:
        """What writes this graph as Python."""
        return self._make_codegen(self._pytree_info)

    def set_codegen(self, codegen: CodeGenerator[Node]) -> None:
        """Let `codegen` write this graph as Python.

        torch.fx: graph.py, Graph.set_codegen
        """
        self._codegen = codegen

    def python_code(
        self,
        root_module: str,
        *,
        verbose: bool = False,
        additional_meta: list[str] | None = None,
        include_stride: bool = False,
        include_device: bool = False,
        colored: bool = False,
        record_func: bool = False,
        expanded_def: bool = False,
    ) -> PythonCode:
        """The graph as Python source, and the globals that it names.

        Args:
            root_module: how the code calls the module, usually "self".
            verbose: comments saying where nodes come from, and shapes.
            additional_meta: keys of node.meta to show in the comments.
            include_stride: strides beside the shapes.
            include_device: devices beside the shapes.
            colored: ANSI colours.
            record_func: profiler ranges around each call.
            expanded_def: one parameter a line.

        Raises:
            RuntimeError: the graph cannot be written as Python.
            NotImplementedError: a node has an unknown opcode.

        Cost: O(nodes + size of their arguments).

        torch.fx: graph.py, Graph.python_code
        """
        options = CodeOptions(
            verbose,
            include_stride,
            include_device,
            colored,
            expanded_def,
            record_func,
            tuple(additional_meta or ()),
        )
        return self._codegen._gen_python_code(self._nodes, root_module, options)

    def process_inputs(self, *args: AnyValue) -> AnyValue:
        """A caller's inputs, as the placeholders take them.

        Raises:
            RuntimeError: the code generator cannot write the graph.

        torch.fx: graph.py, Graph.process_inputs
        """
        for problem in lint.code_problems(self):
            raise problem.kind(problem.message)
        return self._codegen.process_inputs(*args)

    def process_outputs(self, out: AnyValue) -> AnyValue:
        """The output's value, as the caller gets it.

        torch.fx: graph.py, Graph.process_outputs
        """
        return self._codegen.process_outputs(out)

    def on_generate_code(
        self,
        make_transformer: Callable[
            [TransformCodeFunc | None], TransformCodeFunc
        ],
    ) -> contextlib.AbstractContextManager[object]:
        """Edit generated code before it is compiled.

        Args:
            make_transformer: gets the present transformer, or None, and
                returns the new one.

        Returns:
            A context manager that restores the old transformer.  If it is not
            used in a `with` statement, the new transformer stays.

        torch.fx: graph.py, Graph.on_generate_code
        """
        codegen = self._codegen
        old = codegen._body_transformer
        codegen._body_transformer = make_transformer(old)
        restore = contextlib.ExitStack()
        restore.callback(setattr, codegen, "_body_transformer", old)
        return restore


# -- finding nodes ---------------------------------------------------------

_Found: TypeAlias = dict[Opcode, dict[Hashable, dict[Node, None]]]

_BY_PLACE: Final = attrgetter("_sort_key")


class NodeTable:
    """The nodes of a graph, by opcode and target.

    A pass that looks for one function after another should not walk over the
    whole graph for each.  So the first `Graph.find_nodes` makes the table, in
    one walk, and from then on each edit keeps it right: making a node, erasing
    it, and assigning its `op` or `target`.  Moving a node changes nothing here,
    because the nodes found are put in order by their order keys.

    torch.fx: graph.py, _FindNodesLookupTable
    """

    def __init__(self, nodes: Iterable[Node]) -> None:
        """Note nothing yet: most graphs are never asked.

        Args:
            nodes: the nodes of a graph, to be walked at the first question.
        """
        self._graph_nodes = nodes
        self._found: _Found | None = None

    def forget(self) -> None:
        """Begin again at the next question: all nodes may have changed."""
        self._found = None

    def add(self, node: Node) -> None:
        """Note a node that is in the graph."""
        if self._found is not None:
            _note(self._found, node)

    def drop(self, node: Node) -> bool:
        """Forget a node, and say whether it was known.

        Its opcode and target must be those that it was noted with.
        """
        if self._found is None:
            return False
        targets = self._found.get(node.op, {})
        key = _key(node.target)
        nodes = targets.get(key, {})
        if node not in nodes:
            return False
        del nodes[node]
        if not nodes:
            del targets[key]
        return True

    def find(self, op: Opcode, target: Target | None) -> list[Node]:
        """The nodes with an opcode and, unless it is None, a target, in order.

        Cost: O(found), if they were made in order; else O(found log found).
        The first time O(nodes).
        """
        table = self._found
        if table is None:
            # It is kept when it is whole: the walk may be interrupted, or
            # another thread may ask meanwhile.
            table = {}
            for node in self._graph_nodes:
                _note(table, node)
            self._found = table
        targets = table.get(op, {})
        nodes: Iterable[Node] = chain.from_iterable(targets.values())
        if target is not None:
            nodes = targets.get(_key(target), ())
        return sorted(nodes, key=_BY_PLACE)


def _note(table: _Found, node: Node) -> None:
    """Put a node into a table."""
    targets = table.setdefault(node.op, {})
    targets.setdefault(_key(node.target), {})[node] = None


def _key(target: Target) -> Hashable:
    """What tells targets apart: an object without a hash is only itself."""
    try:
        hash(target)
    except TypeError:
        return id(target)
    return target
