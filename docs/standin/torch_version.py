"""A stand-in for torch.torch_version."""


class TorchVersion(str):
    """A version that is compared by its numbers."""

    def _numbers(self, other: str) -> tuple[list[int], list[int]]:
        mine, theirs = ([*map(int, one.split("."))] for one in (self, other))
        return mine, theirs

    def __lt__(self, other: str) -> bool:
        mine, theirs = self._numbers(other)
        return mine < theirs
