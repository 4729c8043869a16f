"""Where Residual's values are read for the last time, and freed."""

from __future__ import annotations

import fx
from fx.use_def.lint import last_users
from stages.residual import Residual


def main() -> None:
    """Print the table of Residual, and the code that is made with it."""
    module = fx.symbolic_trace(Residual())
    for value, user in last_users(module.graph.nodes).items():
        print(f"behind {user.name:<7} free {value.name}")
    print(module.code)


if __name__ == "__main__":
    main()
