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
            ends = a.start, a.stop, a.step
            return slice(*[self.create_arg(end) for end in ends])
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
        function="proxy.TracerBase.create_proxy",
        misconception="Only positional arguments can hold a Proxy.",
        was="self.create_arg(kwargs) if kwargs else {}",
        becomes="kwargs",
        told="A Proxy among the kwargs must become its node, by",
    ),
    Mutant(
        function="proxy.TracerBase.create_proxy",
        misconception="The graph makes nodes, so the graph is asked.",
        was="self.create_node(",
        becomes="self.graph.create_node(",
        told="makes the node without asking `self.create_node`",
    ),
    Mutant(
        function="proxy.TracerBase.create_proxy",
        misconception="A proxy is always a Proxy.",
        was="return self.proxy(node)",
        becomes="return Proxy(node, self)",
        told="yours does not ask `self.proxy`",
    ),
    Mutant(
        function="proxy.TracerBase.create_proxy",
        misconception="A node's name is never asked for.",
        was="lowered, named, name, type_expr)",
        becomes="lowered, named)",
        told="create_proxy was asked for the name `active`",
    ),
    Mutant(
        function="proxy.TracerBase.create_proxy",
        misconception="A new proxy finds a tracer by itself.",
        was="return self.proxy(node)",
        becomes="return Proxy(node)",
        told="must have the tracer that recorded it",
    ),
    Mutant(
        function="proxy.TracerBase.create_proxy",
        misconception="A factory is told of the node, and that is all.",
        was="""            return self.proxy(node)
        return proxy_factory_fn(node)""",
        becomes="""            return self.proxy(node)
        proxy_factory_fn(node)
        return self.proxy(node)""",
        told="`proxy_factory_fn` made a proxy, and another one came back",
    ),
    Mutant(
        function="proxy.TracerBase.create_proxy",
        misconception="Arguments are lowered one by one.",
        was="""lowered: AnyValue = self.create_arg(args)
        named: AnyValue = self.create_arg(kwargs) if kwargs else {}""",
        becomes="""lowered = tuple([self.create_arg(arg) for arg in args])
        named = {key: self.create_arg(kwargs[key]) for key in kwargs}""",
        told="It must be asked once for the whole of it",
    ),
    Mutant(
        function="proxy.Attribute.__call__",
        misconception="The method is called on the Attribute.",
        was="(self.root, *args)",
        becomes="(self, *args)",
        told="without a getattr node for the method in front of it",
    ),
    Mutant(
        function="proxy.Attribute.__call__",
        misconception="Methods of tensors have positional arguments only.",
        was="*args), kwargs",
        becomes="*args), {}",
        told="and the keyword arguments as such",
    ),
    Mutant(
        function="proxy.Attribute.__call__",
        misconception="A method call is a call of the fetched method.",
        was='"call_method", self.attr, (self.root, *args), kwargs',
        becomes='"call_method", "__call__", (self, *args), kwargs',
        told="`x.relu()` must be one call_method node on x",
    ),
    Mutant(
        function="proxy.Attribute.__call__",
        misconception="Making the node is all there is to recording.",
        was="""return self.tracer.create_proxy(
            "call_method", self.attr, (self.root, *args), kwargs
        )""",
        becomes="""lower = self.tracer.create_arg
        return self.tracer.proxy(self.tracer.create_node(
            "call_method", self.attr, lower((self.root, *args)), lower(kwargs)
        ))""",
        told="The method call must be recorded by it, once",
    ),
    Mutant(
        function="proxy.Attribute.__call__",
        misconception="The arguments are the second argument.",
        was="(self.root, *args)",
        becomes="(self.root, args)",
        told="each argument of the call",
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
        function="proxy.Proxy.__bool__",
        misconception="The error is the Proxy's own; no tracer knows better.",
        was="return self.tracer.to_bool(self)",
        becomes='raise TraceError("inputs to control flow: if x + 1 > 0:")',
        told="A tracer may override `to_bool`, and this one did",
    ),
    Mutant(
        function="proxy.Proxy.__bool__",
        misconception="An assert can always be recorded.",
        was="self.tracer.trace_asserts and ",
        becomes="",
        told="This tracer has no `trace_asserts`",
    ),
    Mutant(
        function="proxy.Proxy.__bool__",
        misconception="With trace_asserts every condition holds.",
        was=" and frames.is_asserting(sys._getframe(1))",
        becomes="",
        told="Only an assert is recorded with `trace_asserts`",
    ),
    Mutant(
        function="proxy.Proxy.__bool__",
        misconception="Any object is true if nothing says otherwise.",
        was="return self.tracer.to_bool(self)",
        becomes="return True",
        told="A graph has one path, so a Proxy has no truth value",
    ),
    Mutant(
        function="proxy.Proxy.__bool__",
        misconception="What is recorded needs no answer.",
        was="            return True\n",
        becomes="",
        told="a recorded assert is answered with True",
    ),
    # -- operators -----------------------------------------------------------
    Mutant(
        function="proxy._reflects.method",
        misconception="The proxy is always the first operand.",
        was="args = (other, self)",
        becomes="args = (self, other)",
        told="the other operand comes first, as in the source",
    ),
    Mutant(
        function="proxy._reflects.method",
        misconception="Any operand has a tracer.",
        was="return self.tracer.create_proxy(",
        becomes="return GraphAppendingTracer(self.node.graph).create_proxy(",
        told="is recorded by the tracer of x",
    ),
    Mutant(
        function="proxy._records.method",
        misconception="An operator has operands and nothing else.",
        was="function, args, kwargs)",
        becomes="function, args, {})",
        told="keywords too",
    ),
    Mutant(
        function="proxy._records.method",
        misconception="An operator is a method.",
        was='"call_function", function,',
        becomes='"call_method", function.__name__,',
        told="must be recorded as one call of operator.",
    ),
    Mutant(
        function="proxy._reflects.method",
        misconception="the tracer is that of the left operand",
        was="self.tracer.create",
        becomes="(other if isinstance(other, Proxy) else self).tracer.create",
        told="records by the tracer of `self`, whatever",
    ),
    Mutant(
        function="proxy.TracerBase.create_proxy",
        misconception="a proxy is true",
        was=(
            "        if proxy_factory_fn is None:\n"
            "            return self.proxy(node)\n"
            "        return proxy_factory_fn(node)"
        ),
        becomes=(
            "        return (proxy_factory_fn and "
            "proxy_factory_fn(node)) or self.proxy(node)"
        ),
        told="Ask whether there is a factory",
    ),
    Mutant(
        function="proxy.TracerBase.create_proxy",
        misconception="A factory is true.",
        was="""        if proxy_factory_fn is None:
            return self.proxy(node)
        return proxy_factory_fn(node)""",
        becomes="        return (proxy_factory_fn or self.proxy)(node)",
        told="It must wrap the node all the same",
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
        function="proxy._records.method",
        misconception="Without a second operand it is None.",
        was="tracer: TracerBase = args[0].tracer",
        becomes="""args = tuple(arg for arg in args if arg is not None)
        tracer: TracerBase = args[0].tracer""",
        told="How many there are is said by how many the method is given",
    ),
    Mutant(
        function="proxy.Attribute.__call__",
        misconception="None is no argument.",
        was="(self.root, *args), kwargs",
        becomes="(self.root, *filter(lambda a: a is not None, args)), kwargs",
        told="and without it 1 would be the lower bound",
    ),
    Mutant(
        function="proxy._reflects.method",
        misconception="None is not an operand",
        was="        args = (other, self)",
        becomes=(
            "        if other is None:\n"
            "            return NotImplemented\n"
            "        args = (other, self)"
        ),
        told="although the left operand is not a number",
    ),
    Mutant(
        function="proxy._reflects.method",
        misconception="the other operand is a number",
        was="        args = (other, self)",
        becomes=(
            "        if not isinstance(other, (int, float, Proxy)):\n"
            "            return NotImplemented\n"
            "        args = (other, self)"
        ),
        told="although the left operand is not a number",
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
