"""Stage 04's likely mistakes, and what each must be told."""

from __future__ import annotations

from typing import Final

from stages.manifest import Mutant

MUTANTS: Final = (
    Mutant(
        function="tracing.patching.Patches.patch",
        misconception="Each trace puts its own replacement over what is there.",
        was="""            if name not in known:
                original = members.get(name, MISSING)
                called = original
                if original is MISSING:
                    called = getattr(builtins, name, None)
                known.setdefault(name, (original, make(called)))
""",
        becomes="""            original = members.get(name, MISSING)
            called = original
            if original is MISSING:
                called = getattr(builtins, name, None)
            known[name] = original, make(called)
""",
        told="the place has a replacement of the replacement",
    ),
    Mutant(
        function="tracing.patching.Patches.patch",
        misconception="The place of a builtin held the builtin.",
        was="                    called = getattr(",
        becomes="                    original = called = getattr(",
        told="the builtin is only what the replacement is made from",
    ),
    Mutant(
        function="tracing.patching.Patches.patch",
        misconception="The builtin is what an empty place holds.",
        was="""                called = original
                if original is MISSING:
                    called = getattr(builtins, name, None)
                known.setdefault(name, (original, make(called)))
            original, replacement = known[name]
            if members.get(name, MISSING) is original:""",
        becomes="""                if original is MISSING:
                    original = getattr(builtins, name)
                known.setdefault(name, (original, make(original)))
            original, replacement = known[name]
            if members.get(name, MISSING) in (original, MISSING):""",
        told="The builtin was remembered as the original of an empty place",
    ),
    Mutant(
        function="tracing.patching.Patches.patch",
        misconception="The replacement is made from what the place holds.",
        was="make(called)",
        becomes="make(original)",
        told="the replacement is made from the builtin",
    ),
    Mutant(
        function="tracing.patching.Patches.patch",
        misconception="A place that is known has its replacement.",
        was="""            original, replacement = known[name]
            if members.get(name, MISSING) is original:
                put(holder, name, replacement)""",
        becomes="                put(holder, name, known[name][1])",
        told="a place that is known but has its original again",
    ),
    Mutant(
        function="tracing.patching.Patches.patch",
        misconception="A name tells a place from others.",
        was="setdefault(id(holder), (holder, {}))",
        becomes="setdefault(0, (holder, {}))",
        told="The same name in another module",
    ),
    Mutant(
        function="tracing.patching.Patches.patch",
        misconception="What is not the replacement has to become it.",
        was="if members.get(name, MISSING) is original:",
        becomes="if members.get(name, MISSING) is not replacement:",
        told="A second patch must leave it",
    ),
    Mutant(
        function="tracing.patching.Patches.patch",
        misconception="An equal function is the original.",
        was="if members.get(name, MISSING) is original:",
        becomes="if members.get(name, MISSING) == original:",
        told="Find out by `is` whether the place has its original",
    ),
    Mutant(
        function="tracing.patching.Patches.patch",
        misconception="Between two lines of mine nothing happens.",
        was="known.setdefault(name, (original, make(called)))",
        becomes="known[name] = original, make(called)",
        told="another one patched the place",
    ),
    Mutant(
        function="tracing.patching.Patches._undo",
        misconception="Nobody else writes to a place while it is patched.",
        was="if members.get(name, MISSING) is replacement:",
        becomes="if True:",
        told="Other code put a function there meanwhile",
    ),
    Mutant(
        function="tracing.patching.Patches._undo",
        misconception="A patch can be kept for the next trace.",
        was="self._patches.pop(key, None)",
        becomes="pass",
        told="an undone patch has to be forgotten",
    ),
    Mutant(
        function="tracing.patching.Patches._undo",
        misconception="An empty place needs nothing to be put back.",
        was="if members.get(name, MISSING) is replacement:",
        becomes=(
            "if members.get(name, MISSING) is replacement "
            "and original is not MISSING:"
        ),
        told="The module had no global `len`, and must have none again",
    ),
    Mutant(
        function="tracing.patching.Patches._undo",
        misconception="Only what was put back is done with.",
        was="            self._patches.pop(key, None)",
        becomes="                    self._patches.pop(key, None)",
        told="Forget a patch whether or not something was put back",
    ),
    Mutant(
        function="tracing.patching.Patches._undo",
        misconception="An equal function is the replacement.",
        was="if members.get(name, MISSING) is replacement:",
        becomes="if members.get(name, MISSING) == replacement:",
        told="Find out by `is` whether the place has our replacement",
    ),
    Mutant(
        function="tracing.patching.Patches._undo",
        misconception="When all is undone, all patches can be forgotten.",
        was="            self._patches.pop(key, None)",
        becomes="        self._patches.clear()",
        told="Forget each holder when its own places are right",
    ),
    Mutant(
        function="tracing.patching.Patches._undo",
        misconception="Between two lines of mine nothing is raised.",
        was="""            members = names_of(holder)
            for name""",
        becomes="""            self._patches.pop(key, None)
            members = names_of(holder)
            for name""",
        told="Forget a patch only after its place is right",
    ),
    Mutant(
        function="tracing.tracer.Tracer.call_module",
        misconception="A module is run by its forward.",
        was="return forward(*args, **kwargs)",
        becomes="return m.forward(*args, **kwargs)",
        told="is run by the `forward` handed in",
    ),
    Mutant(
        function="tracing.tracer.Tracer.call_module",
        misconception="The line between leaves and others is always the same.",
        was="self.is_leaf_module(m, path)",
        becomes="Tracer.is_leaf_module(self, m, path)",
        told="A tracer overrides `is_leaf_module` to draw the line elsewhere",
    ),
    Mutant(
        function="tracing.tracer.Tracer.call_module",
        misconception="The next call will set the scope anyway.",
        was="            scope.module_path, scope.module_type = before",
        becomes="            pass",
        told="it must say the outer module's again",
    ),
    Mutant(
        function="tracing.tracer.Tracer.call_module",
        misconception="A call that has ended may stay on the stack.",
        was="            self.module_stack.pop(call, None)",
        becomes="            pass",
        told="one is still open, or one is missing",
    ),
    Mutant(
        function="tracing.tracer.Tracer.call_module",
        misconception="The path tells one call from another.",
        was='f"{path}@{calls}" if calls else path',
        becomes="path",
        told="so the path alone cannot be the key",
    ),
    Mutant(
        function="tracing.tracer.Tracer.call_module",
        misconception="A call ends by returning.",
        was="""                return forward(*args, **kwargs)
            return self._call_leaf(path, forward, args, kwargs)
        finally:
            self.module_stack.pop(call, None)
            scope.module_path, scope.module_type = before""",
        becomes="""                result = forward(*args, **kwargs)
            else:
                result = self._call_leaf(path, forward, args, kwargs)
            self.module_stack.pop(call, None)
            scope.module_path, scope.module_type = before
            return result
        finally:
            pass""",
        told="The call raised, and `self.scope` still says that it is open",
    ),
    Mutant(
        function="tracing.tracer.Tracer.call_module",
        misconception="The target is the attribute's name.",
        was="self._call_leaf(path, forward, args, kwargs)",
        becomes=(
            'self.create_proxy("call_module", path.split(".")[-1], args, '
            "kwargs)"
        ),
        told="whose target is the path of the module from the root",
    ),
    Mutant(
        function="tracing.tracer.Tracer.call_module",
        misconception="A key must be free, and need not say which call it is.",
        was='call = f"{path}@{calls}" if calls else path',
        becomes=(
            'call = f"{path}@{calls}" if path in self.module_stack else path'
        ),
        told="path@1 for the second call of that path in the trace",
    ),
    Mutant(
        function="tracing.tracer.Tracer.call_module",
        misconception="Each call has a scope of its own.",
        was="""        before = scope.module_path, scope.module_type
        try:
            scope.module_path, scope.module_type = here""",
        becomes="""        before = scope.module_path, scope.module_type
        try:
            self.scope = scope = type(scope)(*here)""",
        told="do not put another Scope in its place",
    ),
    Mutant(
        function="tracing.tracer.Tracer.call_module",
        misconception="The old scope comes back, so it may be another.",
        was="""        before = scope.module_path, scope.module_type
        try:
            scope.module_path, scope.module_type = here
            self.module_stack[call] = here
            if not self.is_leaf_module(m, path):
                return forward(*args, **kwargs)
            return self._call_leaf(path, forward, args, kwargs)
        finally:
            self.module_stack.pop(call, None)
            scope.module_path, scope.module_type = before""",
        becomes="""        try:
            self.scope = type(scope)(*here)
            self.module_stack[call] = here
            if not self.is_leaf_module(m, path):
                return forward(*args, **kwargs)
            return self._call_leaf(path, forward, args, kwargs)
        finally:
            self.module_stack.pop(call, None)
            self.scope = scope""",
        told="do not put another Scope in its place",
    ),
    Mutant(
        function="tracing.tracer.Tracer.getattr",
        misconception="The attribute's name is the path.",
        was="path = self._tensor_path(attr_val)",
        becomes="path = attr",
        told="The target of get_attr is the whole path",
    ),
    Mutant(
        function="tracing.tracer.Tracer.getattr",
        misconception="Each read is a fetch of its own.",
        was="if path not in parameter_proxy_cache:",
        becomes="if True:",
        told="A parameter read twice is fetched once",
    ),
    Mutant(
        function="tracing.tracer.Tracer.getattr",
        misconception="The cache goes by the name of the attribute.",
        was="""        if path not in parameter_proxy_cache:
            parameter_proxy_cache[path] = self._state_proxy(path, attr_val)
        return parameter_proxy_cache[path]""",
        becomes="""        if attr not in parameter_proxy_cache:
            parameter_proxy_cache[attr] = self._state_proxy(path, attr_val)
        return parameter_proxy_cache[attr]""",
        told="Both layers have an attribute called weight",
    ),
    Mutant(
        function="tracing.tracer.Tracer.getattr",
        misconception="A parameter from elsewhere is an error when read.",
        was="""        if path is None:
            return attr_val""",
        becomes="""        if path is None:
            raise NameError("parameter is not a member of this module")""",
        told="A parameter that the root does not have is read as it is",
    ),
    Mutant(
        function="tracing.tracer.Tracer.getattr",
        misconception="Buffers are fetched as parameters are.",
        was="if not wanted and not self.proxy_buffer_attributes:",
        becomes="if False:",
        told="`offset` is not a parameter: it is read as it is",
    ),
    Mutant(
        function="tracing.tracer.Tracer.getattr",
        misconception="Only parameters are ever fetched.",
        was="if not wanted and not self.proxy_buffer_attributes:",
        becomes="if not wanted:",
        told="reading a buffer gives a Proxy of a get_attr node",
    ),
    Mutant(
        function="tracing.tracer.Tracer.getattr",
        misconception="All proxies are alike.",
        was="self._state_proxy(path, attr_val)",
        becomes='self.create_proxy("get_attr", path, (), {})',
        told="`_state_proxy` makes the right one",
    ),
    Mutant(
        function="tracing.tracer.Tracer._state_node",
        misconception="A path that is empty is no path.",
        was="return None if path is None else self._fetch(path, a)",
        becomes="return self._fetch(path, a) if path else None",
        told='has the path "", which is a path',
    ),
    Mutant(
        function="tracing.tracer.Tracer._state_node",
        misconception="A parameter from elsewhere is a constant.",
        was="if path is None and isinstance(a, nn.Parameter):",
        becomes="if False:",
        told="would become a constant that is never trained",
    ),
    Mutant(
        function="tracing.tracer.Tracer._state_node",
        misconception="What is put among the arguments is a Proxy.",
        was="self._fetch(path, a)",
        becomes='self.create_proxy("get_attr", path, (), {})',
        told="A parameter as an argument becomes a Node",
    ),
    Mutant(
        function="tracing.tracer.Tracer._state_node",
        misconception="A buffer is a tensor like any other.",
        was="if isinstance(a, torch.Tensor):",
        becomes="if isinstance(a, nn.Parameter):",
        told="do not store it as a constant a second time",
    ),
    Mutant(
        function="tracing.tracer.Tracer._state_node",
        misconception="Only the children of the root can be arguments.",
        was="self.root.named_modules()",
        becomes="self.root.named_children()",
        told="A module of the root, a nested one too",
    ),
    Mutant(
        function="tracing.tracer.Tracer._state_node",
        misconception="A module that the root does not have is an error.",
        was="path = path_among(a, self.root.named_modules())",
        becomes="path = self.path_of_module(a)",
        told="the answer is None, and create_arg goes on",
    ),
    # -- threads -------------------------------------------------------------
    Mutant(
        function="tracing.patching.Patches._begin",
        misconception="Nobody undoes while somebody begins.",
        was="""        while _threads_of(self._undoing) - {me}:
            time.sleep(1e-4)
""",
        becomes="",
        told="has to wait while another thread is among `_undoing`",
    ),
    Mutant(
        function="tracing.patching.Patches._begin",
        misconception="Wait for all that undo.",
        was="_threads_of(self._undoing) - {me}",
        becomes="_threads_of(self._undoing)",
        told="Wait for other, living threads only",
    ),
    Mutant(
        function="tracing.patching.Patches._begin",
        misconception="A thread that undoes will end.",
        was="_threads_of(self._undoing) - {me}",
        becomes="set(self._undoing.values()) - {me}",
        told="Wait for other, living threads only",
    ),
    Mutant(
        function="tracing.patching.Patches._end",
        misconception="The last line of a trace undoes.",
        was="            if not _threads_of(self._open):\n    ",
        becomes="",
        told="undo only when no trace is open",
    ),
    Mutant(
        function="tracing.patching.Patches._end",
        misconception="First the trace ends, then the undoing begins.",
        was="""        self._undoing[trace] = threading.get_ident()
        try:
            self._open.pop(trace, None)
""",
        becomes="""        self._open.pop(trace, None)
        self._undoing[trace] = threading.get_ident()
        try:
""",
        told="withdrawn from `_open` before it was noted in `_undoing`",
    ),
    Mutant(
        function="tracing.patching.Patches._end",
        misconception="After a trace there is no trace.",
        was="self._current.set(before)",
        becomes="self._current.set(None)",
        told="the outer one runs again",
    ),
    Mutant(
        function="tracing.patching.Patches._end",
        misconception="Who looks without itself need not withdraw first.",
        was="""            self._open.pop(trace, None)
            if not _threads_of(self._open):
                self._undo()
        finally:
""",
        becomes="""            others = dict(self._open)
            others.pop(trace, None)
            if not _threads_of(others):
                self._undo()
        finally:
            self._open.pop(trace, None)
""",
        told="both left the undoing to the other",
    ),
    Mutant(
        function="tracing.patching.Patches._end",
        misconception="Two must not undo at once.",
        was="if not _threads_of(self._open):",
        becomes="if not _threads_of(self._open) and len(self._undoing) == 1:",
        told="both left the undoing to the other",
    ),
    Mutant(
        function="tracing.patching.Patches.patch",
        misconception="Nobody else comes to this module now.",
        was="_, known = self._patches.setdefault(id(holder), (holder, {}))",
        becomes="""if id(holder) not in self._patches:
            self._patches[id(holder)] = (holder, {})
        known = self._patches[id(holder)][1]""",
        told="`setdefault` is for the module, too",
    ),
    Mutant(
        function="tracing.patching.Patches.patch",
        misconception="An empty place has no original.",
        was="if members.get(name, MISSING) is original:",
        becomes="if original is not MISSING and members.get(name) is original:",
        told="is empty again",
    ),
    Mutant(
        function="tracing.tracer.Tracer.getattr",
        misconception="A parameter is what is trained.",
        was="wanted = isinstance(attr_val, nn.Parameter)",
        becomes="wanted = attr_val.requires_grad",
        told="A parameter whose requires_grad is False is a parameter",
    ),
    Mutant(
        function="tracing.tracer.Tracer.call_module",
        misconception="A call is known by its key.",
        was="scope, here = self.scope, (path, type(m))",
        becomes="scope, here = self.scope, (call, type(m))",
        told="a pair of the path, without @1, and the class",
    ),
    Mutant(
        function="tracing.tracer.Tracer.call_module",
        misconception="The root is called once.",
        was="self.num_calls[path] = calls + 1",
        becomes="self.num_calls[path] = calls + (path != '')",
        told="and that of the root neither",
    ),
    Mutant(
        function="tracing.tracer.Tracer.call_module",
        misconception="a call is named by its key",
        was="_call_leaf(path, forward",
        becomes="_call_leaf(call, forward",
        told="Only the key in `self.module_stack` has the number",
    ),
    Mutant(
        function="tracing.tracer.Tracer.call_module",
        misconception="a leaf has no scope",
        was=(
            "        try:\n"
            "            scope.module_path, scope.module_type = here\n"
            "            self.module_stack[call] = here\n"
            "            if not self.is_leaf_module(m, path):\n"
        ),
        becomes=(
            "        leaf = self.is_leaf_module(m, path)\n"
            "        try:\n"
            "            scope.module_path, scope.module_type = here\n"
            "            self.module_stack[call] = here\n"
            "            if not leaf:\n"
        ),
        told="Enter the scope, then ask",
    ),
    Mutant(
        function="tracing.patching.Patches.patch",
        misconception="an emptied place is patched again",
        was="            if members.get(name, MISSING) is original:",
        becomes="            if members.get(name, original) is original:",
        told="compare what it holds with the original",
    ),
    Mutant(
        function="tracing.tracer.Tracer.getattr",
        misconception="the path is that of the module that reads",
        was="        path = self._tensor_path(attr_val)",
        becomes=(
            "        path = self._tensor_path(attr_val)\n"
            "        if path is not None and self.scope.module_path:\n"
            '            path = f"{self.scope.module_path}.{attr}"'
        ),
        told="ask `_tensor_path`",
    ),
    Mutant(
        function="tracing.patching.Patches.patch",
        misconception="The names can be gone through twice.",
        was="""        for name in names:
            if name not in known:""",
        becomes="""        if all(name in known for name in names):
            names = known
        for name in names:
            if name not in known:""",
        told="which gives each name once",
    ),
    Mutant(
        function="tracing.patching.Patches._undo",
        misconception="A place that was patched holds something.",
        was="if members.get(name, MISSING) is replacement:",
        becomes="if members[name] is replacement:",
        told="an empty place holds MISSING",
    ),
    Mutant(
        function="tracing.tracer.Tracer.getattr",
        misconception="A parameter is of the class Parameter.",
        was="isinstance(attr_val, nn.Parameter)",
        becomes="type(attr_val) is nn.Parameter",
        told="`scale` is of a class derived from nn.Parameter",
    ),
    Mutant(
        function="tracing.tracer.Tracer.getattr",
        misconception="A tensor is of the class Tensor, or a parameter.",
        was="if not isinstance(attr_val, torch.Tensor):",
        becomes=(
            "if type(attr_val) is not torch.Tensor and not isinstance(\n"
            "            attr_val, nn.Parameter\n"
            "        ):"
        ),
        told="The buffer is of a class derived from torch.Tensor",
    ),
    Mutant(
        function="tracing.tracer.Tracer._state_node",
        misconception="A parameter is of the class Parameter.",
        was="isinstance(a, nn.Parameter)",
        becomes="type(a) is nn.Parameter",
        told="The parameter is of a class derived from nn.Parameter",
    ),
    Mutant(
        function="tracing.tracer.Tracer.call_module",
        misconception="Whatever is raised is an Exception.",
        was="""            if not self.is_leaf_module(m, path):
                return forward(*args, **kwargs)
            return self._call_leaf(path, forward, args, kwargs)
        finally:
            self.module_stack.pop(call, None)
            scope.module_path, scope.module_type = before
""",
        becomes="""            if not self.is_leaf_module(m, path):
                result = forward(*args, **kwargs)
            else:
                result = self._call_leaf(path, forward, args, kwargs)
        except Exception:
            self.module_stack.pop(call, None)
            scope.module_path, scope.module_type = before
            raise
        self.module_stack.pop(call, None)
        scope.module_path, scope.module_type = before
        return result
""",
        told="put scope and module_stack back in a `finally`",
    ),
    Mutant(
        function="tracing.patching.Patches.patch",
        misconception="The patches can be remembered when all are made.",
        was="""        for name in names:
            if name not in known:
                original = members.get(name, MISSING)
                called = original
                if original is MISSING:
                    called = getattr(builtins, name, None)
                known.setdefault(name, (original, make(called)))
            original, replacement = known[name]
            if members.get(name, MISSING) is original:
                put(holder, name, replacement)
""",
        becomes="""        new = {**known}
        for name in names:
            if name not in new:
                original = members.get(name, MISSING)
                called = original
                if original is MISSING:
                    called = getattr(builtins, name, None)
                new[name] = original, make(called)
            original, replacement = new[name]
            if members.get(name, MISSING) is original:
                put(holder, name, replacement)
        known.update(new)
""",
        told="remember each before you put it there",
    ),
    Mutant(
        function="tracing.tracer.Tracer.call_module",
        misconception="Asking for a leaf raises nothing.",
        was="""        try:
            scope.module_path, scope.module_type = here
            self.module_stack[call] = here
            if not self.is_leaf_module(m, path):
""",
        becomes="""        scope.module_path, scope.module_type = here
        self.module_stack[call] = here
        is_leaf = self.is_leaf_module(m, path)
        try:
            if not is_leaf:
""",
        told="ask it inside of the `try`",
    ),
    Mutant(
        function="tracing.patching.Patches.patch",
        misconception="a place that holds None is empty",
        was="if original is MISSING:",
        becomes="if original is MISSING or original is None:",
        told="and not if it is false",
    ),
    Mutant(
        function="tracing.patching.Patches.patch",
        misconception="a place that holds what is false is empty",
        was="if original is MISSING:",
        becomes="if original is MISSING or not original:",
        told="and not if it is false",
    ),
    Mutant(
        function="tracing.tracer.Tracer.call_module",
        misconception="each call is a module of its own",
        was="self.is_leaf_module(m, path)",
        becomes="self.is_leaf_module(m, call)",
        told="is the name of the call",
    ),
)
"""Each is made in the reference, alone, and must be found."""
