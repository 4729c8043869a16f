"""A stand-in for torch.fx: classes of which a program here has no instance."""


class Graph: ...


class GraphModule: ...


class Node: ...


class Proxy: ...


class Tracer: ...


def __getattr__(name: str) -> object:
    """Say what to import instead."""
    if name.startswith("__"):
        raise AttributeError(name)
    raise ImportError(
        f"torch.fx.{name} is not in this page, which runs fx itself: write "
        "`import fx` instead of torch.fx"
    )
