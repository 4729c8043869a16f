"""Where Residual's values are read for the last time, and freed."""

from __future__ import annotations

import fx
from fx.usedef.liveness import last_uses
from stages.residual import Residual


def main() -> None:
    """Print the table of Residual, and the code that is made with it."""
    module = fx.symbolic_trace(Residual())
    last = last_uses(module.graph.nodes)
    for node in module.graph.nodes:
        freed = ", ".join(map(str, last.get(node, ()))) or "nothing"
        print(f"behind {node.name:<7} free {freed}")
    print(module.code)


if __name__ == "__main__":
    main()
