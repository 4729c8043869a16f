"""What fx does beside a torch that is too old, or has lost a private name."""

from __future__ import annotations

import re

import pytest
import torch
from torch.torch_version import TorchVersion

from fx.torch_private import names
from fx.torch_private.names import (
    OLDEST_TORCH,
    TESTED_TORCH,
    MissingName,
    checked_version,
    find,
    find_or,
)
from tests.checks.torch_names import looked_up
from tests.process import printed


def test_each_name_is_in_the_torch_that_is_installed() -> None:
    missing = {
        name.path
        for name in looked_up()
        if not name.found
        and torch.__version__ >= name.since
        and "_gone" not in name.path
    }
    assert not missing


def test_a_torch_that_is_too_old_is_one_error() -> None:
    with pytest.raises(ImportError, match=r"2\.9 or newer.*torch 2\.8\.1"):
        checked_version(TorchVersion("2.8.1+cpu"))
    assert checked_version(TorchVersion("2.10.0")) == "2.10.0"
    assert TorchVersion(OLDEST_TORCH) <= TESTED_TORCH[1]


def test_the_import_of_fx_is_that_error() -> None:
    said = printed(
        "-c",
        "import torch\n"
        "torch.__version__ = type(torch.__version__)('2.8.0')\n"
        "try:\n"
        "    import fx\n"
        "except ImportError as error:\n"
        "    print(error)\n",
    )
    assert said == (
        "fx needs torch 2.9 or newer, and this is torch 2.8.0: "
        "pip install 'torch>=2.9'\n"
    )


def test_what_is_there_is_the_object_itself() -> None:
    assert find("torch:_assert", needed_for="checks") is torch._assert
    assert find_or("torch._C", None, without="all") is torch._C


def test_what_is_missing_says_what_needs_it() -> None:
    missing = find("torch._gone:thing", needed_for="a test", since="2.11")
    said = re.escape("fx needs torch._gone.thing for a test, and torch ")
    with pytest.raises(MissingName, match=f"^{said}.*as torch 2.11 has"):
        missing(1)
    with pytest.raises(MissingName, match=r"torch 2\.9 to 2\.15"):
        missing.attribute  # noqa: B018
    assert not isinstance(torch.ones(1), missing)
    assert not hasattr(missing, "__wrapped__")
    assert names.LOOKED_UP[-1].path == "torch._gone:thing"


def test_a_class_below_what_is_missing_can_be_written() -> None:
    missing = find("torch:_GoneMode", needed_for="a test")
    below: type = type("Below", (missing,), {"x": 1})
    with pytest.raises(MissingName, match="for a test"):
        below()


def test_what_is_missing_may_have_something_in_its_place() -> None:
    assert find_or("torch:_gone", {}, without="nothing") == {}


# -- without one name ----------------------------------------------------------


DELETE = """
import os, pkgutil, sys, traceback
import torch
from torch import nn

def delete(path):
    module, _, name = path.rpartition(":" if ":" in path else ".")
    holder = pkgutil.resolve_name(module)
    *inner, name = name.split(".")
    for part in inner:
        holder = getattr(holder, part)
    delattr(holder, name)
    sys.modules.pop(path, None)
"""

HIDE = """
import pkgutil, torch

def hide(hidden, found=pkgutil.resolve_name):
    def resolve_name(path):
        if path == hidden:
            raise AttributeError(path)
        return found(path)
    pkgutil.resolve_name = resolve_name
"""

EACH = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.bn = nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4)
        self.linear = nn.Linear(4, 2)

    def forward(self, x):
        y = torch.relu(self.bn(self.conv(x))) + self.conv(x)
        return self.linear(y.mean((2, 3)))

def plain():
    net, x = Net(), torch.rand(2, 3, 8, 8)
    net(x).sum().backward()
    return net.eval(), x

def use_fx(net, x):
    import fx
    gm = fx.symbolic_trace(net)
    str(gm.graph), gm.code, gm.graph.lint()
    gm.graph.eliminate_dead_code()
    fx.replace_pattern(gm, lambda a: torch.relu(a), lambda a: a.relu())
    gm.recompile()
    assert "relu()" in gm.code
    assert torch.equal(fx.Interpreter(gm).run(x), net(x))
    assert torch.equal(fx.Transformer(gm).transform()(x), net(x))
    assert torch.equal(gm(x), net(x))

def said_of(path):
    try:
        delete(path)
        net, x = plain()
    except BaseException:
        return "torch itself needs it"
    try:
        use_fx(net, x)
    except (NameError, ImportError) as error:  # of torch's own file
        last = traceback.extract_tb(error.__traceback__)[-1].filename
        own = last.startswith(os.path.dirname(torch.__file__))
        return "torch itself needs it" if own else f"{last}: {error}"
    except BaseException as error:
        return f"{type(error).__name__}: {error}".replace(chr(10), " ")
    return "works"

for path in sys.argv[1:]:
    sys.stdout.flush()
    if not os.fork():
        print(path, said_of(path), sep=" | ", flush=True)
        os._exit(0)
    os.wait()
"""


def _paths() -> list[str]:
    """What can be taken away: all of it, or here and there on an older torch.

    All of it takes 20 s.
    """
    found = [name.path for name in looked_up() if name.found]
    paths = [
        path
        for path in dict.fromkeys(found)
        if "__dict__" not in path and path != "torch._C" and "_gone" not in path
    ]
    newest = torch.__version__ >= TESTED_TORCH[1]
    return paths if newest else paths[::9]


def test_fx_works_without_any_one_of_the_names() -> None:
    said = printed("-c", DELETE + EACH, *_paths()).splitlines()
    assert len(said) == len(_paths()) > 5
    told = {line.rpartition(" | ")[2] for line in said}
    assert told <= {"works", "torch itself needs it"}, "\n".join(said)
    assert sum(line.endswith("works") for line in said) > len(said) / 2


USES = {
    "torch:_assert": "fx.symbolic_trace(f, {'y': 2})(x, 2)",
    "torch._subclasses.fake_tensor:FakeTensorMode": "fake(x, x)",
    "torch.utils._python_dispatch:TorchDispatchMode": "make_fx(f)(x, x)",
    "torch._C:_DisableTorchDispatch": "make_fx(f)(x, x)",
    "torch.fx.graph:_PyTreeCodeGen": "fx.from_torch(fx_graph).to_torch()",
}
"""A private name -> something that may need it."""

USE = """
import os, sys, torch.fx
f, x = lambda x, y: x + 1, torch.ones(2)
fx_graph = torch.fx.symbolic_trace(f).graph

for hidden, use in zip(sys.argv[1::2], sys.argv[2::2]):
    sys.stdout.flush()
    if not os.fork():
        hide(hidden)
        import fx
        from fx.experimental.proxy_tensor import make_fx
        fake = make_fx(f, tracing_mode="fake")
        try:
            eval(use)
            print("works")
        except fx.torch_private.names.MissingName as error:
            print(error)
        sys.stdout.flush()
        os._exit(0)
    os.wait()
"""


def test_what_needs_a_name_says_so() -> None:
    uses = [word for pair in USES.items() for word in pair]
    said = printed("-c", HIDE + USE, *uses).splitlines()
    assert [line.partition(", and")[0] for line in said] == [
        "fx needs torch._assert for a trace with concrete_args",
        "fx needs torch._subclasses.fake_tensor.FakeTensorMode for running a "
        "graph without data",
        "fx needs torch.utils._python_dispatch.TorchDispatchMode for make_fx",
        "fx needs torch._C._DisableTorchDispatch for make_fx",
        "works",
    ]
