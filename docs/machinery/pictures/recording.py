"""Three ways into a graph, and the one place where they meet."""

from __future__ import annotations

from docs.machinery.svg import Canvas

_WAYS = (
    (4, 96, "x + 1", "Proxy", "__add__"),
    (108, 96, "x.relu()", "Attribute", "__call__"),
    (212, 144, "torch.abs(x)", "Proxy", "__torch_function__"),
)
_STEPS = (
    (12, "create_arg", "lower the values"),
    (130, "create_node", "add the node"),
    (248, "proxy", "wrap the node"),
)


def draw() -> Canvas:
    """What the user writes, who is asked, and the three steps."""
    canvas = Canvas(
        "An operator, a method and a function of torch on a proxy all lead "
        "to create_proxy, whose steps are create_arg, create_node and proxy",
        262,
    )
    for left, width, written, owner, method in _WAYS:
        middle = left + width / 2
        canvas.word(middle, 14, written, tone="strong", code=True)
        canvas.arrow(middle, 26, middle, 46)
        canvas.box(left, 48, width, 44, owner, method)
        canvas.arrow(middle, 94, 120 + middle / 3, 128, tone="strong")
    canvas.box(4, 130, 352, 122, tone="quiet")
    canvas.word(180, 148, "TracerBase.create_proxy", code=True)
    for left, step, words in _STEPS:
        canvas.box(left, 168, 100, 44, step)
        canvas.word(left + 50, 230, words, tone="quiet")
        if left > 12:
            canvas.arrow(left - 16, 190, left - 2, 190)
    return canvas
