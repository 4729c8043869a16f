"""What forward does to a proxy, or beside it, that no operator shows."""

from __future__ import annotations

import contextlib
import copy
import warnings

import torch

import fx
from tests.parity.harness import Lib, Made, Seen, program


def traced(lib: Lib, root: Made) -> tuple[Made, list[str]]:
    """The graph module, and the first words of what was warned of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        gm = lib.symbolic_trace(root)
    return gm, [" ".join(str(w.message).split()[:5]) for w in caught]


ONES = torch.ones(2)


@program(
    differs="writes-beside-proxies",
    ours=([0.0, 0.0], ["add writes into '_tensor_constant0', a"]),
)
def a_write_into_a_tensor_of_the_trace(lib: Lib) -> Seen:
    def f(x: Made) -> Made:
        t = torch.zeros(2)
        torch.add(x, 1, out=t)
        return t * 2

    gm, warned = traced(lib, f)
    return gm(ONES).tolist(), warned


class Counts(torch.nn.Module):
    count: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(2))

    def forward(self, x: Made) -> Made:
        self.count += 1
        return x + self.count


@program(
    differs="writes-beside-proxies",
    ours=([2.0, 2.0], ["the code wrote to count"]),
)
def a_buffer_that_changes_while_it_is_traced(lib: Lib) -> Seen:
    gm, warned = traced(lib, Counts())
    return gm(ONES).tolist(), warned


class Binds(Counts):
    def __init__(self, fails: bool) -> None:
        super().__init__()
        self.fails = fails

    def forward(self, x: Made) -> Made:
        self.count = self.count + x
        if self.fails:
            raise ValueError
        return x * self.count


@program(
    differs="writes-beside-proxies",
    ours=["Tensor", "the code put another value", "Tensor", "Tensor"],
)
def a_result_is_put_in_the_place_of_a_buffer(lib: Lib) -> Seen:
    root, failing = Binds(False), Binds(True)
    gm, warned = traced(lib, root)
    with contextlib.suppress(ValueError):
        lib.symbolic_trace(failing)
    held = root.count, *warned, gm(ONES), failing.count
    return [v if isinstance(v, str) else type(v).__name__ for v in held]


@program(differs="attributes-assigned", ours=([6.0, 6.0], []))
def data_is_assigned(lib: Lib) -> Seen:
    def f(x: Made) -> Made:
        y = x + 0
        y.data = x * 5
        return y + 1

    gm, warned = traced(lib, f)
    return gm(ONES).tolist(), warned


@program(
    differs="compared-by-is",
    ours=["compared_by_is.<locals>.f compares its parameter 'm'"],
)
def compared_by_is(lib: Lib) -> Seen:
    def f(x: Made, m: Made = None, n: Made = None) -> Made:
        return x if m is None else x * m + n

    return traced(lib, f)[1]


@program()
def nothing_is_compared_by_is(lib: Lib) -> Seen:
    def f(x: Made, m: Made = None, n: Made = 2) -> Made:
        y: Made = None
        return x * m if y is None else x * n

    return traced(lib, f)[1]


@program(
    differs="asked-what-it-is",
    ours=[
        "callable of Proxy(x) is True,",
        "isinstance of Proxy(x) is False,",
        "hasattr of Proxy(x) is True,",
    ],
)
def asked_what_it_is(lib: Lib) -> Seen:
    def f(x: Made) -> Made:
        callable(x)
        isinstance(x, torch.Tensor)
        isinstance(x, list)
        hasattr(x, "nowhere")
        hasattr(x, "relu")
        return x

    return traced(lib, f)[1]


@program()
def a_tracer_may_ask_what_its_proxies_are(lib: Lib) -> Seen:
    class Noting(lib.Proxy):  # type: ignore[misc]
        """A proxy that carries a note."""

        note: Made = None

        def asks(self) -> bool:
            return isinstance(self, torch.Tensor)

    class Notes(lib.Tracer):  # type: ignore[misc]
        """Makes a note on each proxy."""

        def proxy(self, node: Made) -> Made:
            return Noting(node, self)

        def create_proxy(self, *args: Made, **kwargs: Made) -> Made:
            made = super().create_proxy(*args, **kwargs)
            if isinstance(made, Noting) and not made.asks():
                made.note = args[0]
            return made

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        graph = Notes().trace(lambda x: torch.relu(x) + 1)
    return str(graph), [str(warning.message) for warning in caught]


@program(
    differs="hash-of-a-proxy",
    ours=([2.0, 2.0], ["the hash of Proxy(dim) is"]),
)
def a_number_is_looked_up(lib: Lib) -> Seen:
    def f(x: Made) -> Made:
        return x + (0 if x.dim() in {1, 2} else 1)

    gm, warned = traced(lib, f)
    return gm(ONES).tolist(), warned


@program(differs="deepcopy-of-a-proxy", ours=[2.0, 2.0])
def a_proxy_is_copied_deeply(lib: Lib) -> Seen:
    def f(x: Made) -> Made:
        return copy.deepcopy(x) * 2

    try:
        return traced(lib, f)[0](ONES).tolist()
    except NameError as error:
        return str(error)


@fx.wrap
def leaf(module: Made, x: Made) -> Made:
    return x


torch.fx.wrap("leaf")


class GivesItself(torch.nn.Module):
    def forward(self, x: Made) -> Made:
        return leaf(self, x)


@program(
    differs="root-in-a-leaf",
    ours="TraceError: the root module is an argument of a call that is "
    "recorded, and no node can fetch it",
)
def the_root_is_given_to_a_leaf(lib: Lib) -> Seen:
    try:
        return traced(lib, GivesItself())[1]
    except (AttributeError, ValueError) as error:
        first = str(error).partition("\n")[0]
        return f"{type(error).__name__}: {first}"


@program()
def what_torch_compile_has_wrapped_is_refused(lib: Lib) -> Seen:
    compiled = torch.compile(lambda x: x + 1, backend="eager")
    try:
        return traced(lib, lambda x: compiled(x))[0].code
    except RuntimeError as error:
        return str(error)
