"""Stage 03, proxies and magic methods: attributes that code may assign.

`y.data = x * 5` changes what the tensor y is.  On a proxy it would set an
attribute of a Python object, and the graph would know nothing of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..usedef.values import Value

if TYPE_CHECKING:
    from ..proxy import Proxy


class Assigned:
    """An attribute of tensors whose assignment is recorded.

    Reading it gives an Attribute, as reading any other name does; assigning
    it records a call of setattr. A user's subclass of Proxy may keep an
    attribute of its own under the name.
    """

    def __set_name__(self, owner: type, name: str) -> None:
        """Learn which attribute of which class it is."""
        self._module, self._name = owner.__module__, name

    def __get__(self, proxy: Proxy | None, owner: type) -> Value:
        """What the proxy itself has under the name, or an Attribute.

        Of the class it is this object, as `inspect.getmembers` asks for it.
        """
        if proxy is None:
            return self
        attributes = vars(proxy)
        if self._name in attributes:
            return attributes[self._name]
        return proxy.__getattr__(self._name)

    def __set__(self, proxy: Proxy, value: Value) -> None:
        """Record the assignment."""
        if type(proxy).__module__ != self._module:
            vars(proxy)[self._name] = value
            return
        args = (proxy, self._name, value)
        proxy.tracer.create_proxy("call_function", setattr, args, {})
