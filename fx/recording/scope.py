"""Stage 03, proxies and magic methods: in which module a node is recorded."""

from __future__ import annotations

from ..usedef.values import Value


class Scope:
    """The module in whose forward a node is recorded.

    Attributes:
        module_path: dotted path of the module whose forward runs, "" at the
            root.
        module_type: that module's class, None at the root.

    torch.fx: proxy.py, Scope
    """

    def __init__(self, module_path: str, module_type: Value) -> None:
        """Make a scope of a path and a class."""
        self.module_path = module_path
        self.module_type = module_type


class ScopeContextManager:
    """Overwrites a scope with another one until a `with` block ends.

    torch.fx: proxy.py, ScopeContextManager
    """

    def __init__(self, scope: Scope, current_scope: Scope) -> None:
        """Overwrite `scope` with `current_scope`, remembering what it was."""
        self._scope = scope
        self._path, self._type = scope.module_path, scope.module_type
        scope.module_path = current_scope.module_path
        scope.module_type = current_scope.module_type

    def __enter__(self) -> Scope:
        """The scope that was overwritten."""
        return self._scope

    def __exit__(self, *raised: object) -> None:
        """Write the old values back."""
        self._scope.module_path = self._path
        self._scope.module_type = self._type
