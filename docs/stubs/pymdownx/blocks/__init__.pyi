from collections.abc import Mapping

from markdown import Extension, Markdown
from pymdownx.blocks.block import Block

class BlocksProcessor:
    md: Markdown
    def register(
        self, b: type[Block], config: Mapping[str, object]
    ) -> None: ...

class BlocksExtension(Extension):
    def extendMarkdownBlocks(
        self, md: Markdown, block_mgr: BlocksProcessor
    ) -> None: ...
