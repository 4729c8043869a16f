"""Extra: what a program asks while it is traced, and who answers later.

A call that gives a tensor becomes a node.  A call that gives something else is
a question: the answer decides what the program does next, so it has to be the
same whenever the graph is called.  Most answers follow from what each guard
checks; others are asked again at run time.

The stride of a computed tensor does not follow from the guards, since a fake
tensor may have other strides than a real one. So the graph asks again at this
place, and compares: one call more, for questions that are rare.

Autocast decides dtypes. So a program that asks for the dtype of a computed
tensor relies on it, and is guarded.
"""

from __future__ import annotations

from types import NoneType
from typing import TYPE_CHECKING, Final

import torch

from ...proxy import TraceError
from ...recording import frames
from ...torch_internals.symbolic_sizes import SYMBOLIC, specialize
from ...usedef.values import Value
from . import errors
from .calls import Call

if TYPE_CHECKING:
    from .recorder import Recorder


class Questions:
    """What a program has asked.

    Attributes:
        modes: questions about modes of torch → the user's line.
        facts: what was asked of parameters and buffers, as sentences.
        wrote_sizes: whether the text of a size was asked.
        fixes_texts: whether a size is fixed whose text is asked.
    """

    def __init__(self, recorder: Recorder) -> None:
        """Begin without any."""
        self._recorder = recorder
        self.modes: dict[str, str] = {}
        self.facts: dict[str, str] = {}
        self.wrote_sizes: bool = False
        self.fixes_texts: bool = False

    def ask(self, call: Call, answer: Value) -> None:
        """Note what was asked of a tensor.

        Raises:
            TraceError: the answer cannot be compared with a later one.
        """
        recorder = self._recorder
        name, is_attribute = call.name, call.name == "__get__"
        if is_attribute:
            getter: Value = call.function
            name = getter.__self__.__name__
        asked: Value = next(iter(call.args), None)
        node = recorder.node_by_id.get(id(asked))
        if name in _FOLLOWS:
            path = recorder.path_of(asked)
            if path is not None:
                text = f"{path}.{name} was {answer!r}"
                self.facts.setdefault(text, frames.where())
            elif name == "dtype" and node and node.op != "placeholder":
                self._ask_what_casts(asked.device.type)
        elif name == "grad_fn":
            for attribute in ("requires_grad", "is_leaf"):
                get: Value = vars(torch.Tensor.__base__)[attribute].__get__
                self.ask(Call(get, (asked,), {}), get(asked))
        elif not isinstance(answer, _ANSWERS):
            raise TraceError(errors.data_dependent(None, recorder.paths))
        elif node and node.op == "placeholder" and not recorder.inner:
            given = [*map(repr, call.args[1:])]
            given += [f"{key}={value!r}" for key, value in call.kwargs.items()]
            text = "" if is_attribute else f"({', '.join(given)})"
            recorder.sizes.ask_input(f"{node}.{name}{text}", answer)
        else:
            written: Value = recorder.create_arg((call.args, call.kwargs))
            again = recorder.record(call, *written)
            recorder.sizes.check_equal(again, recorder.create_arg(answer))

    def text_of(self, name: str) -> str:
        """The text of a tensor or size, which no guard compares.

        It is not the text that the program gets when it runs: most programs
        print it, and in one that decides by it the trial shows the difference.
        """
        self.facts.setdefault(f"the text of {name}", frames.where())
        return f"<{name}>"

    def text_of_size(self, number: Value) -> str:
        """The text of a number computed of sizes."""
        self.wrote_sizes = True
        if self.fixes_texts:
            return str(specialize(number))
        return self.text_of(self._recorder.sizes.text(number))

    def ask_mode(self, call: Call) -> None:
        """Note that the program asks for a mode."""
        given = ", ".join(map(repr, call.args))
        text = f"torch.{call.name}({given})"
        self.modes.setdefault(text, frames.where())

    def _ask_what_casts(self, device: str) -> None:
        """Note that a dtype was asked that these modes decide."""
        where = frames.where()
        self.modes.setdefault(f"torch.is_autocast_enabled({device!r})", where)
        self.modes.setdefault("torch.get_default_dtype()", where)


_FOLLOWS: Final = frozenset(
    "dtype device layout ndim dim ndimension shape size numel nelement type "
    "is_floating_point is_complex is_signed element_size itemsize nbytes "
    "get_device is_cpu is_cuda is_meta is_sparse is_quantized is_nested "
    "is_mkldnn is_mps is_xpu __len__".split()
)
"""Questions whose answer follows from what each guard checks."""

_ANSWERS: Final = (bool, int, float, str, tuple, NoneType, *SYMBOLIC)
"""Types of answers that can be compared."""
