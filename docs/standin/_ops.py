"""A stand-in for torch._ops: the class of what `torch.cond` calls."""

from typing import NoReturn


class HigherOrderOperator:
    """An operator that takes functions, of which only the name is known."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __call__(self, *args: object, **kwargs: object) -> NoReturn:
        raise NotImplementedError(f"{self.__name__} needs the installed torch")
