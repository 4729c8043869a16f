"""A small canvas for drawings: boxes, words and arrows, as SVG.

Colours are classes, set by docs/css/fx.css for light and dark.  Draw on a
width of 360: that is the width of a telephone, so that a word of size 13 can
be read there; on a wide screen the drawing is at most a third larger.
"""

from __future__ import annotations

from html import escape
from typing import Final, Literal, TypeAlias

WIDTH: Final = 360

Tone: TypeAlias = Literal["plain", "strong", "new", "gone", "quiet", "spark"]
"""What a piece means; the style sheet gives it a colour."""


class Canvas:
    """Pieces of a drawing, in the order in which they were put there."""

    def __init__(self, title: str, height: int) -> None:
        """Make an empty drawing.

        Args:
            title: what it shows, for those who cannot see it.
            height: its height; the width is 360.
        """
        self.title = title
        self.height = height
        self.pieces: list[str] = []

    def box(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        *words: str,
        tone: Tone = "plain",
    ) -> None:
        """A box with lines of words in its middle."""
        self.pieces.append(
            f'<rect class="fx-{tone}" x="{x:g}" y="{y:g}" width="{width:g}" '
            f'height="{height:g}" rx="5"/>'
        )
        top = y + height / 2 - 8 * (len(words) - 1)
        for number, line in enumerate(words):
            self.word(x + width / 2, top + 16 * number, line, tone=tone)

    def word(
        self,
        x: float,
        y: float,
        text: str,
        *,
        tone: Tone = "plain",
        anchor: Literal["start", "middle", "end"] = "middle",
        code: bool = False,
    ) -> None:
        """Words, their middle line at height y."""
        css = f"fx-{tone} fx-mono" if code else f"fx-{tone}"
        self.pieces.append(
            f'<text class="{css}" x="{x:g}" y="{y:g}" dy=".35em" '
            f'text-anchor="{anchor}">{escape(text)}</text>'
        )

    def line(self, x1: float, y1: float, x2: float, y2: float) -> None:
        """A straight line without a head."""
        self.pieces.append(
            f'<path class="fx-line" d="M{x1:g} {y1:g}L{x2:g} {y2:g}"/>'
        )

    def arrow(
        self,
        x1: float,
        y1: float,
        x2: float,
        y2: float,
        *,
        tone: Tone = "plain",
    ) -> None:
        """A straight arrow."""
        self.path(f"M{x1:g} {y1:g}L{x2:g} {y2:g}", x1, y1, x2, y2, tone)

    def curve(
        self,
        x1: float,
        y1: float,
        x2: float,
        y2: float,
        bend: tuple[float, float],
        *,
        tone: Tone = "plain",
    ) -> None:
        """An arrow drawn towards a point on its way."""
        bx, by = bend
        line = f"M{x1:g} {y1:g}Q{bx:g} {by:g} {x2:g} {y2:g}"
        self.path(line, bx, by, x2, y2, tone)

    def path(
        self, line: str, x1: float, y1: float, x2: float, y2: float, tone: Tone
    ) -> None:
        """A line with a head at (x2, y2), coming from (x1, y1)."""
        length = ((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5 or 1.0
        ux, uy = (x2 - x1) / length, (y2 - y1) / length
        bx, by = x2 - 8 * ux, y2 - 8 * uy
        self.pieces.append(
            f'<path class="fx-{tone} fx-line" d="{line}"/>'
            f'<path class="fx-{tone} fx-head" d="M{x2:.1f} {y2:.1f}'
            f"L{bx - 4 * uy:.1f} {by + 4 * ux:.1f}"
            f'L{bx + 4 * uy:.1f} {by - 4 * ux:.1f}z"/>'
        )

    def svg(self) -> str:
        """The drawing."""
        return (
            f'<svg class="fx-picture" viewBox="0 0 {WIDTH} {self.height}" '
            f'role="img" aria-label="{escape(self.title)}">'
            f"{''.join(self.pieces)}</svg>"
        )
