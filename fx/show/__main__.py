"""Passes: the command that writes a page about a graph to a file.

python -m fx.show PLACE:NAME --input 1,3,224,224 -o model.html
"""

from __future__ import annotations

import argparse
import copy
import importlib
import sys
from collections.abc import Sequence

import torch
from torch import nn

from ..graph_module import GraphModule
from ..proxy import TraceError
from ..use_def.annotations import signature_of
from ..use_def.values import AnyValue
from .page import show, traced

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Write a page.

    Args:
        argv: the arguments; by default those of the process.

    Returns:
        0, or 1 if the module cannot be traced or the file not written;
        standard error says why.

    Raises:
        SystemExit: the arguments are wrong; standard error says how.
    """
    parser = _parser()
    options = parser.parse_args(argv)
    module = options.module
    if not isinstance(module, nn.Module):
        try:
            signature_of(module).bind()
        except (TypeError, ValueError) as error:
            parser.error(f"{module!r} cannot make a module: {error}")
        module = module()
    if not isinstance(module, nn.Module):
        parser.error(f"{options.module!r} made {module!r}, not a module")
    try:
        gm = traced(module.eval() if options.eval else module)
    except TraceError as error:
        print(f"fx.show: {error}", file=sys.stderr)
        return 1
    after = None
    if options.apply is not None:
        after = copy.deepcopy(gm)  # most passes change what they are given
        result = options.apply(after)
        # A pass of `fx.passes.infra` returns the module in a PassResult.
        result = getattr(result, "graph_module", result)
        after = result if isinstance(result, GraphModule) else after
    page = show(gm, *options.input, after=after, times=options.times)
    try:
        print(page.write(options.output))
    except OSError as error:
        print(f"fx.show: {error}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m fx.show",
        description="Write a page on which one can look at a module's graph.",
    )
    parser.add_argument(
        "module",
        type=_found,
        metavar="PLACE:NAME",
        help="a module, or what makes one when it is called without arguments",
    )
    parser.add_argument(
        "--input",
        type=_tensor,
        action="append",
        default=[],
        metavar="[DTYPE:]SIZES",
        help="an input, such as 1,3,224,224 or int64:1,16; repeat for more",
    )
    parser.add_argument("-o", "--output", default="graph.html", metavar="FILE")
    parser.add_argument(
        "--pass",
        dest="apply",
        type=_found,
        metavar="PLACE:NAME",
        help="show the graph before and after this function of a GraphModule",
    )
    parser.add_argument(
        "--times", action="store_true", help="run the module, to take times"
    )
    parser.add_argument(
        "--eval", action="store_true", help="put the module in eval mode first"
    )
    return parser


def _found(text: str) -> AnyValue:
    """What a text such as `package.module:name` names."""
    place, _, name = text.partition(":")
    try:
        value: AnyValue = importlib.import_module(place)
        for part in name.split("."):
            value = getattr(value, part)
    except (ImportError, ValueError, AttributeError) as error:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not PLACE:NAME of something to import: {error}"
        ) from error
    return value


def _tensor(text: str) -> torch.Tensor:
    """A tensor of that dtype and size: random numbers, or zeros if whole.

    Whole numbers are often indices, for which 0 is allowed.
    """
    name, _, sizes = text.rpartition(":")
    try:
        dtype = getattr(torch, name or "float32")
        if not isinstance(dtype, torch.dtype):
            raise ValueError(f"torch.{name} is not a dtype")
        size = [int(part) for part in sizes.split(",") if part]
        is_float = dtype.is_floating_point
        return (torch.randn if is_float else torch.zeros)(size, dtype=dtype)
    except (AttributeError, ValueError, RuntimeError) as error:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not [DTYPE:]SIZES, such as int64:1,16: {error}"
        ) from error


if __name__ == "__main__":
    sys.exit(main())
