"""Stage 06, interpreter: run a graph node by node, and rewrite it that way.

Generated code runs a graph as fast as Python can.  An `Interpreter` runs the
same graph one node at a time, through methods that a subclass can override: to
look at each value, or to do something else for some operations.  If the values
are proxies, running the graph records another one: that is a `Transformer`.

    run                    for each node in order:
      run_node               fetch the values of its arguments, and
        placeholder            call the method named like its opcode
        get_attr
        call_function
        call_method
        call_module
        output
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import cached_property
from operator import attrgetter
from typing import ClassVar

from torch import nn

from . import traceback as fx_traceback
from .graph import Graph
from .graph_module import GraphModule
from .linked_list.opcodes import Opcode, Target
from .node import Node, map_arg
from .proxy import Proxy
from .tracing.tracer import Tracer
from .use_def.dotted_path import MISSING, walk
from .use_def.errors import refuse_torchs
from .use_def.lint import last_users
from .use_def.values import LEAVES, AnyValue, Args, Argument, Kwargs

__all__ = ["Interpreter", "Transformer"]


class Interpreter:
    """Runs the graph of a module node by node.

        class Swap(Interpreter):
            def call_function(self, target, args, kwargs):
                if target is torch.sigmoid:
                    target = torch.neg
                return super().call_function(target, args, kwargs)

        Swap(gm).run(x)

    Attributes:
        module: where get_attr and call_module targets are looked up.
        graph: the graph that is run, as it is at that moment.
        env: node -> value, for the values that are still needed; not to be
            set to another dict while a run goes on.
        submodules: dotted path -> module.

    torch.fx: interpreter.py, Interpreter
    """

    def __init__(
        self,
        module: nn.Module,
        garbage_collect_values: bool = True,
        graph: Graph | None = None,
    ) -> None:
        """Make an interpreter.

        Args:
            module: a GraphModule, or any module if `graph` is given.
            garbage_collect_values: drop each value after its last use; False
                keeps all of them in `env`.
            graph: the graph to run; by default the module's own.

        Raises:
            TypeError: the graph is one of torch.fx.
            AttributeError: there is none.

        torch.fx: interpreter.py, Interpreter.__init__
        """
        refuse_torchs(graph)
        self.module: nn.Module = module
        self.submodules: dict[str, nn.Module] = dict(module.named_modules())
        self.graph: Graph = _graph_of(module) if graph is None else graph
        self.env: dict[Node, AnyValue] = {}
        self.name = "Interpreter"
        self.garbage_collect_values = garbage_collect_values
        self.extra_traceback = True
        self.args_iter: Iterator[AnyValue] = iter(())
        self._keywords: dict[str, AnyValue] = {}

    @cached_property
    def user_to_last_uses(self) -> dict[Node, list[Node]]:
        """For each node, the values that it is the last to use.

        A node that is not the last user of any value has no entry.  It is
        made when it is first asked for, and describes the graph of then;
        `run` does not read it.

        Cost: O(nodes + uses), once.

        torch.fx: interpreter.py, Interpreter.__init__
        """
        last = last_users(self.graph.nodes)
        frees = {
            user: [node for node in user._inputs if last[node] is user]
            for user in self.graph.nodes
        }
        return {user: nodes for user, nodes in frees.items() if nodes}

    # -- running -----------------------------------------------------------

    def run(
        self,
        *args: AnyValue,
        initial_env: dict[Node, AnyValue] | None = None,
        enable_io_processing: bool = True,
        **kwargs: AnyValue,
    ) -> AnyValue:
        """Run the graph and return the value of its output.

        Args:
            *args: the inputs, in the order of the placeholders.
            initial_env: values of nodes that then need not run; it is used as
                `env`.
            enable_io_processing: pass inputs and outputs through the graph's
                code generator, which may nest and flatten them.
            **kwargs: inputs by the names of their placeholders.

        Raises:
            RuntimeError: an input is missing, or no placeholder takes it.
            What a node raises, with the node and the user's line added; for
            a KeyError, a RuntimeError that says it.

        Cost: O(nodes), besides the operations; not recursive.

        torch.fx: interpreter.py, Interpreter.run
        """
        self.env = {} if initial_env is None else initial_env
        if enable_io_processing:
            args = self.graph.process_inputs(*args)
        self._bind(args, kwargs)
        result = self._run_nodes()
        if enable_io_processing:
            return self.graph.process_outputs(result)
        return result

    def boxed_run(self, args_list: list[AnyValue]) -> AnyValue:
        """Run with inputs from a list, which is emptied.

        Afterwards only the interpreter holds the inputs, so that each can be
        freed after its last use.

        Raises:
            RuntimeError: too many inputs, or too few.

        torch.fx: interpreter.py, Interpreter.boxed_run
        """
        places = [n for n in self.graph.nodes if n.op == "placeholder"]
        if len(args_list) != len(places):
            more = len(args_list) > len(places)
            raise RuntimeError(
                f"Interpreter.boxed_run expected {len(places)} arguments for "
                f"placeholders but received {len(args_list)} "
                f"({'extra' if more else 'missing'} arguments); the "
                f"placeholders are {', '.join(map(str, places))}"
            )
        env = dict(zip(places, args_list, strict=True))
        args_list.clear()
        return self.run(initial_env=env)

    def _bind(self, args: Args, kwargs: Kwargs) -> None:
        """Keep the inputs for `placeholder`; raise if one has no place."""
        self.args_iter, self._keywords = iter(args), dict(kwargs)
        if self._overrides("placeholder"):
            return
        places = [node for node in self.graph.nodes if node.op == "placeholder"]
        names = [str(node.target) for node in places if node not in self.env]
        known = ", ".join(names) or "none"
        plain = [name for name in names if not name.startswith("*")]
        stars = [name.count("*") for name in names]
        if len(args) > len(plain) and 1 not in stars:
            raise RuntimeError(
                f"Interpreter.run expected at most {len(plain)} positional "
                f"arguments but received {len(args)} (extra arguments); the "
                f"placeholders are {known}"
            )
        for name in kwargs:
            if name in plain[: len(args)]:
                raise RuntimeError(
                    f"Interpreter.run got the input {name!r} by position, too"
                )
            if name not in plain and 2 not in stars:
                raise RuntimeError(
                    f"Interpreter.run got the input {name!r}, which no "
                    f"placeholder takes; they are {known}"
                )

    def _run_nodes(self) -> AnyValue:
        """Run the nodes in order, and return the value of the output."""
        raise NotImplementedError("stage 06: Interpreter._run_nodes")

    def _step(self) -> Callable[[Node], AnyValue]:
        """What the run calls for each node: `run_node`, or what does the same.

        If `run_node` and `_set_current_node` are not overridden and no notes
        are inherited, it does what `_call` does, and the run can go without
        the calls in between.
        """
        overrides = any(map(self._overrides, ("run_node", "_set_current_node")))
        if overrides or fx_traceback.has_preserved_node_meta():
            return self.run_node
        return self._call

    def _overrides(self, name: str) -> bool:
        """Whether the class or the instance has a method of its own."""
        method = getattr(self, name)
        return getattr(method, "__func__", None) is not vars(Interpreter)[name]

    def run_node(self, n: Node) -> AnyValue:
        """Run one node and return its value.

        Nodes that are recorded meanwhile inherit the meta of this one, and
        note the name of the pass: `Interpreter_` and the name of the class.

        Args:
            n: the node; the values of its inputs are in `env`.

        torch.fx: interpreter.py, Interpreter.run_node
        """
        with self._set_current_node(n):
            return self._call(n)

    def _set_current_node(self, node: Node) -> AbstractContextManager[None]:
        """A block in which nodes that are recorded inherit a node's meta.

        Subclasses with a `run_node` of their own enter it there.

        torch.fx: interpreter.py, Interpreter._set_current_node
        """
        pass_name = f"Interpreter_{type(self).__name__}"
        return fx_traceback.set_current_meta(node, pass_name)

    def _call(self, n: Node) -> AnyValue:
        """Call the method of a node's opcode with the values of its arguments.

        Args:
            n: the node; the values of its inputs are in `env`.
        """
        raise NotImplementedError("stage 06: Interpreter._call")

    def _explain(self, raised: Exception, node: Node) -> None:
        """Add to an error which node raised it, and the user's line."""
        if not self.extra_traceback:
            return
        first = f"{raised.args[0]}\n\n" if raised.args else ""
        message = (
            f"{first}While executing {node.format_node()}\n"
            f"Original traceback:\n{node.stack_trace}"
        )
        raised.args = (message, *raised.args[1:])
        if isinstance(raised, KeyError):  # which prints its argument quoted
            raise RuntimeError(message) from raised

    # -- one method for each opcode ----------------------------------------

    def placeholder(
        self, target: Target, args: Args, kwargs: Kwargs
    ) -> AnyValue:
        """The next input; `*rest` takes all remaining ones, as a list.

        `**options` takes the keywords that are left, as a dict.

        Args:
            target: the parameter's name.
            args: empty, or the parameter's default.
            kwargs: empty.

        Raises:
            RuntimeError: no input is left, and there is no default.

        torch.fx: interpreter.py, Interpreter.placeholder
        """
        name = str(target)
        if name.startswith("**"):
            return dict(self._keywords)
        if name.startswith("*"):
            return list(self.args_iter)
        if name in self._keywords:
            return self._keywords.pop(name)
        for value in self.args_iter:
            return value
        if args:
            return args[0]
        raise RuntimeError(
            f"Expected positional argument for parameter {name}, but one was "
            "not passed in!"
        )

    def get_attr(self, target: Target, args: Args, kwargs: Kwargs) -> AnyValue:
        """The value of the module's attribute at a dotted path.

        torch.fx: interpreter.py, Interpreter.get_attr
        """
        return self.fetch_attr(str(target))

    def call_function(
        self, target: Target, args: Args, kwargs: Kwargs
    ) -> AnyValue:
        """The result of calling a function.

        torch.fx: interpreter.py, Interpreter.call_function
        """
        if isinstance(target, str):
            raise AssertionError("target should not be a string")
        return target(*args, **kwargs)

    def call_method(
        self, target: Target, args: Args, kwargs: Kwargs
    ) -> AnyValue:
        """The result of calling a method of `args[0]`.

        torch.fx: interpreter.py, Interpreter.call_method
        """
        return getattr(args[0], str(target))(*args[1:], **kwargs)

    def call_module(
        self, target: Target, args: Args, kwargs: Kwargs
    ) -> AnyValue:
        """The result of calling the submodule at a dotted path.

        torch.fx: interpreter.py, Interpreter.call_module
        """
        return self.fetch_attr(str(target))(*args, **kwargs)

    def output(self, target: Target, args: Args, kwargs: Kwargs) -> AnyValue:
        """What the graph returns: `args[0]`.

        torch.fx: interpreter.py, Interpreter.output
        """
        return args[0]

    # -- fetching ----------------------------------------------------------

    def fetch_attr(self, target: str) -> AnyValue:
        """The attribute at a dotted path of the module.

        Raises:
            RuntimeError: it does not exist; the message has the path up to
                the first attribute that is missing.

        torch.fx: interpreter.py, Interpreter.fetch_attr
        """
        raise NotImplementedError("stage 06: Interpreter.fetch_attr")

    def fetch_args_kwargs_from_env(self, n: Node) -> tuple[Args, Kwargs]:
        """The arguments of `n`, each node replaced by its value.

        torch.fx: interpreter.py, Interpreter.fetch_args_kwargs_from_env
        """
        if self._overrides("map_nodes_to_values"):
            mapped: AnyValue = self.map_nodes_to_values(n.args, n)
            named: AnyValue = self.map_nodes_to_values(n.kwargs, n)
            return mapped, named
        env = self.env
        args = []
        for arg in n._args:
            if type(arg) is Node and arg in env:
                args.append(env[arg])
            elif type(arg) in LEAVES:
                args.append(arg)
            else:
                args.append(self.map_nodes_to_values(arg, n))
        kwargs: Kwargs = {}
        if n._kwargs:
            for key, arg in n._kwargs.items():
                leaf = type(arg) in LEAVES
                kwargs[key] = arg if leaf else self.map_nodes_to_values(arg, n)
        return tuple(args), kwargs

    def map_nodes_to_values(self, args: Argument, n: Node) -> Argument:
        """`args` with each node, at any depth, replaced by its value.

        Args:
            args: what to look through.
            n: the node it belongs to, for the error.

        Raises:
            RuntimeError: a node has no value.

        torch.fx: interpreter.py, Interpreter.map_nodes_to_values
        """
        raise NotImplementedError("stage 06: Interpreter.map_nodes_to_values")

    def _refuse_missing(self, n: Node, arg: Node) -> None:
        """Raise for an argument that has no value."""
        raise RuntimeError(
            f"Node {n} referenced nonexistent value {arg}! Run Graph.lint() "
            "to diagnose such issues"
        )


def _graph_of(module: nn.Module) -> Graph:
    """The graph of a module."""
    graph = getattr(module, "graph", None)
    refuse_torchs(graph)
    if isinstance(graph, Graph):
        return graph
    if graph is not None:
        raise TypeError(
            f"the graph of {type(module).__name__} is not an fx.Graph but a "
            f"{type(graph)}: give the graph to run"
        )
    raise AttributeError(
        f"{type(module).__name__!r} object has no attribute 'graph': give the "
        "graph to run, Interpreter(module, graph=graph)"
    )


class _Recorder(Tracer):
    """Records a Transformer's new graph, and knows which node is being run.

    The first node that is recorded meanwhile with the same opcode and target
    stands for the node being run, and takes over its name, type and meta.
    """

    _held: tuple[type, ...] = (object,)  # any constant, as in the old graph

    def __init__(self, graph: Graph, root: nn.Module) -> None:
        """Record into `graph`; constants are stored on `root`."""
        super().__init__()
        self.graph = graph
        self.root = root
        self.running: Node | None = None
        self.repeated: dict[Node, Node] = {}

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        """Every module: the graph's call_module nodes stay what they are."""
        return True

    def _state_node(self, a: AnyValue) -> Node | None:
        """A get_attr node for what the module has; a constant else."""
        unknown = isinstance(a, nn.Parameter) and self._tensor_path(a) is None
        return None if unknown else super()._state_node(a)

    def create_node(
        self,
        kind: Opcode,
        target: Target,
        args: Args,
        kwargs: Kwargs,
        name: str | None = None,
        type_expr: AnyValue = None,
    ) -> Node:
        """Add a node, with name, type and meta of the node that it repeats."""
        old = self.running
        if old is None or old._op != kind or old._target != target:
            return super().create_node(
                kind, target, args, kwargs, name, type_expr
            )
        self.running = None
        new = super().create_node(
            kind, target, args, kwargs, old.name, type_expr or old.type
        )
        new.meta.update(old.meta)
        self.repeated[new] = old
        return new


class Transformer(Interpreter):
    """Makes a new GraphModule by running a graph with proxies.

        class Swap(Transformer):
            def call_function(self, target, args, kwargs):
                if target is torch.sigmoid:
                    return torch.neg(*args, **kwargs)
                return super().call_function(target, args, kwargs)

        new = Swap(gm).transform()

    Its methods get proxies as values, and what they do with them is recorded.
    A node that is recorded again as it was keeps its name, type and meta.  If
    its arguments are others, or were computed in another way, it loses the
    notes on its value, such as "tensor_meta".

    Attributes:
        new_graph: the graph that is recorded.
        tracer: records it.

    torch.fx: interpreter.py, Transformer
    """

    _keeps_values: ClassVar[bool] = False
    """Whether each node has its old value, whatever its arguments are."""

    def __init_subclass__(cls) -> None:
        """Let no class inherit what it may not keep."""
        cls._keeps_values = vars(cls).get("_keeps_values", False)

    def __init__(self, module: GraphModule) -> None:
        """Make a transformer of a GraphModule, whose graph stays as it is."""
        super().__init__(module)
        self.new_graph: Graph = Graph()
        self.new_graph._pytree_info = self.graph._pytree_info
        self.new_graph.set_codegen(self.graph._codegen)
        self._recorder = _Recorder(self.new_graph, module)
        self.tracer: Tracer = self._recorder

    def transform(self) -> GraphModule:
        """Run the graph symbolically and return it as a new module.

        Cost: O(nodes); not recursive.

        torch.fx: interpreter.py, Transformer.transform
        """
        raise NotImplementedError("stage 06: Transformer.transform")

    def run_node(self, n: Node) -> AnyValue:
        """Run one node, and tell the recorder which."""
        self._recorder.running = n
        return super().run_node(n)

    def placeholder(self, target: Target, args: Args, kwargs: Kwargs) -> Proxy:
        """A proxy of a new placeholder with the same default.

        torch.fx: interpreter.py, Transformer.placeholder
        """
        node = self.tracer.create_node("placeholder", target, args, {})
        return self.tracer.proxy(node)

    def get_attr(self, target: Target, args: Args, kwargs: Kwargs) -> Proxy:
        """A proxy of a new get_attr node.

        torch.fx: interpreter.py, Transformer.get_attr
        """
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_module(
        self, target: Target, args: Args, kwargs: Kwargs
    ) -> AnyValue:
        """A proxy of a new call of the same submodule.

        torch.fx: interpreter.py, Transformer.call_module
        """
        self.fetch_attr(str(target))
        return self.tracer.create_proxy("call_module", target, args, kwargs)

    def call_function(
        self, target: Target, args: Args, kwargs: Kwargs
    ) -> AnyValue:
        """A proxy of a new call of the same function.

        torch.fx: interpreter.py, Transformer.call_function
        """
        return self.tracer.create_proxy("call_function", target, args, kwargs)
