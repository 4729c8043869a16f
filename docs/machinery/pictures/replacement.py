"""What a patched place holds, and where a call of it goes."""

from __future__ import annotations

from docs.machinery.svg import Canvas


def draw() -> Canvas:
    """A call arrives at the replacement and goes on in one of two ways."""
    canvas = Canvas(
        "A call of a module reaches the replacement in nn.Module. If a trace "
        "runs in this thread it goes to Tracer.call_module, otherwise to the "
        "original",
        262,
    )
    canvas.word(90, 14, "self.linear(x)", tone="strong", code=True)
    canvas.word(270, 14, "layer(x)", tone="strong", code=True)
    canvas.word(90, 34, "in a thread that traces", tone="quiet")
    canvas.word(270, 34, "in another thread", tone="quiet")
    canvas.arrow(90, 46, 128, 74, tone="strong")
    canvas.arrow(270, 46, 232, 74, tone="strong")
    canvas.box(60, 76, 240, 62, tone="quiet")
    canvas.word(180, 92, "nn.Module.__call__", code=True)
    canvas.box(76, 104, 208, 26, "replacement: does a trace run here?")
    canvas.arrow(128, 140, 96, 178, tone="strong")
    canvas.arrow(232, 140, 264, 178, tone="strong")
    canvas.word(94, 158, "yes", anchor="end")
    canvas.word(266, 158, "no", anchor="start")
    canvas.box(8, 180, 162, 42, "Tracer.call_module", "record it, or run it")
    canvas.box(190, 180, 162, 42, "the original", "as ever")
    canvas.arrow(172, 201, 188, 201)
    canvas.word(180, 244, "not a leaf: the original is run", tone="quiet")
    return canvas
