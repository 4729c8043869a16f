"""After stage 03: your proxies meet a real network, and draw it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import fx
from tests.zoo import ZOO

PAGE = Path(__file__).resolve().parents[2] / "build" / "resnet18.html"


def main(page: Path = PAGE) -> None:
    """Trace ResNet-18, say what was recorded, and write a page about it."""
    (network,) = [one for one in ZOO if one.name == "resnet18"]
    gm = fx.symbolic_trace(network.build().eval())
    kinds = Counter(node.op for node in gm.graph.nodes)
    print(f"ResNet-18 on one Proxy: {len(gm.graph.nodes)} nodes.")
    for op, count in kinds.most_common():
        print(f"  {count:3} {op}")
    print(
        "Its additions and its flatten went through your operators, and each "
        "node\nthrough your create_proxy and create_arg. The tracer that "
        "records the calls of\nlayers is stage 04's, and the code of the "
        "result is stage 05's."
    )
    page.parent.mkdir(exist_ok=True)
    fx.show(gm, *network.inputs(), title="ResNet-18").write(str(page))
    print(f"\nLook at it in a browser: {page}")


if __name__ == "__main__":
    main()
