"""Extra: values that are known although a program is traced without data.

What is computed of constants alone has the same values in each call:

    torch.linspace(0, 1, 3)[1].item()    →    0.5

So a call of torch that is given nothing else, and is small, is made with data,
too, beside the call without. When the program asks for values that are known,
it gets them. What decides them besides, the default dtype and autocast, is a
guard from then on.

A tensor of the root, or of a closure, has values that may be others later. If
one has decided an answer, the guards get it as one more input, and compare.

Known values are forgotten when a call writes into them that is not made with
data. A tensor counts its writes, as do all its views; the tensor with data
counts those that were made with data, and from then on it is behind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final, NamedTuple

import torch
from torch import nn

from ...recording import frames
from ...torch_private.dispatch import DispatchMode
from ...torch_private.fake_tensors import unset_fake_temporarily
from ...torch_private.pytree import pytree
from ...torch_private.symbolic_sizes import DATA_DEPENDENT, SYMBOLIC, hint_of
from ...tracing.wrapping import original_of
from ...use_def.values import AnyValue
from .calls import Call
from .guards import Guard
from .structures import is_tensor
from .trial import DATA, version_of

if TYPE_CHECKING:
    from ...node import Node

LIMIT: Final = 2**14
"""How many elements a tensor may have whose values are known."""


class Value(NamedTuple):
    """The values of a tensor.

    Attributes:
        real: a tensor that has them.
        ahead: how many writes more the one without data has counted.
        sources: the ids of tensors of the user that have decided them.
        is_rounded: whether floats were computed for them.
    """

    real: torch.Tensor
    ahead: int
    sources: frozenset[int]
    is_rounded: bool


class Known:
    """Which values are known in a trace, and what the program has read.

    Attributes:
        read: id → a tensor of the user whose values have decided an answer,
            and the user's line.
    """

    def __init__(self, recorder: AnyValue) -> None:
        """Begin without any."""
        self._recorder = recorder
        self._values: dict[int, Value] = {}
        self._sources: dict[int, torch.Tensor] = {}
        self._lost: set[AnyValue] = set()
        self._noted: set[AnyValue] = set()
        self.read: dict[int, tuple[torch.Tensor, str]] = {}

    def begin(self, fake: torch.Tensor, real: torch.Tensor) -> None:
        """Let the values of a tensor of the user be known, if it is small."""
        plain = type(real) in (torch.Tensor, nn.Parameter, nn.Buffer)
        has_data = not real.is_meta and real.layout == torch.strided
        if plain and has_data and real.numel() <= LIMIT:
            self._sources[id(real)] = real
            # Copied when it is needed: most are not.
            ids, ahead = frozenset((id(real),)), version_of(fake)
            self._values[id(fake)] = Value(real, ahead, ids, is_rounded=False)

    def is_given(self, call: Call) -> bool:
        """Whether a call is given nothing but constants and known values."""
        first = call.args[0] if call.args else None
        if is_tensor(first) and id(first) not in self._values:
            return False  # as nearly always
        given = [*_leaves((call.args, call.kwargs))]
        return not any(isinstance(leaf, _OTHERS) for leaf in given) and all(
            self.has(leaf) for leaf in given if is_tensor(leaf)
        )

    def follow(
        self, call: Call, result: AnyValue, node: Node, *, is_known: bool
    ) -> None:
        """Make a call with data, too, if all that it is given was known.

        Args:
            call: was recorded.
            result: what it has given, for the program.
            node: stands for it, and is not needed if nothing uses it.
            is_known: whether what it is given was known before.
        """
        if call.function in DATA:  # which counts its writes for itself
            with suppress(NotImplementedError, RuntimeError):  # no memory
                self._lost.add(_memory(call.args[0]))
        if not is_known:
            return
        results = [x for x in pytree.tree_leaves(result) if is_tensor(x)]
        values = [*map(self._of, _tensors(call))]
        if not all(map(_is_small, results)) or not values + results:
            return
        before = [version_of(value.real) for value in values]
        try:
            watched = _Repeatable()
            with self._with_data(), watched:
                made = _mapped(call, self._real).run()
        except Exception:  # it draws, or is not for this device, say
            return
        reals = [x for x in pytree.tree_leaves(made) if is_tensor(x)]
        if len(reals) != len(results) or any(real.is_meta for real in reals):
            return
        sources = frozenset[int]().union(*(v.sources for v in values))
        every = [*reals, *(value.real for value in values)]
        has_floats = any(x.is_floating_point() or x.is_complex() for x in every)
        computes = watched.computes or not values
        is_rounded = any(value.is_rounded for value in values)
        is_rounded |= has_floats and computes
        for fake, real in zip(results, reals, strict=True):
            ahead = version_of(fake) - version_of(real)
            self._values[id(fake)] = Value(real, ahead, sources, is_rounded)
        if before != [version_of(value.real) for value in values]:
            self._spread(values, sources, is_rounded)
        elif results and (call.name[-1:] != "_" or call.name[-2:] == "__"):
            self._recorder.erasable.add(node)

    def _spread(
        self, values: list[Value], sources: frozenset[int], is_rounded: bool
    ) -> None:
        """Note of all that shares memory with some values what decides them.

        One of them was written, so what is in the others is in it, too.
        """
        memory = {_memory(value.real) for value in values}
        for key, value in self._values.items():
            if _memory(value.real) in memory:
                self._values[key] = value._replace(
                    sources=value.sources | sources,
                    is_rounded=value.is_rounded or is_rounded,
                )

    # -- what is known -----------------------------------------------------

    def has(self, tensor: torch.Tensor) -> bool:
        """Whether the values of a tensor are known."""
        value = self._values.get(id(tensor))
        if value is None or torch.is_inference(tensor):
            return False
        behind = version_of(tensor) - value.ahead
        is_source = id(value.real) in value.sources
        counted = 0 if is_source else version_of(value.real)
        is_lost = bool(self._lost) and _memory(tensor) in self._lost
        return behind == counted and not is_lost

    def _of(self, tensor: torch.Tensor) -> Value:
        """The values of a tensor, in a copy if it is the user's."""
        value = self._values[id(tensor)]
        if id(value.real) in value.sources:
            with self._with_data():
                real = value.real.detach().clone()
            ahead = value.ahead - version_of(real)
            value = Value(real, ahead, value.sources, is_rounded=False)
            self._values[id(tensor)] = value
        return value

    def _real(self, value: AnyValue) -> AnyValue:
        """What has the values of a tensor; all else as it is."""
        return self._of(value).real if is_tensor(value) else value

    @contextmanager
    def _with_data(self) -> Iterator[None]:
        """A block in which calls compute, and nothing is recorded."""
        with (
            unset_fake_temporarily(),
            self._recorder.pause(),
            torch.no_grad(),
        ):
            yield

    # -- what is asked -----------------------------------------------------

    def answers(self, call: Call) -> bool:
        """Whether a call asks for values, all of which are known."""
        if call.name not in _READS:
            return False
        tensors = _tensors(call)
        return bool(tensors) and all(map(self.has, tensors))

    def answer(self, call: Call) -> AnyValue:
        """What it gives.

        Raises:
            Exception: what it raises in eager.
        """
        self._note(_tensors(call))
        with self._with_data():
            return _mapped(call, self._real).run()

    def run(self, call: Call, *, is_known: bool) -> AnyValue:
        """Make a call that is to be recorded.

        If it asks for values, it is shown those that are known.

        Args:
            call: is made.
            is_known: whether all that it is given is.

        Returns:
            The result, and what binds it.
        """
        recorder = self._recorder
        try:
            with recorder.sizes.inside(whole=False) as selects:
                result, bind = recorder.run_call(call, is_leaf=False)
            if is_known and any(map(selects, pytree.tree_leaves(result))):
                result = self._sized(call, result)
            if not is_known and getattr(result, "constant", None) is not None:
                result.constant = None  # of torch.tensor(size): unset memory
            return result, bind
        except DATA_DEPENDENT:
            told = [tensor for tensor in _tensors(call) if self.has(tensor)]
            if not told and call.name in ("__getitem__", "__setitem__"):
                return self._sliced(call), recorder.bind
            if not told:
                raise
        before = [tensor.constant for tensor in told]
        for tensor in told:
            tensor.constant = self._of(tensor).real
        try:
            with recorder.pause():
                result = call.run()
        finally:
            for tensor, constant in zip(told, before, strict=True):
                tensor.constant = constant
        self._note(told)
        return result, recorder.bind

    def _sliced(self, call: Call) -> AnyValue:
        """The result of a call that slices by tensors, and so is of any size.

        Raises:
            Exception: it asks for values otherwise.
        """
        sizes = self._recorder.sizes
        new: AnyValue = sizes.mode.shape_env

        def bound(value: AnyValue) -> AnyValue:
            return new.create_unbacked_symint() if is_tensor(value) else value

        def sliced(leaf: AnyValue) -> AnyValue:
            return _in_slice(leaf, bound) if isinstance(leaf, slice) else leaf

        with self._recorder.pause(), sizes.inside(whole=True):
            return call.mapped(sliced).run()

    def _sized(self, call: Call, result: AnyValue) -> AnyValue:
        """The result of a call that selects by known values: of known sizes."""

        def copied(value: AnyValue) -> AnyValue:
            return self._of(value).real.clone() if is_tensor(value) else value

        def faked(value: AnyValue) -> AnyValue:
            mode = self._recorder.sizes.mode
            known = is_tensor(value)
            return (
                mode.from_tensor(value, static_shapes=True) if known else value
            )

        try:
            with self._with_data(), _Repeatable():
                made = _mapped(call, copied).run()
        except Exception:
            return result
        self._note(_tensors(call))
        with self._recorder.pause():
            return pytree.tree_map(faked, made)

    def _note(self, tensors: list[AnyValue]) -> None:
        """Note what decides an answer."""
        questions = self._recorder.questions
        for value in map(self._of, tensors):
            for source in value.sources - self.read.keys():
                self.read[source] = self._sources[source], frames.where()
            where = id(self._recorder.graph), *questions.open
            if value.is_rounded and where not in self._noted:
                self._noted.add(where)
                kind = value.real.device.type
                for ask, given in zip(_ASKED, ((), (kind,)), strict=True):
                    questions.ask_mode(Call(ask, given, {}), ask(*given))

    # -- what is checked ---------------------------------------------------

    def check_first(self, guards: nn.Module, places: list[Node]) -> None:
        """Record that the placeholders are checked before all else."""
        recorder, path = self._recorder, "_guards"
        held: AnyValue = vars(recorder.root)
        taken = hasattr(recorder.root, path)
        if taken or held.setdefault(path, guards) is not guards:
            path = recorder._store(path, guards)  # noqa: SLF001
        else:
            recorder.stored.append(path)
        node = recorder.create_node("call_module", path, (*places,), {})
        node.meta["val"] = None
        if places:  # before their sizes, which another input may not have
            places[-1].append(node)
        self._first = node

    def checked(self) -> Iterator[tuple[str, torch.Tensor, Guard]]:
        """Let the guards be given the tensors of which values were read.

        Yields:
            The node of each, the tensor, and its guard.
        """
        recorder = self._recorder
        for index, (tensor, line) in enumerate(self.read.values()):
            with recorder.graph.inserting_before(self._first):
                node = recorder.fetch(tensor)
            self._first.args += (node,)
            is_lost = _memory(recorder.fake(tensor)) in self._lost
            told = f"{node}, {index}, True" if is_lost else f"{node}, {index}"
            yield node.name, tensor, Guard(f"unchanged({told})", True, line)


class _Repeatable(DispatchMode):
    """Refuses what does not give the same each time.

    Attributes:
        computes: whether a call was more than a view.
    """

    computes: bool = False

    def __torch_dispatch__(
        self,
        func: AnyValue,
        types: AnyValue,
        args: AnyValue = (),
        kwargs: AnyValue = None,
    ) -> AnyValue:
        """Make a call of an operator, unless it draws or leaves memory open."""
        name = func.name()
        is_open = any(part in name for part in ("::empty", "::new_empty"))
        if (
            is_open
            or "resize" in name
            or torch.Tag.nondeterministic_seeded in func.tags
        ):
            raise NotImplementedError(name)
        self.computes |= not getattr(func, "is_view", False)
        return func(*args, **(kwargs or {}))


def _leaves(value: AnyValue) -> Iterator[AnyValue]:
    """What is in arguments, in slices too."""
    for leaf in pytree.tree_leaves(value):
        if isinstance(leaf, slice):
            yield from (leaf.start, leaf.stop, leaf.step)
        else:
            yield leaf


def _tensors(call: Call) -> list[AnyValue]:
    """The tensors that a call is given."""
    return [*filter(is_tensor, _leaves((call.args, call.kwargs)))]


def _in_slice(leaf: slice, change: Callable[[AnyValue], AnyValue]) -> slice:
    """The same slice with other bounds."""
    return slice(*map(change, (leaf.start, leaf.stop, leaf.step)))


def _mapped(call: Call, change: Callable[[AnyValue], AnyValue]) -> Call:
    """The same call with other values in its arguments, in slices too."""
    return call.mapped(
        lambda leaf: (
            _in_slice(leaf, change) if isinstance(leaf, slice) else change(leaf)
        )
    )


def made_up(fake: AnyValue) -> torch.Tensor:
    """A tensor like a fake one, with data: ones, but zeros in an index."""
    sizes, strides = map(hint_of, fake.shape), map(hint_of, fake.stride())
    kinds = {"dtype": fake.dtype, "device": fake.device}
    may_index = not (fake.is_floating_point() or fake.is_complex())
    may_index &= fake.dtype != torch.bool
    new = torch.empty_strided([*sizes], [*strides], **kinds)
    return new.fill_(0 if may_index else 1)


def _memory(tensor: torch.Tensor) -> AnyValue:
    """What tensors have in common that share memory."""
    return tensor.untyped_storage()._cdata  # noqa: SLF001


def _is_small(tensor: torch.Tensor) -> bool:
    """Whether a result is small, or of a size that known values decide."""
    count: AnyValue = tensor.numel()
    return not isinstance(count, int) or count <= LIMIT


_ASKED: Final[list[AnyValue]] = [
    original_of(torch.get_default_dtype),
    original_of(torch.is_autocast_enabled),
]
"""What decides what is computed of constants; globals would be replaced."""

_OTHERS: Final = (*SYMBOLIC, torch.Generator, nn.Module)
"""What a call may be given besides, and then is not made with data."""

_READS: Final = frozenset(
    "item tolist numpy __bool__ __int__ __float__ __complex__ __index__ "
    "__contains__ __array__ is_nonzero equal allclose".split()
)
"""Names of calls that ask for values."""
