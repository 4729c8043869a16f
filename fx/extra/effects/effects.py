"""Extra: what a node does besides computing its value.

A node whose value no other node uses can be removed, unless something else
would be lost with it.  `classify` says whether it would, in one of three words
and with the reason:

    pure      the value is all there is
    impure    an argument or some state is changed, or must be assumed to be
    unknown   the code that runs is a user's, or cannot be read

What a function or a method does is worked out in `function_effects`, and what
a module of torch.nn does in `modules`; here is what follows for nodes.  A graph
says which method is called, but not on what: `x.add(1)` may be a method of a
tensor or of a set.  So a value counts as a tensor only if something proves
it, for instance that an operator returned it.

A call with an effect must stay, with one exception: a write into memory that
nobody looks at afterwards.

    a = conv(x)     new memory
    b = relu_(a)    writes into it, and nobody uses a or b

Both can go, and have to: networks are full of activations in place, and each
would keep everything before it, behind the last feature that was asked for.  To
see that, values are traced to the calls that made their memory.  Nothing may be
overlooked here, so memory is given up wherever it may flow to something that is
not traced: an input, a container, a user's function.
"""

from __future__ import annotations

import logging
import operator
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from typing import Final, TypeAlias

import torch
import torch.fx
from torch import nn

from ...node import Node
from ...schemas.facts import OperatorInfo, facts_of_overloads
from ...torch_private.modules import INFERENCE_MODE
from ...torch_private.pytree import pytree
from ...use_def.dead_code import (
    RULE,
    Rule,
    TorchsRule,
    Unknown,
    has_side_effect,
    is_in,
    side_effect_registry,
)
from ...use_def.dotted_path import PathError, find, look_up
from ...use_def.errors import refuse_torchs
from ...use_def.protocols import CodeGenerator
from ...use_def.text import _get_qualified_name, resolves_to
from ...use_def.values import AnyValue, Argument
from ..example_trace.guards import Guards
from . import effect_tables as tables
from .function_effects import (
    Effect,
    effect_of_function,
    effect_of_method,
    overloads_on_tensors,
)
from .modules import (
    effects_of_module,
    foreign_code,
    hooks_of,
    is_torchs,
    overwritten,
    returns_new_tensor,
)

__all__ = [
    "RULE",
    "Effect",
    "Rule",
    "Unknown",
    "by_rule",
    "classify",
    "has_side_effect",
    "is_impure",
    "must_keep",
]


def classify(node: Node, tensors: dict[Node, bool] | None = None) -> Effect:
    """Say what a node does besides computing its value, and how we know.

    "Pure" is only said when it is known, since what is pure may be removed, and
    a program that lacks a call computes other numbers; one call too many costs
    a little time.  One thing is assumed: operators of Python and `getattr` do
    what they do to tensors and numbers, though a user's `__lshift__` or
    property might print.

    A method is known only if its object is known to be a tensor, because a
    queue has a `put` too, and a set an `add`: see `is_tensor`.

    Args:
        node: of any opcode.  A call_module node is read through the module
            that owns its graph, as that is now: in training or not.
        tensors: what is known already about the nodes of the graph; more is
            noted here.  Give the same dict again to ask about many nodes.

    Cost: O(1) once a function has been seen; for a method, O(length of the
    chain of calls that it ends) if `tensors` is empty; for a module,
    O(submodules), or O(nodes) if it has a graph.
    """
    refuse_torchs(node)
    effect = effect_by_name(node)
    if node.op != "call_method" or effect.kind != "pure":
        return effect
    if is_tensor(first_of(node), {} if tensors is None else tensors):
        return effect
    return Effect("unknown", f"`.{node.target}()` of what may be no tensor")


def effect_by_name(node: Node) -> Effect:
    """What a node does if the object of its method, if any, is a tensor."""
    op, target = node._op, node._target
    if op == "call_function":
        return effect_of_function(target, node._args, node._kwargs)
    if op == "call_method":
        return effect_of_method(str(target), node._args, node._kwargs)
    if op == "call_module":
        return _effect_of_call_module(node)
    return _OF_OPCODE[op]


_OF_OPCODE: Final = {
    "placeholder": Effect("impure", "a parameter is part of the signature"),
    "output": Effect("impure", "the output is what the function returns"),
    "get_attr": Effect("pure", "reads an attribute"),
}


def is_impure(node: Node, impure_random: bool = True) -> bool:
    """Whether removing the node is known to change what the program does.

    Args:
        node: of any opcode; placeholders and the output are never removable.
        impure_random: count it as an effect that an operator of torch.ops
            draws random numbers.  Other functions, methods and modules that
            draw are impure either way.

    torch.fx: node.py, Node.is_impure; there no call of a method is impure, a
    module is if it carries `_is_impure`, and an operator of `torch.ops` if its
    schema writes, its tag says that it draws, or an effect is registered. Of
    all other functions it knows two sets: asserts, modes, profiler calls and
    `operator.setitem`; and some random functions.
    """
    effect = effect_by_name(node)
    return effect.kind == "impure" and (impure_random or not effect.only_draws)


# -- modules -----------------------------------------------------------------


def _effect_of_call_module(node: Node) -> Effect:
    """The effect of a call_module node."""
    if node.graph.owning_module is None:
        return Effect("unknown", "the graph has no module to look into")
    try:
        module = find(node.graph.owning_module, str(node.target))
    except PathError as error:
        return Effect("unknown", str(error))
    return effect_of_module(module)


def effect_of_module(module: AnyValue) -> Effect:
    """The effect of calling a module: the worst of all its parts.

    It is known of a module that says so itself, of a GraphModule, node by node,
    and of one of torch.nn; not of a user's subclass of `Linear`, whose
    `forward` is the user's.
    """
    name = type(module).__name__
    if getattr(module, "_is_impure", False):
        return Effect("impure", f"{name} says so: _is_impure is set")
    if not isinstance(module, nn.Module):
        return Effect("unknown", f"{name} is not of torch.nn")
    nodes = _nodes_run_by(module)
    if nodes is not None:
        nothing = f"nothing in the graph of {name} has an effect"
        tensors: dict[Node, bool] = {}
        inside = (
            (node.name, classify(node, tensors))
            for node in nodes
            if node.op not in ("placeholder", "output")
        )
        return _worst(nothing, chain(inside, hooks_of(module)))
    parts = chain(
        effects_of_module(module),
        _effects_of_graphs_in(module),
        foreign_code(module),
    )
    effect = _worst(f"{name} changes nothing", parts)
    return effect._replace(target=overwritten(module, effect))


def _effects_of_graphs_in(
    module: nn.Module, path: str = ""
) -> Iterator[tuple[str, Effect]]:
    """What the outermost GraphModules inside a module do, path by path."""
    for name, child in module.named_children():
        if _nodes_run_by(child) is None:
            yield from _effects_of_graphs_in(child, f"{path}{name}.")
        else:
            yield f"{path}{name}", effect_of_module(child)


def _nodes_run_by(module: AnyValue) -> Sequence[Node] | None:
    """The nodes from which a module's forward was written, if it was.

    An attribute `graph` does not prove it.  These are the nodes of the last
    `recompile`, which runs until the next one, if a caller reaches what that
    made: the instance has no `forward` and a subclass no `__call__`, and the
    generated text was not edited.
    """
    own = vars(type(module))
    compiled = getattr(own.get("_wrapped_call"), "compiled", None)
    if compiled is None or own.get("forward") is not compiled.forward:
        return None
    nodes: Sequence[Node] = compiled.nodes
    bases = type(module).__mro__[1:]
    call = next(cls for cls in bases if "__call__" in vars(cls))
    codegen: CodeGenerator[Node] = module.graph._codegen
    is_edited = codegen._body_transformer is not None
    plain = call is nn.Module and "forward" not in vars(module)
    return nodes if plain and not is_edited else None


def _worst(pure: str, parts: Iterable[tuple[str, Effect]]) -> Effect:
    """The first impure effect, else the first unknown one, else pure."""
    worst = Effect("pure", pure)
    for path, effect in parts:
        if effect.kind == "pure" or effect.kind == worst.kind:
            continue
        reason = f"{path}: {effect.reason}" if path else effect.reason
        worst = Effect(effect.kind, reason)
        if effect.kind == "impure":
            break
    return worst


# -- which values are tensors, and which are new memory ----------------------

_ARITHMETIC: Final = frozenset(
    id(getattr(operator, name)) for name in tables.FRESH_OPERATORS
)
"""Functions of `operator` that give a new tensor for a tensor.

`+` of two lists gives a list that holds what both held.
"""

_LIKE_FIRST: Final = _ARITHMETIC | {
    id(getattr(operator, name))
    for name in ("getitem", "pos", *tables.IN_PLACE_OPERATORS)
}
"""Functions of `operator` that give a tensor for a tensor, by id: a user's
callable may define `==`, or have no hash."""


def is_tensor(value: Argument, tensors: dict[Node, bool]) -> bool:
    """Whether a value is known to be a tensor.

    An input is one if its annotation or its `meta["val"]` says so.  What a
    method or an operator of Python returns is one if its object is one, so a
    chain of calls is followed to its beginning.

    Args:
        value: an argument of a node.
        tensors: the answers so far; those that are found on the way are
            added.

    Cost: O(length of the chain) the first time, then O(1).
    """
    asked: list[Node] = []
    answer = None
    while answer is None and isinstance(value, Node):
        answer = tensors.get(value)
        if answer is None:
            tensors[value] = False  # ends the walk if the graph is a circle
            asked.append(value)
            answer = by_itself(value)
            value = first_of(value)
    for node in asked:
        tensors[node] = bool(answer)
    return bool(answer)


def first_of(node: Node) -> Argument:
    """The argument that decides whether the value of a call is a tensor.

    Of a method it is the object, of a function the first node among its
    arguments: `2 * x` is a tensor if `x` is one.
    """
    if node.op == "call_method":
        return node.args[0] if node.args else None
    return next((arg for arg in node.args if isinstance(arg, Node)), None)


def by_itself(node: Node) -> bool | None:
    """Whether a node's value is a tensor; None if `first_of` decides."""
    is_annotated = node.type is torch.Tensor or node.type is torch.nn.Parameter
    if is_annotated or isinstance(node.meta.get("val"), torch.Tensor):
        return True
    if node.op == "call_function":
        return _function_returns_tensor(node)
    if node.op == "call_method":
        return None if _schemas_return_tensor(node) else False
    value = owned(node)
    return isinstance(value, torch.Tensor) or returns_new_tensor(value)


def _function_returns_tensor(node: Node) -> bool | None:
    """Whether a function is known to return one tensor."""
    target, first = node.target, first_of(node)
    if target is operator.getitem and isinstance(first, Node):
        overloads = overloads_of(first) if first.op == "call_function" else []
        if overloads and not overloads[0].returns_one_tensor:
            # One of several results, as of `torch.chunk`.
            is_one = isinstance(node.args[-1], int)
            return is_one and all(facts.returns_tensors for facts in overloads)
    if id(target) in _LIKE_FIRST:
        return None
    has_schema = facts_of_overloads(target) is not None
    few = has_schema or len(node.args) <= _OF_POOL
    return few and _schemas_return_tensor(node)


def _schemas_return_tensor(node: Node) -> bool:
    """Whether all schemas of a call have one tensor as their result.

    A keyword that is in none of them, such as `as_tuple=`, is one of Python's,
    and may change what is returned.
    """
    overloads = overloads_of(node)
    known = {name for facts in overloads for name in facts.parameters}
    is_one = all(facts.returns_one_tensor for facts in overloads)
    return bool(overloads) and is_one and node.kwargs.keys() <= known


_OF_POOL: Final = 6
"""How many arguments a pool of torch.nn.functional has, besides
`return_indices`."""


def owned(node: Node) -> AnyValue:
    """The module or value that a call_module or get_attr node names."""
    if node.op not in ("call_module", "get_attr"):
        return None
    return look_up(node.graph.owning_module, str(node.target))


def is_torchs_module(node: Node) -> bool:
    """Whether a node calls a module in which only code of torch runs."""
    module = owned(node)
    return isinstance(module, nn.Module) and is_torchs(module)


def changes_only_itself(node: Node) -> bool:
    """Whether a node calls a module of torch that writes into no input.

    Or one of guards, which only check.
    """
    if node.op == "call_module" and isinstance(owned(node), Guards):
        return True
    if not is_torchs_module(node):
        return False
    parts = owned(node).modules()
    return not any(getattr(part, "inplace", False) for part in parts)


def holds_with_others(
    calls: Collection[Node], nodes: Iterable[Node]
) -> set[Node]:
    """The calls whose modules share a tensor with other nodes.

    A batch norm in training changes its statistics: a get_attr node, another
    path and another module can lead to them as well.

    Args:
        calls: call_module nodes.
        nodes: all nodes of the graph.

    Cost: O(nodes + modules and tensors that they hold).
    """
    holders: dict[int, list[Node]] = {}
    for node in calls:
        for place in places_in(owned(node)):
            holders.setdefault(place, []).append(node)
    others = [node for node in nodes if node not in calls] if holders else []
    places = [place for node in others for place in places_in(owned(node))]
    return {node for place in places for node in holders.get(place, ())}


def places_in(held: AnyValue) -> set[int]:
    """The memories of the tensors in a module, or in another value."""
    if isinstance(held, nn.Module):
        held = [*held.parameters(), *held.buffers()]
    leaves = pytree.tree_leaves(held)
    return {place_of(leaf) for leaf in leaves if isinstance(leaf, torch.Tensor)}


def place_of(tensor: torch.Tensor) -> int:
    """What tensors in one memory have in common: the address of its storage.

    A storage on the meta device, as fake tensors have it, has no address and
    is compared by identity; so is a tensor without a storage.
    """
    memory: object = tensor
    with suppress(RuntimeError, ValueError):  # sparse, jagged, lazy, …
        memory = storage = tensor.untyped_storage()
        if storage.device.type != "meta" and storage.data_ptr():
            return storage.data_ptr()
    return id(memory)


def overloads_of(node: Node) -> list[OperatorInfo]:
    """The overloads of torch's own operators that a call can mean.

    A function of torch.nn.functional that is written in Python counts as the
    operator of the same name, and a method as that of a tensor.  Operators of
    a library are left out: a user has written their schemas, and nobody has
    observed what they keep.
    """
    target: object = node.target
    if node.op == "call_method":
        target = getattr(torch.ops.aten, str(target), None)
    elif node.op != "call_function":
        return []
    elif facts_of_overloads(target) is None:
        text = _get_qualified_name(target)
        module, _, name = text.rpartition(".")
        if module != "torch.nn.functional" or not resolves_to(text, target):
            return []
        target = getattr(torch.ops.aten, name, None)
    return [facts for facts in overloads_on_tensors(target) if facts.is_torchs]


def is_new(node: Node, tensors: dict[Node, bool]) -> bool:
    """Whether a call is known to return memory that it shares with nothing.

    Neither does it keep its inputs.  It may still have an effect.  A method
    counts only if its object is known to be a tensor, because a user's `add`
    may return the object itself.
    """
    if node.op == "call_module":
        module = owned(node)
        in_place = getattr(module, "inplace", False)
        return not in_place and returns_new_tensor(module)
    if node.op == "call_method":
        is_new = str(node.target) in tables.RETURNS_NEW_MEMORY
        return is_new and is_tensor(first_of(node), tensors)
    if node.op != "call_function":
        return False
    if node.target is getattr:
        name = str(node.args[-1]) if len(node.args) == 2 else ""
        return name in tables.PLAIN_ATTRIBUTES
    if id(node.target) in _ARITHMETIC:
        return is_tensor(node, tensors)
    overloads = overloads_of(node)
    return bool(overloads) and overloads[0].base in tables.RETURNS_NEW_MEMORY


# -- which nodes without users must stay ------------------------------------

Makers: TypeAlias = frozenset[Node] | None
"""The calls that made the memory that a value may be in; None if others may
have it too."""

_MOST: Final = 8
"""A value in more memories than this is not traced, or a chain of such values
would take time that grows with the square of its length."""


_log: Final = logging.getLogger("fx.effects")


@contextmanager
def by_rule(rule: Rule) -> Iterator[None]:
    """A block in which dead code elimination follows a rule.

    For a whole program, call `RULE.set("torch")` when it begins.

    "sound" is the default because what the removal of an effect breaks shows
    nowhere: the statistics of a batch norm stop, or a buffer keeps its old
    value.  But there are programs that count on the removal.  torchvision's
    `create_feature_extractor(resnet18(), ["bn1"])` is one: the ReLU that stays
    here writes into the feature, as it does in the model.

    Args:
        rule: "torch" removes what torch.fx removes, writes that are seen
            later and random draws among it; and a rewrite leaves the notes on
            values that torch.fx leaves, true or not.
    """
    token = RULE.set(rule)
    try:
        yield
    finally:
        RULE.reset(token)


def _torch_keeps(node: Node) -> bool:
    """Whether torch.fx keeps a node without users.

    What was registered with `fx.has_side_effect` stays, as what is registered
    with torch.fx's does there.  torch's own method is asked about our node: it
    reads opcode, target and arguments, which have the same names.
    """
    theirs: AnyValue = torch.fx.Node.is_impure
    return bool(theirs(node)) or (
        node.op == "call_function"
        and is_in(side_effect_registry, node.target)
        and not any(node.target is f for f in tables.CALLED_FOR_EFFECT)
    )


def _noting(keep: Callable[[Node], bool]) -> Callable[[Node], bool]:
    """A predicate that also logs what is kept and torch.fx would remove.

    A warning at each pass would say too much: a write that is a statement of
    its own is ordinary code, which its author cannot mend.
    """

    def keep_and_note(node: Node) -> bool:
        kept = keep(node)
        if kept and not _torch_keeps(node):
            why = classify(node).reason
            _log.info("%s stays; torch.fx would remove it: %s", node, why)
        return kept

    return keep_and_note if _log.isEnabledFor(logging.INFO) else keep


def must_keep(
    unknown: Unknown, rule: Rule | None = None
) -> Callable[[Node], bool]:
    """The predicate by which dead code elimination keeps unused nodes.

    Ask it from the last node of a graph to the first.  Meanwhile the graph may
    change in one way only: nodes that are not kept are erased.

    Args:
        unknown: "drop" keeps what is impure, as torch.fx does; "keep" keeps
            all that is not pure.  Neither keeps a write that nobody can see.
        rule: "sound", or "torch" to keep what torch.fx keeps, whatever
            `unknown` says; by default that of `by_rule`.

    Raises:
        ValueError: `unknown` or `rule` is another word.

    Cost: O(1) for each node, as `classify`; O(nodes + uses) once, when it is
    asked about a write.
    """
    if unknown not in ("drop", "keep"):
        raise ValueError(f'unknown={unknown!r}: say unknown="drop" or "keep"')
    rule = rule or RULE.get()
    if rule not in ("sound", "torch"):
        raise ValueError(f'effects={rule!r}: say effects="sound" or "torch"')
    return _torch_keeps if rule == "torch" else _noting(_sound(unknown))


def _sound(unknown: Unknown) -> Callable[[Node], bool]:
    """The predicate that keeps each effect that somebody may see.

    An effect with a `target` is a write and nothing more; others, such as a
    random draw, stay.  The memory is traced when the first write is asked
    about, so that a graph without writes pays nothing for it.
    """
    memory: Memory | None = None
    tensors: dict[Node, bool] = {}

    def keep(node: Node) -> bool:
        nonlocal memory
        if unknown == "drop":
            effect = effect_by_name(node)
        else:
            effect = classify(node, tensors)
        if effect.kind != "impure":
            return effect.kind == "unknown" and unknown == "keep"
        if effect.target is None:
            return True
        if memory is None:
            memory = Memory(node.graph.nodes)
        return memory.is_observable_after(node)

    return keep


class MemoryRule(TorchsRule):
    """The rule of `must_keep`, for all graphs: see `use_def.dead_code`."""

    def is_impure(self, node: Node, impure_random: bool) -> bool:
        """Whether removing a node is known to change what a program does."""
        return is_impure(node, impure_random)

    def must_keep(
        self, unknown: Unknown, effects: Rule | None
    ) -> Callable[[Node], bool]:
        """The predicate by which dead code elimination keeps unused nodes."""
        return must_keep(unknown, effects)


memory_rule: Final = MemoryRule()
"""What `Graph._dead_code_rule` is in the library."""


side_effect_registry.update(tables.CALLED_FOR_EFFECT, INFERENCE_MODE)


class Memory:
    """The memory that the calls of a graph make, and who uses it.

    Each value is mapped to its makers, the calls whose memory it may be in.
    For each maker there are two lists, in the order of the program: who uses
    its memory, under whatever name, and who may have kept it where it is not
    followed any more, such as a list, a user's function, or a hook.
    """

    def __init__(
        self, nodes: Iterable[Node], inputs: Iterable[Node] = ()
    ) -> None:
        """Trace the values of all nodes, in the order of the program.

        Args:
            nodes: the nodes.
            inputs: those that count as tensors, each in memory of its own.

        Cost: O(nodes + uses).
        """
        self._inputs = frozenset(inputs)
        self._allocators: dict[Node, Makers] = {}
        self._users: dict[Node, list[Node]] = {}
        self._escapes: dict[Node, list[Node]] = {}
        self._tensors = dict.fromkeys(self._inputs, True)
        for node in nodes:
            makers = self._allocators[node] = self._makers_of(node)
            used = [self._allocators[arg] or () for arg in node._inputs]
            for maker in dict.fromkeys([m for group in used for m in group]):
                self._users[maker].append(node)
                if makers is None:
                    self._escapes[maker].append(node)
            if makers is not None and node in makers:
                self._users[node], self._escapes[node] = [], []

    def is_observable_after(self, write: Node) -> bool:
        """Whether what a node writes may be seen by a node after it.

        Of the nodes after it, only those that stay are left in the graph.  So
        nobody sees it if it is itself the last user of the memory, and nothing
        has kept that.

        Cost: O(1), amortised over the nodes of a walk from last to first.
        """
        makers = self._allocators[write]
        return makers is None or any(
            _last(self._escapes[maker]) is not None
            or _last(self._users[maker]) is not write
            for maker in makers
        )

    def is_made_here(self, write: Node) -> bool:
        """Whether a node only writes, into memory all of whose users are known.

        Calls of the graph made it, and it is followed up to the output.
        """
        makers = self._allocators[write]
        if makers is None or effect_by_name(write).target is None:
            return False
        losers = [loser for maker in makers for loser in self._escapes[maker]]
        return all(loser.op == "output" for loser in losers)

    def makers(self, node: Node) -> Makers:
        """The calls and inputs in whose memory a value may be."""
        return self._allocators[node]

    def seen_besides(self, value: Argument, inside: Collection[Node]) -> str:
        """Who may see what some nodes write into a value, but for their users.

        Args:
            value: what they write into.
            inside: the nodes. What they return does not count.

        Returns:
            "" if nobody does, else who or why, in a clause.
        """
        makers = self._allocators[value] if isinstance(value, Node) else None
        if makers is None:
            return "others may have its memory"
        known, end = _computed_from(value, inside), max(inside)
        for maker in makers:
            for loser in self._escapes[maker]:
                if loser <= end:
                    return f"{loser} may have kept it"
            for user in self._users[maker]:
                names = {
                    name
                    for name in user._inputs
                    if name not in inside
                    and name < end
                    and maker in (self._allocators[name] or ())
                }
                if user > end and names:
                    return f"{user} uses it later"
                if user in inside and names - known:
                    return f"{user} uses it under another name"
        return ""

    def uses(self) -> Iterable[list[Node]]:
        """For each memory that a call made, who uses it, in order."""
        return self._users.values()

    def _makers_of(self, node: Node) -> Makers:
        """The makers of a node's memory.

        - What a write returns is its target.
        - What is known to be new memory is its own maker.
        - What another operator of torch returns may be in the memory of any
          argument, whatever its schema says; or in that of the first alone, if
          all its schemas declare a view of it.
        - All else may be in any memory, and may keep its inputs where others
          find them: None. That is an input, a parameter, what a user's function
          returns, and `x.data`: autograd may have saved `x` for the backward
          pass, and would not notice a write through that.
        """
        if node.op in ("placeholder", "get_attr", "output"):
            return frozenset((node,)) if node in self._inputs else None
        effect = effect_by_name(node)
        if effect.target is not None:
            written = effect.target.of(node._args, node._kwargs)
            known = is_tensor(written, self._tensors)
            return self._union([written]) if known else None
        # A batch norm in training writes into its own state only.
        keeps_nothing = (
            effect.kind == "pure"
            or node.op == "call_module"
            or not node._inputs  # torch.rand(2)
        )
        if keeps_nothing and is_new(node, self._tensors):
            return frozenset((node,))
        return self._union(self._sources(node, effect))

    def _sources(self, node: Node, effect: Effect) -> Iterable[Argument]:
        """The inputs whose memory the value of a pure call may be in.

        Empty if it may be in other memory as well.
        """
        first = node._args[0] if node._args else None
        if effect.kind != "pure" or node.target is operator.getitem:
            return (first,) if effect.kind == "pure" else ()
        if node.op == "call_method" and not is_tensor(first, self._tensors):
            return ()
        if node.op == "call_module":
            return node._inputs if is_torchs_module(node) else ()
        overloads = overloads_of(node)
        if overloads and all(facts.views_first for facts in overloads):
            return (first,)
        return node._inputs if overloads else ()

    def _union(self, sources: Iterable[Argument]) -> Makers:
        """The makers of all of some values."""
        union: set[Node] = set()
        for source in sources:
            makers = (
                self._allocators[source] if isinstance(source, Node) else None
            )
            if makers is None:
                return None
            union |= makers
        return frozenset(union) if 0 < len(union) <= _MOST else None


def _computed_from(value: Argument, inside: Collection[Node]) -> set[Node]:
    """A value, and all from which some nodes compute it."""
    found: set[Node] = set()
    ahead = [value]
    while ahead:
        node = ahead.pop()
        if isinstance(node, Node) and node not in found:
            found.add(node)
            ahead += node._inputs if node in inside else ()
    return found


def _last(nodes: list[Node]) -> Node | None:
    """The last of some nodes that is still in its graph.

    The others at the end are taken off, so that they are looked at once.
    """
    while nodes and nodes[-1]._erased:
        nodes.pop()
    return nodes[-1] if nodes else None
