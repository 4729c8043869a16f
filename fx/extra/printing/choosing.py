"""Extra: chooses the emitter that writes a graph as code.

`CodeGen.emitter_of` is this function after `import fx`.  A person asks for
options; a graph asks for boxes itself, if it calls a function that empties the
list that it is given.  The plain emitter would do for all others.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ...codegen.emit import Emitter
from ...linked_list.linked_list import LinkedList
from ...node import Node
from ...use_def.protocols import CodeOptions
from .boxed import BoxingEmitter, has_boxes
from .readable import ReadableEmitter


def emitter_of(
    nodes: LinkedList[Node], options: CodeOptions
) -> Callable[..., Emitter]:
    """What makes the emitter of a graph's body.

    Args:
        nodes: all nodes of the graph.
        options: what to show beyond what is necessary.

    Cost: O(nodes).
    """
    if options != CodeOptions():
        return partial(ReadableEmitter, options)
    return BoxingEmitter if has_boxes(nodes) else Emitter
