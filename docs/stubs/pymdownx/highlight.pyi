from collections.abc import Sequence

from markdown import Markdown

class Highlight:
    def __init__(
        self,
        md: Markdown,
        *,
        linenums: bool | None = None,
        linenums_style: str = "table",
    ) -> None: ...
    def highlight(
        self,
        src: str,
        language: str,
        css_class: str = "highlight",
        hl_lines: Sequence[int] | None = None,
        linestart: int = -1,
    ) -> str: ...
