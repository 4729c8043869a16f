"""Extra: arguments in a box, which the called function empties.

A value that a caller still holds stays alive during the call.  So some
functions of torch take a list and empty it, and say so with an attribute
`_boxed_arg_indices`, the positions of such lists; a pass can say it of one call
with a note of that kind.  Then the list is made first, and the variables that
are in it are freed before the call:

    run_boxed_arg_0 = [x, y];  x = y = None
    run = run_1(run_boxed_arg_0, z);  run_boxed_arg_0 = None;  z = None

The function can then free each of them after its last use inside of the call:
graphs that Inductor has compiled take their inputs so.  A value that the call
also takes by itself, or that a later line reads, is not freed.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence
from typing import Final

from ...codegen.emit import Emitter
from ...node import Node, map_arg
from ...recording.operators import syntax_of
from ...use_def.values import AnyValue

_OF_TARGET: Final = "_boxed_arg_indices"
_OF_CALL: Final = "boxed_arg_indices"


def has_boxes(nodes: Iterable[Node]) -> bool:
    """Whether a call takes an argument in a box.

    Most graphs have none, and the plain emitter, which does not ask at each
    call, writes them.

    Cost: O(nodes), and a few microseconds for each function they call.
    """
    targets: dict[int, object] = {}
    for node in nodes:
        if node._op == "call_function":
            targets[id(node._target)] = node._target
            if _OF_CALL in node.meta:
                return True
    return any(map(_said_by, targets.values()))


def _said_by(target: object) -> AnyValue:
    """What a function says of itself.

    An attribute of any object may be code of the user's, and to look at a graph
    must run no part of it: so `getattr_static`.
    """
    return inspect.getattr_static(target, _OF_TARGET, ())


def _positions(node: Node) -> Sequence[int]:
    """The positions of the arguments in boxes, each once.

    A note on the call counts more than what the function says.

    Raises:
        RuntimeError: they are not positions of arguments.
    """
    said: AnyValue = node.meta.get(_OF_CALL)
    said = _said_by(node.target) if said is None else said
    known = range(len(node.args))
    if not isinstance(said, Sequence) or not all(i in known for i in said):
        raise RuntimeError(
            f"Node {node} is said to take boxes at {said!r}, and has "
            f"{len(known)} positional arguments: correct "
            f"node.meta[{_OF_CALL!r}], or {_OF_TARGET} of the function"
        )
    return [*dict.fromkeys(said)]


class BoxingEmitter(Emitter):
    """An emitter that makes boxes before the calls that empty them.

    torch.fx: graph.py, CodeGen._gen_python_code (boxed_arg_indices)
    """

    _index: int = 0

    def write(self, index: int, node: Node) -> None:
        """Write one node."""
        self._index = index
        super().write(index, node)

    def call_function(self, node: Node) -> str:
        """`add = x + y`, or a call behind the lines that make its boxes.

        An operator of Python takes no box, whatever is noted.  The lines that
        make the boxes belong to the node as much as the call does, so that an
        error in them names it.
        """
        if syntax_of(node.target) is not None or node.target is getattr:
            return super().call_function(node)
        positions = _positions(node)
        if not positions:
            return super().call_function(node)
        texts, boxes = [*map(self._text, node.args)], []
        for i in positions:
            box = self.globals.scratch(f"{node.name}_boxed_arg_{i}")
            boxes.append((box, texts[i]))
            texts[i] = box
        lines = "\n".join([f"{box} = {text}" for box, text in boxes])
        freed = self._free(self._only_in(node, positions))
        self.write_line(f"{lines}{freed}\n", self._index)
        if node.kwargs:
            texts.append(self._arguments(node, ()))
        name = str(self._spell(node))
        if node.meta.get("is_wrapped") and name.isidentifier():
            self.wrapped[name] = None
        call = self._assign(node, f"{name}({', '.join(texts)})")
        return call + self._free([box for box, _ in boxes])

    def _only_in(self, node: Node, positions: Sequence[int]) -> list[str]:
        """The variables that are used in boxes for the last time, freed."""
        beside: set[Node] = set()
        rest = [a for i, a in enumerate(node.args) if i not in positions]
        map_arg((rest, node.kwargs), beside.add)
        last, names = self._last_users, []
        for used in node.all_input_nodes:
            if last[used] is node and used not in beside:
                names.append(self.variables[used])
                last[used] = used  # so that the end of the line frees it not
        return names

    def _free(self, names: Sequence[str]) -> str:
        """`;  x = y = None`, if there are names."""
        return f";  {' = '.join(names)} = None" if names else ""
