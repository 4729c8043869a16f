"""Extra: a trace is tried on its example before it is returned.

Two things could make a trace wrong that no guard would show. The program may
have kept a tensor without data in a list or a cache of its own, where eager
calls would find it (`Made`, `refuse_leftovers`). And the graph may give
something else than the program, because a call went by the trace (`Trial`).

For the second the program and the graph run once more each, on the example
itself, beginning with the same random numbers; what they return and write, and
the gradients of the inputs, have to be equal. Afterwards tensors, attributes
and generators are what they were.
"""

from __future__ import annotations

import collections
import functools
import gc
import inspect
import random
import sys
import types
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple, TypeAlias

import torch

from ...proxy import TraceError
from ...torch_private.fake_tensors import FakeTensor
from ...torch_private.modules import preserving_versions
from ...tracing.patching import TRACES, put
from ...tracing.wrapping import ORIGINAL, original_of
from ...use_def.dotted_path import MISSING
from ...use_def.values import AnyValue
from ..watching.changes import Slots, Snapshotted, changes
from . import errors
from .calls import Call, current
from .structures import Apart, Part, difference, in_words, is_tensor

# -- nothing without data is left ----------------------------------------------


class Made:
    """The tensors and numbers without data that a trace has made.

    They are held weakly: which of them are alive when the trace has ended is
    known at once, and only then is it asked who holds them.
    """

    def __init__(self) -> None:
        """Begin without any."""
        self._made: list[weakref.ref[AnyValue]] = []

    def note(self, value: AnyValue) -> None:
        """Note one of them."""
        self._made.append(weakref.ref(value))

    @contextmanager
    def excepting(self) -> Iterator[None]:
        """A block that makes what may stay: the `meta` of nodes."""
        count = len(self._made)
        yield
        del self._made[count:]

    def alive(self) -> list[AnyValue]:
        """Those that are not freed yet, because something still holds them."""
        return [value for ref in self._made if (value := ref()) is not None]


def patch() -> None:
    """Let the trace that runs note what is made without data."""
    TRACES.patch(FakeTensor, ["__new__"], _noting)
    for number in (torch.SymInt, torch.SymFloat, torch.SymBool):
        TRACES.patch(number, ["__init__"], _noting)


def _noting(called: AnyValue) -> AnyValue:
    """The same constructor, whose object the trace that runs here notes."""
    function = original_of(getattr(called, "__func__", called))

    @functools.wraps(function)
    def replacement(
        first: AnyValue, *args: AnyValue, **kwargs: AnyValue
    ) -> AnyValue:
        result = function(first, *args, **kwargs)
        recorder = current()
        if recorder is not None:
            recorder.made.note(first if result is None else result)
        return result

    vars(replacement)[ORIGINAL] = function
    is_static = isinstance(called, staticmethod)
    return staticmethod(replacement) if is_static else replacement


Namespaces: TypeAlias = dict[int, dict[str, AnyValue]]
"""By the id of a module's globals, what they were."""


def namespaces(roots: Iterable[AnyValue]) -> Namespaces:
    """The globals that functions and the forwards of modules read."""
    found: dict[int, dict[str, AnyValue]] = {}
    for root in roots:
        code: AnyValue = getattr(root, "forward", root)
        names = getattr(inspect.unwrap(code), "__globals__", None)
        if names is not None and id(names) not in found:
            found[id(names)] = {**names}
    return found


def refuse_leftovers(made: Made, before: Namespaces) -> None:
    """Raise if what a trace has made is alive, after removing it.

    Args:
        made: what the trace has made.
        before: globals of the program before the trace.

    Raises:
        TraceError: says who holds it.

    Cost: O(what was made); O(objects of the process) if some is left.
    """
    left = made.alive()
    if left and torch.is_autocast_cache_enabled():
        torch.clear_autocast_cache()  # of weights that were cast
    for generation in (1, 2):
        if not left:
            return
        del left
        gc.collect(generation)  # of cycles
        left = made.alive()
    if not left:
        return
    frozen = gc.get_freeze_count()
    gc.unfreeze()  # what is frozen is not among the referrers
    holders = [*dict.fromkeys(_remove(left, before))]
    if frozen:
        gc.freeze()
    del left
    gc.collect()
    if not holders and not made.alive():
        return  # they were in caches, which are empty now
    raise TraceError(
        "the program has kept a tensor or size of the trace, which has no data"
        f", in {', '.join(holders) or 'an object that Python does not know'}. "
        "The graph would not do that, and later calls of the program would "
        "find it there\n  It is removed. Return the value instead of keeping "
        "it, or make the function that keeps it a leaf: fx.trace(…, leaves=[…])"
    )


def _remove(left: list[AnyValue], before: Namespaces) -> Iterator[str]:
    """Remove what is left from what holds it, and yield the holders' names.

    A cache that holds nothing else is emptied, and is not named.
    """
    ids, level = {id(value) for value in left}, [*left]
    seen = {*ids, id(left)}
    for _ in range(_FAR):
        above: list[AnyValue] = []
        seen |= {id(level), id(above)}
        for holder in gc.get_referrers(*level):
            if id(holder) in seen or isinstance(holder, _PASSING):
                continue
            seen.add(id(holder))
            if isinstance(holder, functools._lru_cache_wrapper):
                yield from _emptied(holder, ids)
            elif _without(holder, ids, before):
                if not _is_of_cache(holder):
                    yield _name_of(holder, seen)
            else:
                above.append(holder)
                if isinstance(holder, tuple | frozenset):
                    ids.add(id(holder))
        level = above
        if not level:
            return


_FAR: Final = 4
"""From how far away somebody may hold a value and be found."""

_PASSING: Final = (
    *(types.FrameType, types.TracebackType, types.ModuleType),
    types.GeneratorType,
)
"""Types of holders that are not looked at."""


def _emptied(cache: AnyValue, ids: set[int]) -> Iterator[str]:
    """Empty a bounded cache if all in it is the trace's; else its name."""
    own = [value for value in gc.get_referents(cache) if id(value) in ids]
    if len(own) == cache.cache_info().currsize:
        cache.cache_clear()
    else:
        yield f"the cache of {cache.__wrapped__.__qualname__}"


def _is_of_cache(holder: AnyValue) -> bool:
    """Whether a dict, whose items were removed, is a cache's without bound."""
    kinds = map(type, gc.get_referrers(holder))
    return isinstance(holder, dict) and functools._lru_cache_wrapper in kinds


def _without(holder: AnyValue, ids: set[int], before: Namespaces) -> bool:
    """Remove what is left from a holder; whether it is one that had it."""
    if isinstance(holder, list | collections.deque | set):
        kept = [item for item in holder if id(item) not in ids]
        if changed := len(kept) < len(holder):
            holder.clear()
            held: AnyValue = holder
            (held.update if isinstance(held, set) else held.extend)(kept)
        return changed
    if isinstance(holder, types.CellType):
        if is_ours := id(holder.cell_contents) in ids:
            del holder.cell_contents
        return is_ours
    held = holder if isinstance(holder, dict) else _attributes(holder)
    if "levelno" in held and id(held["args"]) in ids:  # a handler keeps records
        held.update(msg=str(held["msg"]) % held["args"], args=())
        return False
    lost = [k for k, v in [*held.items()] if {id(k), id(v)} & ids]
    if any(type(key) is not str for key in lost):  # a size has no hash now
        kept = [(k, v) for k, v in held.items() if not {id(k), id(v)} & ids]
        held.clear()
        held.update(kept)
        return True
    for name in lost:
        put(held, name, before.get(id(held), {}).get(name, MISSING))
    slots = Slots(holder)
    full = [name for name, value in slots.items() if id(value) in ids]
    for name in full:
        del slots[name]
    return bool(lost or full)


def _attributes(holder: AnyValue) -> dict[str, AnyValue]:
    """The attributes of an object that can be removed."""
    attributes = getattr(holder, "__dict__", None)
    return attributes if isinstance(attributes, dict) else {}


def _written_name(function: AnyValue) -> str:
    """The name of a function that stands in a file; "" for another value."""
    is_function = isinstance(function, types.FunctionType)
    if not is_function or function.__code__.co_filename[:1] == "<":
        return ""
    return str(function.__qualname__)


def _name_of(holder: AnyValue, seen: set[int]) -> str:
    """What a programmer calls a holder: by who has it, if that has a name."""
    kind = f"a {type(holder).__qualname__}"
    for owner in [holder, *gc.get_referrers(holder)]:
        if isinstance(owner, _PASSING) or (
            id(owner) in seen and owner is not holder
        ):
            continue
        named = getattr(owner, "__qualname__", None)
        if isinstance(owner, tuple):  # of defaults
            users = gc.get_referrers(owner)
            named = next(filter(None, map(_written_name, users)), None)
        if isinstance(owner, dict) and "__name__" in owner:
            keys = [key for key in owner if owner[key] is holder]
            named = ".".join([owner["__name__"], *keys])
        if named:
            return f"{kind} of {named}"
    return kind


_OF_DATA: AnyValue = torch.Tensor.data
DATA: Final = _OF_DATA.__get__, _OF_DATA.__set__
"""What reads and sets `tensor.data`."""


class Writes:
    """Which tensors of the user a program writes into, by their fake ones."""

    def __init__(self) -> None:
        """Begin without any."""
        self._known: list[tuple[torch.Tensor, torch.Tensor, int, str]] = []

    def note(
        self, real: torch.Tensor, fake: torch.Tensor, line: str = ""
    ) -> None:
        """Note which tensor is written if a fake one is.

        Args:
            real: the user's.
            fake: stands for it.
            line: who has made it a constant of the graph, if it is one.
        """
        self._known.append((real, fake, version_of(fake), line))

    def follow(self, call: Call, data: AnyValue) -> None:
        """Note the `data` of a tensor, which has a write counter of its own.

        Args:
            call: any call of torch.
            data: what it has given; None if it has put other data there.
        """
        if call.function not in DATA:
            return
        tensor = call.args[0]
        whole = getattr(tensor, "_base", None)
        for real, fake, _, line in [*self._known]:
            if fake is tensor or fake is whole:
                version = -1 if data is None else version_of(data)
                new = fake if data is None else data
                self._known.append((real, new, version, line))

    def check_constants(self) -> None:
        """Raise TraceError if a tensor that no call has made is written to."""
        for _, fake, version, line in self._known:
            if line and version_of(fake) != version:
                raise TraceError(errors.written(line))

    def written(self) -> Iterator[torch.Tensor]:
        """Those that were written; in inference mode, all that may be."""
        for real, fake, version, _ in self._known:
            if torch.is_inference(fake) or version_of(fake) != version:
                yield real


def version_of(tensor: AnyValue) -> int:
    """How often a tensor was written to; 0 where torch does not count."""
    known = not torch.is_inference(tensor)
    return tensor._version if known else 0  # noqa: SLF001


# -- the graph gives what the program gives ------------------------------------


class Outcome(NamedTuple):
    """What a run has given and written.

    Attributes:
        parts: how the inputs are nested afterwards, and the result.
        same: for each tensor, which is the first that is the same object.
        tensors: name → tensor and copy, also of gradients and the root.
    """

    parts: tuple[Part, ...]
    same: tuple[int, ...]
    tensors: dict[str, AnyValue]


class Trial(NamedTuple):
    """A program and its graph, run once more on the example.

    Attributes:
        give: puts tensors into the arguments of a call, in new containers.
        tensors: of the example, and numbers that may vary.
        written: those that the program may write into.
        owned: of the root, by name.
        held: what else the root holds, to be put back.
    """

    give: Callable[[list[AnyValue]], tuple[AnyValue, ...]]
    tensors: list[AnyValue]
    written: list[torch.Tensor]
    owned: dict[str, torch.Tensor]
    held: list[Snapshotted]

    def difference(self, program: AnyValue, graph: AnyValue) -> str:
        """Where a graph gives something else than the program; "" if not.

        Raises:
            Exception: what the program raises.
        """
        expected = self._run(program)
        try:
            given = self._run(graph)
        except Exception as error:
            return f"the graph raises {type(error).__name__}: {error}"
        return _first_difference(expected, given)

    def repeats(self, program: AnyValue) -> bool:
        """Whether the program gives the same when it runs again."""
        return not _first_difference(self._run(program), self._run(program))

    def _run(self, function: AnyValue) -> Outcome:
        """Run a function; everything is as it was before afterwards."""
        ids = {id(tensor) for tensor in self.written}
        owned = {id(tensor) for tensor in self.owned.values()}
        with _put_back(self.written, self.held, [*self.owned.values()]):
            copies = {
                id(t): _copy(t) if id(t) in ids - owned else t
                for t in self.tensors
            }
            leaves = [copies[id(tensor)] for tensor in self.tensors]
            args, kwargs = self.give(leaves)
            apart, result = Apart(), function(*args, **kwargs)
            parts = (
                apart.flatten((args, kwargs), "inputs"),
                apart.flatten(result, "result"),
            )
            found = dict(zip(apart.paths, apart.leaves, strict=True))
            found |= _gradients(leaves, apart.leaves)
            found |= {n: t for n, t in self.owned.items() if id(t) in ids}
            every = [*map(id, (*self.owned.values(), *leaves, *apart.leaves))]
            first = {tensor: i for i, tensor in reversed([*enumerate(every)])}
            same = tuple(first[tensor] for tensor in every)
            return Outcome(parts, same, {n: _kept(t) for n, t in found.items()})


def _copy(tensor: torch.Tensor) -> torch.Tensor:
    """A copy of an input that is written, which requires gradients as it."""
    new = tensor.detach().clone()
    if not tensor.requires_grad:
        return new
    new.requires_grad_()
    return new if tensor.is_leaf else new.clone()


def _kept(value: AnyValue) -> AnyValue:
    """What stays of a result when what was written is put back."""
    if not isinstance(value, torch.Tensor):
        return value
    kinds = type(value), value.dtype, value.device, value.shape
    return (*kinds, value.requires_grad), value.detach().clone()


def _gradients(
    inputs: list[AnyValue], results: list[AnyValue]
) -> dict[str, AnyValue]:
    """The gradients of the inputs that require them, by name."""
    wanted = [t for t in inputs if is_tensor(t) and t.requires_grad]
    given = [
        t
        for t in {id(t): t for t in results}.values()
        if isinstance(t, torch.Tensor) and t.requires_grad
    ]
    if not wanted or not given or not torch.is_grad_enabled():
        return {}
    ones = [torch.ones_like(t) for t in given]
    try:
        found = torch.autograd.grad(given, wanted, ones, allow_unused=True)
    except RuntimeError as error:  # in eager too: the same text is compared
        return {"the gradients": str(error)}
    return {f"the gradient of input {i}": g for i, g in enumerate(found)}


@contextmanager
def _put_back(
    written: list[torch.Tensor],
    held: list[Snapshotted],
    owned: list[torch.Tensor],
) -> Iterator[None]:
    """A block after which tensors, attributes and generators are as before."""
    flags = [tensor.requires_grad for tensor in owned]
    saved = [(tensor, tensor.detach().clone()) for tensor in written]
    counted = tuple(t for t in written if not t.is_inference())
    states = _states()
    with preserving_versions(counted):
        try:
            yield
        finally:
            for change in changes(held):
                change.undo()
            for tensor, flag in zip(owned, flags, strict=True):
                if tensor.requires_grad != flag:
                    tensor.requires_grad_(flag)
            for tensor, before in saved:
                tensor.detach().copy_(before)
            for restore, state in states:
                restore(state)


def _states() -> list[tuple[Callable[[AnyValue], AnyValue], AnyValue]]:
    """How to put back the generators of random numbers, and their states."""
    states: list[tuple[Callable[[AnyValue], AnyValue], AnyValue]] = [
        (random.setstate, random.getstate()),
        (torch.set_rng_state, torch.get_rng_state()),
    ]
    if torch.cuda.is_available():
        cuda = torch.cuda.get_rng_state_all()
        states.append((torch.cuda.set_rng_state_all, cuda))
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        states.append((numpy.random.set_state, numpy.random.get_state()))
    return states


def _first_difference(one: Outcome, two: Outcome) -> str:
    """What two outcomes do not have in common; "" if they are equal."""
    for was, now in zip(one.parts, two.parts, strict=True):
        if was != now:
            path, old, new = difference(was, now, "it")
            return f"{path} is {in_words(new)} instead of {in_words(old)}"
    for name, expected in one.tensors.items():
        text = _unequal(expected, two.tensors.get(name))
        if text:
            return f"{name}: {text}"
    if one.same != two.same:
        return "other results are the same object, or one of the inputs"
    return ""


def _unequal(one: AnyValue, two: AnyValue) -> str:
    """What differs between two tensors that were kept, or texts."""
    if not isinstance(one, tuple) or not isinstance(two, tuple):
        return "" if one == two else f"{two} instead of {one}"
    for was, now in zip(one[0], two[0], strict=True):
        if was != now:
            return f"{now} instead of {was}"
    try:
        torch.testing.assert_close(two[1], one[1], equal_nan=True)
    except AssertionError as error:
        return " ".join(str(error).split())
    return ""
