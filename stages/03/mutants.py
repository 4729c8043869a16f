"""Stage 03's likely mistakes, and what each must be told."""

from __future__ import annotations

from typing import Final

from stages.manifest import Mutant

MUTANTS: Final = (
    Mutant(
        function="proxy.TracerBase.create_arg",
        misconception="A node can hold a Proxy as it is.",
        was="            return node",
        becomes="            return a",
        told="A node cannot hold a Proxy, only the node",
    ),
    Mutant(
        function="proxy.TracerBase.create_arg",
        misconception="A named tuple is a tuple like any other.",
        was="if kind is tuple:",
        becomes="if isinstance(a, tuple):",
        told="must come back as a named tuple",
    ),
    Mutant(
        function="proxy.TracerBase.create_arg",
        misconception="Any tracer can lower the items of a container.",
        was="return [self.create_arg(item) for item in a]",
        becomes="return [TracerBase().create_arg(item) for item in a]",
        told="The items of a list must be lowered by the same tracer",
    ),
    Mutant(
        function="proxy.TracerBase.create_arg",
        misconception="Only what the user passes directly can be a Proxy.",
        was="return tuple([self.create_arg(item) for item in a])",
        becomes="return a",
        told="A Proxy inside a tuple must become its node",
    ),
    Mutant(
        function="proxy.TracerBase.create_arg",
        misconception="Containers are tuples, lists and dicts.",
        was="""        if kind is slice:
            return slice(*[self.create_arg(end) for end in parts(a)])
""",
        becomes="",
        told="A slice is a container too",
    ),
    Mutant(
        function="proxy.TracerBase.create_arg",
        misconception="What is in no table cannot be held.",
        was="return self.create_other_arg(a)",
        becomes="""raise NotImplementedError(f"argument of type: {kind}")""",
        told="`self.create_other_arg` knows what to do with it",
    ),
    Mutant(
        function="proxy.TracerBase.create_arg",
        misconception="Whatever is a number is a constant.",
        was="if kind in CONSTANTS:",
        becomes="if isinstance(a, tuple(CONSTANTS)):",
        told="`CONSTANTS` has exact types",
    ),
    Mutant(
        function="proxy.Attribute.__getattr__",
        misconception="Each use of an attribute fetches it.",
        was="self.node: Node = fetch.node\n        return self.node",
        becomes="return fetch.node",
        told="is fetched once: keep the node when it is made",
    ),
    Mutant(
        function="proxy.Attribute.__getattr__",
        misconception="An attribute of an attribute needs the value now.",
        was="return Attribute(self, name)",
        becomes="""fetch = self.tracer.create_proxy(
                "call_function", getattr, (self.root, self.attr), {}
            )
            return Attribute(fetch, name)""",
        told="alone records nothing, not even the fetch of `x.shape`",
    ),
    Mutant(
        function="proxy.Attribute.__getattr__",
        misconception="Who asks for another attribute fetches it again.",
        was="return Attribute(self, name)",
        becomes="return Attribute(Attribute(self.root, self.attr), name)",
        told="must fetch `x.shape` once",
    ),
    Mutant(
        function="proxy.Attribute.__getattr__",
        misconception="Attributes are all read from the first proxy.",
        was="return Attribute(self, name)",
        becomes="return Attribute(self.root, name)",
        told="must be fetched from `x.mT`, not from x",
    ),
    Mutant(
        function="proxy.Attribute.__getattr__",
        misconception="A fetch can be recorded as a method call.",
        was='"call_function", getattr, args, {}',
        becomes='"call_method", "__getattr__", args, {}',
        told="When its node is asked for, `x.shape` is a call of getattr",
    ),
    Mutant(
        function="proxy.Attribute.__getattr__",
        misconception="What create_proxy gives is the node.",
        was="self.node: Node = fetch.node",
        becomes="self.node = fetch",
        told="create_proxy gives a Proxy, which has one",
    ),
    Mutant(
        function="proxy.Proxy.__torch_function__",
        misconception="The first argument is the proxy.",
        was="tracer = _common_tracer(orig_method, args, kwargs)",
        becomes="tracer = args[0].tracer",
        told="The proxy that knows the tracer may be inside a container",
    ),
    Mutant(
        function="proxy.Proxy.__torch_function__",
        misconception="A method of torch.Tensor is a function like others.",
        was="if _is_tensor_method(orig_method):",
        becomes="if False:",
        told="is a method of a tensor: a call_method",
    ),
    Mutant(
        function="proxy.Proxy.__torch_function__",
        misconception="A function's name is a name for a node.",
        was='"call_function", orig_method, args, kwargs)',
        becomes='"call_function", orig_method, args, kwargs, '
        "orig_method.__name__)",
        told="Leave `name` out",
    ),
    Mutant(
        function="proxy.Proxy.__torch_function__",
        misconception="torch always gives a dict of keyword arguments.",
        was="kwargs = kwargs or {}",
        becomes="kwargs = dict(**kwargs)",
        told="torch may give None for kwargs",
    ),
    Mutant(
        function="proxy.Proxy.__torch_function__",
        misconception="An operator that takes functions can be recorded.",
        was="errors.refuse_functions(orig_method, args, kwargs)",
        becomes="pass",
        told="The function would not be traced, so the call is refused",
    ),
    Mutant(
        function="proxy.Proxy.__torch_function__",
        misconception="Only positional arguments can be proxies.",
        was="_common_tracer(orig_method, args, kwargs)",
        becomes="_common_tracer(orig_method, args, {})",
        told="The proxy may be a keyword argument, and the only one",
    ),
    Mutant(
        function="proxy.Proxy.__torch_function__",
        misconception="Methods of tensors have positional arguments only.",
        was='"call_method", name, args, kwargs)',
        becomes='"call_method", name, args, {})',
        told="A keyword argument stays one",
    ),
    Mutant(
        function="proxy.Proxy.__torch_function__",
        misconception="No higher-order operator can be recorded.",
        was="errors.refuse_functions(orig_method, args, kwargs)",
        becomes="errors.refuse_functions(orig_method, (len,), kwargs)",
        told="No Python function is among the arguments of this",
    ),
    Mutant(
        function="proxy.Proxy.__iter__",
        misconception="A Proxy can never be iterated.",
        was="if count is None:",
        becomes="if True:",
        told="`a, b = x` says that there are two items",
    ),
    Mutant(
        function="proxy.Proxy.__iter__",
        misconception="The frame to look at is my own.",
        was="sys._getframe(1)",
        becomes="sys._getframe(0)",
        told="look at the instruction that your caller is executing",
    ),
    Mutant(
        function="proxy.Proxy.__iter__",
        misconception="The error is the Proxy's own; no tracer knows better.",
        was="return self.tracer.iter(self)",
        becomes='raise TraceError("Proxy object cannot be iterated")',
        told="A tracer may override `iter`, and this one did",
    ),
    Mutant(
        function="proxy.Proxy.__iter__",
        misconception="Unpacking always takes two.",
        was="range(count)",
        becomes="range(2)",
        told="One name takes one item, three names take three",
    ),
    Mutant(
        function="proxy.Proxy.__iter__",
        misconception="No number and the number 0 are the same.",
        was="if count is None:",
        becomes="if not count:",
        told="`frames.unpack_count` gives 0, which is false, but not None",
    ),
    Mutant(
        function="proxy.Proxy.__iter__",
        misconception="What can be iterated is an iterator.",
        was="return iter([self[i] for i in range(count)])",
        becomes="return [self[i] for i in range(count)]",
        told="`__iter__` must return an iterator, and a list is not one",
    ),
    Mutant(
        function="proxy.Proxy.__iter__",
        misconception="A generator is an iterator like any other.",
        was="            return self.tracer.iter(self)\n"
        "        return iter([self[i] for i in range(count)])",
        becomes="            yield from self.tracer.iter(self)\n"
        "        yield from [self[i] for i in range(count or 0)]",
        told="nothing of it runs before the first item",
    ),
    Mutant(
        function="proxy.proxies_in",
        misconception="Every proxy is exactly a Proxy.",
        was="if kind is Proxy or issubclass(kind, Proxy):",
        becomes="if kind is Proxy:",
        told="An `Attribute` is a proxy too",
    ),
    Mutant(
        function="proxy.proxies_in",
        misconception="A proxy is what has a node.",
        was="if kind is Proxy or issubclass(kind, Proxy):",
        becomes='if hasattr(value, "node") and not isinstance(value, type):',
        told="records nothing",
    ),
    Mutant(
        function="proxy.proxies_in",
        misconception="Containers are not nested.",
        was="proxies += proxies_in(parts(value), fields=fields)",
        becomes="proxies += [a for a in parts(value) if isinstance(a, Proxy)]",
        told="at any depth",
    ),
    Mutant(
        function="proxy.proxies_in",
        misconception="A dataclass is a container.",
        was="fields or not dataclasses.is_dataclass(kind)",
        becomes="fields or kind",
        told="dataclasses are not looked into",
    ),
    Mutant(
        function="proxy._common_tracer",
        misconception="Proxies are given by position.",
        was="values = (*args, *kwargs.values()) if kwargs else args",
        becomes="values = args or (*kwargs.values(),)",
        told="wherever they are",
    ),
    Mutant(
        function="proxy._common_tracer",
        misconception="Equal tracers are one.",
        was="proxy.tracer is not first",
        becomes="proxy.tracer != first",
        told="even if `==` says so",
    ),
    Mutant(
        function="proxy._common_tracer",
        misconception="No proxy is in a dataclass.",
        was="fields=True",
        becomes="fields=False",
        told="The proxy may be anywhere",
    ),
    Mutant(
        function="proxy._common_tracer",
        misconception="A call has two operands.",
        was="for proxy in proxies:",
        becomes="for proxy in proxies[1:2]:",
        told="All proxies of a call",
    ),
    Mutant(
        function="proxy.Attribute.__getattr__",
        misconception="Names with two underscores are for Python alone.",
        was="""        if name != "node":""",
        becomes="""        if name.startswith("__"):
            raise AttributeError(name)
        if name != "node":""",
        told="a name with two underscores is like any other",
    ),
    Mutant(
        function="proxy.Proxy.__torch_function__",
        misconception="The proxies that are given by position say enough.",
        was="        tracer = _common_tracer(orig_method, args, kwargs)",
        becomes="""        given = proxies_in(args, fields=True)
        tracer = _common_tracer(orig_method, args, {} if given else kwargs)""",
        told="so give it args and kwargs together",
    ),
    Mutant(
        function="proxy.Proxy.__torch_function__",
        misconception="functions are given by position",
        was="refuse_functions(orig_method, args, kwargs)",
        becomes="refuse_functions(orig_method, args, {})",
        told="give `refuse_functions` the keyword arguments",
    ),
    Mutant(
        function="proxy.TracerBase.create_arg",
        misconception="nothing is in an empty container",
        was="        if kind in CONSTANTS:",
        becomes=(
            "        if kind in CONSTANTS or (kind in (list, dict) and not a):"
        ),
        told="the user may put something into it later",
    ),
    Mutant(
        function="proxy.TracerBase.create_arg",
        misconception="what has a node and a tracer is a proxy",
        was="if kind is Proxy:",
        becomes='if hasattr(a, "node") and hasattr(a, "tracer"):',
        told="not at its attributes",
    ),
    Mutant(
        function="proxy.TracerBase.create_arg",
        misconception="a tensor is a constant",
        was="return self.create_other_arg(a)",
        becomes=(
            "return (\n"
            "            a if isinstance(a, torch.Tensor)\n"
            "            else self.create_other_arg(a)\n"
            "        )"
        ),
        told="and so frozen into the graph",
    ),
)
"""Each is made in the reference, alone, and must be found."""
