"""Stage 02, use-def: Node, a line of the program that knows its values.

A node of stage 01 has a name, an opcode and a target.  Now it gets arguments,
and some of them are other nodes: the node uses their values.  Each use is
recorded at both ends, as `Node.users` explains, so that a pass can ask "what
does this node need" and "who needs this node" without a search.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Self, TypeVar, cast, overload

from torch import nn

from .immutable_collections import immutable_dict
from .linked_list.namespace import check_text, is_parameter_name
from .linked_list.opcodes import Opcode, Target
from .linked_list.ordered_graph import NamedNode
from .use_def import errors
from .use_def.arguments import NO_KWARGS, map_aggregate
from .use_def.text import (
    _get_qualified_name,
    _type_repr,
    arguments_text,
    pretty_target,
    tensor_text,
)
from .use_def.values import (
    LEAVES,
    AnyValue,
    ArgsKwargsPair,
    Argument,
    Open,
    base_types,
)

if TYPE_CHECKING:
    from .graph import Graph

__all__ = [
    "Argument",
    "Node",
    "Target",
    "_get_qualified_name",
    "_type_repr",
    "base_types",
    "map_aggregate",
    "map_arg",
]


T = TypeVar("T")


@overload
def map_arg(
    a: tuple[object, ...], fn: Callable[[Node], Argument]
) -> tuple[Argument, ...]: ...
@overload
def map_arg(
    a: dict[str, T], fn: Callable[[Node], Argument]
) -> immutable_dict[str, Argument]: ...
@overload
def map_arg(a: object, fn: Callable[[Node], Argument]) -> Argument: ...
def map_arg(a: object, fn: Callable[[Node], Argument]) -> Argument:
    """Rebuild `a` with each Node replaced by `fn(node)`.

    Args:
        a: an argument, as for `map_aggregate`.
        fn: called once for each occurrence of a Node, from left to right.

    Raises:
        AssertionError: `fn` is not callable.

    Cost: O(size of `a`).

    torch.fx: node.py, map_arg
    """
    if not callable(fn):
        raise AssertionError("torch.fx.map_arg(a, fn): fn must be a callable")
    if type(a) is Node:
        return fn(a)
    if type(a) is tuple:  # such as args: nodes and constants, most often
        return tuple([x if type(x) in LEAVES else map_arg(x, fn) for x in a])
    return map_aggregate(a, lambda x: fn(x) if isinstance(x, Node) else x)


class Node(NamedNode["Graph"], metaclass=Open):
    """One call of the program, or a parameter, a fetch, the return.

    What args and kwargs mean depends on `op`:

    - placeholder: `target` is the parameter's name, `args` is empty or holds
      its default value.
    - get_attr: `target` is the dotted path of the value; no arguments.
    - call_function: `target(*args, **kwargs)`.
    - call_method: `args[0].target(*args[1:], **kwargs)`.
    - call_module: the submodule at `target`, called with the arguments.
    - output: `args[0]` is what the function returns.

    Attributes:
        graph: the graph that the node is in.
        op: the opcode.
        target: what is called, fetched or bound.
        users: the nodes that use this one's value, as keys, in order of
            their first use.  `y in x.users` exactly when x is among the
            inputs of y: what assigns arguments or erases a node changes both.
        type: the Python type of the value, for annotations; or None.
        meta: for passes to leave notes in; copied with the node.

    torch.fx: node.py, Node
    """

    __slots__ = (
        "__dict__",
        "__weakref__",
        "_args",
        "_inputs",
        "_kwargs",
        "meta",
        "type",
        "users",
    )

    _args: tuple[Argument, ...]
    _kwargs: immutable_dict[str, Argument]
    _inputs: tuple[Node, ...]
    _repr_fn: Callable[[Node], str] | None = None
    users: dict[Node, None]
    type: AnyValue
    meta: dict[str, AnyValue]

    def __init__(
        self: Self,
        graph: Graph,
        name: str,
        op: Opcode,
        target: Target,
        args: tuple[Argument, ...] = (),
        kwargs: Mapping[str, Argument] = NO_KWARGS,
        return_type: AnyValue = None,
    ) -> None:
        """Make a node that is not in a list yet: see `Graph.create_node`.

        Args:
            graph: the graph it is for; its argument nodes must be there.
            name: the variable that its value becomes.
            op: one of the six opcodes.
            target: a callable for call_function, else a str.
            args: positional arguments.
            kwargs: keyword arguments.
            return_type: the type of the value, for annotations.

        Raises:
            AssertionError: unknown opcode.
            ValueError: a target of the wrong type for the opcode; a parameter
                or keyword that is not an identifier.
            RuntimeError: an argument node is erased or of another graph.
            TypeError: a Node inside a set, where it could not be tracked.

        torch.fx: node.py, Node
        """
        NamedNode.__init__(self, graph, name, op, target)
        self._args = ()
        self._kwargs = NO_KWARGS
        self._inputs = ()
        self.users = {}
        self.type = return_type
        self.meta = {}
        if op != "call_function":
            check_text(op, str(target))
        if args or kwargs:
            self._update_args_kwargs(args, kwargs)

    @property
    def name(self) -> str:
        """The variable that the node's value becomes; unique in its graph.

        Assigning tells the owner's replace hooks, once for each user.

        torch.fx: node.py, Node.name
        """
        return self._name

    @name.setter
    def name(self, name: str) -> None:
        for hook in [*getattr(self.graph.owning_module, "_replace_hooks", ())]:
            for user in self.users:
                hook(old=self, new=name, user=user)
        self._name = name

    def _call(self, op: Opcode, target: Target) -> None:
        """Set the opcode and the target; `Graph.find_nodes` follows."""
        is_known = self.graph._table.drop(self)
        NamedNode._call(self, op, target)
        if is_known:
            self.graph._table.add(self)

    def _rename(self, candidate: str) -> None:
        """Take the name that is closest to `candidate`."""
        if candidate != self._name:
            self.name = self.graph._graph_namespace.create_name(candidate)

    # -- arguments ---------------------------------------------------------

    @property
    def args(self) -> tuple[Argument, ...]:
        """The positional arguments; assign a new tuple to change them.

        Assigning also updates the `users` of the old and the new inputs.  It
        raises what the constructor raises, and then changes nothing.

        torch.fx: node.py, Node.args
        """
        return self._args

    @args.setter
    def args(self, args: tuple[Argument, ...]) -> None:
        self._update_args_kwargs(args, self._kwargs)

    @property
    def kwargs(self) -> dict[str, Argument]:
        """The keyword arguments; assign a new dict to change them.

        Assigning also updates the `users` of the old and the new inputs.  It
        raises what the constructor raises, and then changes nothing.

        torch.fx: node.py, Node.kwargs
        """
        return self._kwargs

    @kwargs.setter
    def kwargs(self, kwargs: dict[str, Argument]) -> None:
        self._update_args_kwargs(self._args, kwargs)

    @property
    def _input_nodes(self) -> dict[Node, None]:
        """The nodes among the arguments, as keys, by first occurrence."""
        return dict.fromkeys(self._inputs)

    @property
    def all_input_nodes(self) -> list[Node]:
        """The nodes among args, then kwargs, each once: a new list.

        torch.fx: node.py, Node.all_input_nodes
        """
        return list(self._inputs)

    def input_at(self, index: int) -> Node:
        """The positional argument at `index`, which must be a Node.

        `node.args[index]` can be anything, so a type checker asks for a test.
        This method is that test.

        Raises:
            IndexError: there are not so many arguments.
            TypeError: the argument there is a constant or a container.
        """
        arg = self._args[index]
        if isinstance(arg, Node):
            return arg
        raise errors.not_an_input(arg, index, self)

    def _update_args_kwargs(
        self, args: tuple[Argument, ...], kwargs: Mapping[str, Argument]
    ) -> None:
        """Replace all arguments, and the edges that follow from them.

        Everything is checked before the first edge changes.
        """
        frozen, named, inputs = self._freeze(args, kwargs)
        if self._erased and inputs:
            raise errors.is_erased(self)
        self._connect(frozen, named, tuple(inputs))

    def _connect(
        self,
        args: tuple[Argument, ...],
        kwargs: immutable_dict[str, Argument],
        inputs: tuple[Node, ...],
    ) -> None:
        """Set the arguments; the old inputs lose this user, the new gain it.

        Args:
            args: positional arguments, immutable.
            kwargs: keyword arguments, immutable.
            inputs: the nodes in both, each once, by first occurrence.

        Raises:
            RuntimeError: an input is erased or of another graph.  Then
                neither this node nor any input has changed.
        """
        raise NotImplementedError("stage 02: Node._connect")

    def _freeze(
        self, args: tuple[Argument, ...], kwargs: Mapping[str, Argument]
    ) -> tuple[
        tuple[Argument, ...], immutable_dict[str, Argument], dict[Node, None]
    ]:
        """Immutable copies of the arguments, and the nodes inside.

        Returns:
            args and kwargs with each list and dict in them immutable and each
            set copied, and the nodes in both, each once, by first occurrence.

        Raises:
            AssertionError: args are not a tuple or list, or kwargs not a dict.
            TypeError: a set holds a node; an argument is a Proxy.
            ValueError: a keyword is not an identifier.
        """
        raise NotImplementedError("stage 02: Node._freeze")

    def _check_containers(self, args: object, kwargs: object) -> None:
        """Raise unless args are a tuple or list, and kwargs a dict."""
        if not isinstance(args, (tuple, list)) or not isinstance(kwargs, dict):
            raise errors.wrong_containers(args, kwargs, self)

    def _check_node(self, node: object) -> None:
        """Raise unless `node` is a node that this one's graph has."""
        if not isinstance(node, Node):
            raise errors.not_a_node(node, self)
        if node.graph is not self.graph or node._erased:
            raise errors.not_in_graph(node, self)

    def _check_keywords(self, kwargs: Mapping[str, Argument]) -> None:
        """Raise if a keyword is not one that a call can have."""
        for key in kwargs:
            if not is_parameter_name(key):
                raise errors.illegal_keyword(key, self)

    def _drop_inputs(self) -> None:
        """Replace each argument node by None: this node is in no graph."""
        for node in self._inputs:
            node.users.pop(self, None)
        self._args = map_arg(self._args, lambda _: None)
        self._kwargs = map_arg(self._kwargs, lambda _: None)
        self._inputs = ()

    def update_arg(self, idx: int, arg: Argument) -> None:
        """Make `arg` the positional argument at `idx`.

        Raises:
            IndexError: there are not so many arguments.

        torch.fx: node.py, Node.update_arg
        """
        args = list(self._args)
        args[idx] = arg
        self.args = tuple(args)

    def insert_arg(self, idx: int, arg: Argument) -> None:
        """Put `arg` in front of the positional argument at `idx`.

        Raises:
            AssertionError: `idx` is not between 0 and len(args).

        torch.fx: node.py, Node.insert_arg
        """
        if not 0 <= idx <= len(self._args):
            raise AssertionError(
                "insert_args index must be between 0 and len(self.args), "
                f"got {idx}; Node {self} has {len(self._args)} arguments"
            )
        self.args = (*self._args[:idx], arg, *self._args[idx:])

    def update_kwarg(self, key: str, arg: Argument) -> None:
        """Make `arg` the keyword argument `key`, a new one or not.

        torch.fx: node.py, Node.update_kwarg
        """
        self.kwargs = {**self._kwargs, key: arg}

    # -- uses --------------------------------------------------------------

    def replace_all_uses_with(
        self,
        replace_with: Node,
        delete_user_cb: Callable[[Node], bool] | None = None,
        *,
        propagate_meta: bool = False,
    ) -> list[Node]:
        """Make every user of this node take `replace_with` as its input.

        Afterwards this node usually has no users left and can be erased.  To
        insert a node after this one, the new node must keep its input: pass
        `delete_user_cb=lambda user: user is not new`.

        Args:
            replace_with: a node of the same graph.
            delete_user_cb: called with each user in turn, once those before
                it have been changed; users for which it returns False keep
                this node as their input.
            propagate_meta: also copy this node's `meta` to `replace_with`,
                whose own `meta` must be empty.

        Returns:
            The users that were changed.

        Raises:
            AssertionError: `propagate_meta`, and `replace_with` has meta; the
                message lists the keys.
            RuntimeError: `replace_with` is erased or of another graph.

        Cost: O(size of the users' arguments).

        torch.fx: node.py, Node.replace_all_uses_with
        """
        raise NotImplementedError("stage 02: Node.replace_all_uses_with")

    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """Replace `old_input` by `new_input` in this node's arguments.

        Other users of `old_input` keep it.

        Raises:
            RuntimeError: `new_input` is erased or of another graph.

        torch.fx: node.py, Node.replace_input_with
        """
        self._check_node(new_input)
        for hook in [*getattr(self.graph.owning_module, "_replace_hooks", ())]:
            hook(old=old_input, new=new_input._name, user=self)

        def swap(node: Node) -> Node:
            return new_input if node is old_input else node

        args = map_arg(self._args, swap)
        kwargs = self._kwargs and map_arg(self._kwargs, swap)
        inputs = dict.fromkeys(map(swap, self._inputs))
        self._connect(args, kwargs, tuple(inputs))

    # -- what passes ask ---------------------------------------------------

    @property
    def stack_trace(self) -> str | None:
        """Where in the user's code the node was recorded, innermost frame last.

        None unless the tracer has `record_stack_traces` set, or a pass sets it.

        torch.fx: node.py, Node.stack_trace
        """
        trace: str | None = self.meta.get("stack_trace")
        return trace

    @stack_trace.setter
    def stack_trace(self, trace: str | None) -> None:
        self.meta["stack_trace"] = trace

    def is_impure(self, impure_random: bool = True) -> bool:
        """Whether removing the node changes what the program does.

        True for placeholders and the output, and for each node that
        `effects.classify` says is impure.

        Args:
            impure_random: count drawing random numbers as an effect.

        torch.fx: node.py, Node.is_impure
        """
        return self.graph._is_impure(self, impure_random)

    def normalized_arguments(
        self,
        root: nn.Module,
        arg_types: tuple[AnyValue, ...] | None = None,
        kwarg_types: dict[str, AnyValue] | None = None,
        normalize_to_only_use_kwargs: bool = False,
    ) -> ArgsKwargsPair | None:
        """None; `import fx` puts that of fx.operator_schemas here."""

    # -- text and copies ---------------------------------------------------

    def __repr__(self) -> str:
        """The name, or what `_repr_fn` makes of the node."""
        return self._repr_fn(self) if self._repr_fn else self._name

    @staticmethod
    def _pretty_print_target(target: object) -> str:
        """A target as the printed graph shows it."""
        return pretty_target(target)

    def format_node(
        self,
        placeholder_names: list[str] | None = None,
        maybe_return_typename: list[str] | None = None,
        *,
        include_tensor_metadata: bool = False,
    ) -> str | None:
        """The node's line in the printed graph.

        Args:
            placeholder_names: if it is not empty, a placeholder appends its
                parameter to it, and the result is None.
            maybe_return_typename: an output with a type sets the first item
                to the return annotation.
            include_tensor_metadata: show dtype, shape, stride and device
                where meta knows the value.

        torch.fx: node.py, Node.format_node
        """
        annotation = "" if self.type is None else _type_repr(self.type)
        if self.op == "placeholder" and placeholder_names:
            suffix = annotation and f": {annotation}"
            placeholder_names.append(f"{self.target}{suffix}")
            return None
        if self.op == "output" and maybe_return_typename and annotation:
            maybe_return_typename[0] = f" -> {annotation}"
        if self.op == "output":
            return f"return {self._args[0] if self._args else None}"
        kind = f"{annotation} " if annotation else ""
        if include_tensor_metadata and self.op.startswith("call_"):
            kind = tensor_text(self.meta) or kind
        head = f"%{self._name} : {kind}[num_users={len(self.users)}]"
        target = f"[target={pretty_target(self.target)}]"
        end = arguments_text(self.op, self._args, self._kwargs)
        return f"{head} = {self.op}{target}{end}"

    def __deepcopy__(self, memo: dict[int, AnyValue]) -> Node:
        """The counterpart of this node in a deep copy of its graph."""
        graph = copy.deepcopy(self.graph, memo)
        if id(self) not in memo:
            what = self._name, self.op, self.target, self.type
            memo[id(self)] = Node._erased_from(graph, *what)
        return cast(Node, memo[id(self)])

    @classmethod
    def _erased_from(
        cls, graph: Graph, name: str, op: Opcode, target: Target, kind: AnyValue
    ) -> Node:
        """A node that says it was erased from `graph`."""
        node = cls(graph, name, op, target, (), {}, kind)
        node._erased = True
        return node
