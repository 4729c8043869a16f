"""Stage 06: what people get wrong about running a graph node by node."""

from __future__ import annotations

from typing import Final

from stages.manifest import Mutant

MUTANTS: Final = (
    # -- fetch_attr ----------------------------------------------------------
    Mutant(
        function="interpreter.Interpreter.fetch_attr",
        misconception="A target is the name of one attribute.",
        was="return attrgetter(target)(self.module)",
        becomes="return getattr(self.module, target)",
        told="is a path and not one name",
    ),
    Mutant(
        function="interpreter.Interpreter.fetch_attr",
        misconception="The whole path is what is missing.",
        was='path = f"{prefix}.{name}" if prefix else name',
        becomes="path = target",
        told="the path up to the first attribute that is missing",
    ),
    Mutant(
        function="interpreter.Interpreter.fetch_attr",
        misconception="The last name alone says what is missing.",
        was='path = f"{prefix}.{name}" if prefix else name',
        becomes="path = name",
        told="the path up to the first attribute that is missing",
    ),
    Mutant(
        function="interpreter.Interpreter.fetch_attr",
        misconception="An attribute that is None is not there.",
        was="            return attrgetter(target)(self.module)",
        becomes="            found = attrgetter(target)(self.module)\n"
        "            if found is None:\n"
        "                raise RuntimeError(target)\n"
        "            return found",
        told="An attribute that is None is not missing",
    ),
    Mutant(
        function="interpreter.Interpreter.fetch_attr",
        misconception="Python's AttributeError says it as well.",
        was="raise RuntimeError(message) from None",
        becomes="raise",
        told="the path up to the first attribute that is missing",
    ),
    # -- map_nodes_to_values -------------------------------------------------
    Mutant(
        function="interpreter.Interpreter.map_nodes_to_values",
        misconception="Nodes are in args directly.",
        was="return map_arg(args, load)",
        becomes="if isinstance(args, tuple):\n"
        "            return tuple(\n"
        "                load(a) if isinstance(a, Node) else a for a in args\n"
        "            )\n"
        "        return load(args) if isinstance(args, Node) else args",
        told="A node inside of containers is a node too",
    ),
    Mutant(
        function="interpreter.Interpreter.map_nodes_to_values",
        misconception="A value that is false is no value.",
        was="if arg not in self.env:",
        becomes="if not self.env.get(arg):",
        told="Ask whether the node is in `self.env`",
    ),
    Mutant(
        function="interpreter.Interpreter.map_nodes_to_values",
        misconception="A KeyError says enough.",
        was="if arg not in self.env:",
        becomes="if self.env is None:",
        told="A KeyError would name one",
    ),
    Mutant(
        function="interpreter.Interpreter._call",
        misconception="node.args are the arguments to call with.",
        was="args, kwargs = self.fetch_args_kwargs_from_env(n)",
        becomes="args, kwargs = n.args, n.kwargs",
        told="the *values* of the arguments",
    ),
    Mutant(
        function="interpreter.Interpreter._call",
        misconception="Nobody overrides how values are fetched.",
        was="self.fetch_args_kwargs_from_env(n)",
        becomes="Interpreter.fetch_args_kwargs_from_env(self, n)",
        told="A subclass has its own way to fetch arguments",
    ),
    Mutant(
        function="interpreter.Interpreter._call",
        misconception="The methods are Interpreter's, not the subclass's.",
        was="getattr(self, n._op)(n._target",
        becomes="getattr(Interpreter, n.op)(self, n.target",
        told="which a subclass may have overridden",
    ),
    Mutant(
        function="interpreter.Interpreter._call",
        misconception="A method found on the class is ready to call.",
        was="getattr(self, n._op)(n._target",
        becomes="getattr(Interpreter, n._op)(n._target",
        told="the class gives a plain function",
    ),
    # -- _run_nodes ----------------------------------------------------------
    Mutant(
        function="interpreter.Interpreter._run_nodes",
        misconception="a local variable holds nothing alive",
        was="                    env[node] = run(node)\n",
        becomes=(
            "                    value = run(node)\n"
            "                    env[node] = value\n"
        ),
        told="or in a local variable",
    ),
    Mutant(
        function="interpreter.Interpreter._run_nodes",
        misconception="Python frees what is not used any more.",
        was="if collect:",
        becomes="if not collect:",
        told="env must hold the values that are still needed and no others",
    ),
    Mutant(
        function="interpreter.Interpreter._run_nodes",
        misconception="Values are always dropped.",
        was="if collect:",
        becomes="if env is not None:",
        told="all values stay in env",
    ),
    Mutant(
        function="interpreter.Interpreter._run_nodes",
        misconception="Each value has a last reader that drops it.",
        was='if not node.users and node._op != "output":',
        becomes="if node.users is None:",
        told="its own value if nobody uses it",
    ),
    Mutant(
        function="interpreter.Interpreter._run_nodes",
        misconception="The last node too runs for others.",
        was='if node._op == "output":',
        becomes='if node.op == "nothing":',
        told="The value of the output is what is returned",
    ),
    Mutant(
        function="interpreter.Interpreter._run_nodes",
        misconception="Every node runs.",
        was="if node not in env:",
        becomes="if node is not None:",
        told="a node that has a value in env is not run",
    ),
    Mutant(
        function="interpreter.Interpreter._run_nodes",
        misconception="Nobody overrides run_node.",
        was="self._step()",
        becomes="self._call",
        told="which a subclass may have overridden",
    ),
    Mutant(
        function="interpreter.Interpreter._run_nodes",
        misconception="An error speaks for itself.",
        was="self._explain(raised, node)",
        becomes="assert raised is not None",
        told="also says which node it was",
    ),
    Mutant(
        function="interpreter.Interpreter._run_nodes",
        misconception="A loop that copies env changes nothing.",
        was="env, run, collect = self.env, self._step(), "
        "self.garbage_collect_values",
        becomes="self.env = env = dict(self.env)\n"
        "        run, collect = self._step(), self.garbage_collect_values",
        told="the values go into that dict",
    ),
    Mutant(
        function="interpreter.Interpreter._run_nodes",
        misconception="Whatever is raised, the node is to blame.",
        was="except Exception as raised",
        becomes="except BaseException as raised",
        told="only an Exception is explained",
    ),
    Mutant(
        function="interpreter.Interpreter._run_nodes",
        misconception="A value that was given is never the result.",
        was="""            if node._op == "output":
                return env[node]
""",
        becomes="""                if node._op == "output":
                    return env[node]
""",
        told="like one that was made just now",
    ),
    Mutant(
        function="interpreter.Interpreter._run_nodes",
        misconception="None in env means that there is no value.",
        was="if node not in env:",
        becomes="if env.get(node) is None:",
        told="None, which is a value like any other",
    ),
    Mutant(
        function="interpreter.Interpreter._run_nodes",
        misconception="A value is dropped when it has been used.",
        was="if last.get(used) is node:\n"
        "                            del env[used]",
        becomes="env.pop(used, None)",
        told="Drop it when its *last* user has run, not its first",
    ),
    Mutant(
        function="interpreter.Interpreter._run_nodes",
        misconception="`users` is in the order of the program.",
        was="if last.get(used) is node:",
        becomes="if [*used.users][-1] is node:",
        told="not the last user of relu to run",
    ),
    Mutant(
        function="interpreter.Interpreter._run_nodes",
        misconception="What a node uses stands in its args.",
        was="for used in node._inputs:",
        becomes="for used in {a for a in node.args if isinstance(a, Node)}:",
        told="also if it is inside a list or in kwargs",
    ),
    Mutant(
        function="interpreter.Interpreter._run_nodes",
        misconception="A graph stays as it is between two runs.",
        was="                    for used in node._inputs:\n"
        "                        if last.get(used) is node:\n"
        "                            del env[used]\n",
        becomes="                    frees = self.user_to_last_uses\n"
        "                    for used in frees.get(node, ()):\n"
        "                        del env[used]\n",
        told="edited after the first run: ask in each run",
    ),
    Mutant(
        function="interpreter.Interpreter._run_nodes",
        misconception="To ask who is the last user costs next to nothing.",
        was="if last.get(used) is node:",
        becomes="if last_users(self.graph.nodes).get(used) is node:",
        told="so ask it once, before the loop",
    ),
    # -- ShapeProp.run_node --------------------------------------------------
    Mutant(
        function="passes.shape_prop.ShapeProp.run_node",
        misconception="A pass that describes returns descriptions.",
        was="return result",
        becomes="return described",
        told="not its description",
    ),
    Mutant(
        function="passes.shape_prop.ShapeProp.run_node",
        misconception="A value is a tensor, or there is nothing to say.",
        was="described = map_aggregate(result, describe)",
        becomes="described = describe(result)",
        told="the description is a tuple too",
    ),
    Mutant(
        function="passes.shape_prop.ShapeProp.run_node",
        misconception="Whatever is raised, the node is to blame.",
        was="except Exception as raised",
        becomes="except BaseException as raised",
        told="Ctrl-C while a node runs became a RuntimeError",
    ),
    Mutant(
        function="passes.shape_prop.ShapeProp.run_node",
        misconception="Each node has a tensor_meta.",
        was="if tensors:",
        becomes="if described is not None:",
        told="there is nothing to write",
    ),
    Mutant(
        function="passes.shape_prop.ShapeProp.run_node",
        misconception="Only tensors have a type.",
        was='        n.meta["type"] = type(result)',
        becomes="        if tensors:\n"
        '            n.meta["type"] = type(result)',
        told="is the type of the value, whatever it is",
    ),
    Mutant(
        function="passes.shape_prop.ShapeProp.run_node",
        misconception="To run a node is to run it with real data.",
        was="self._run_in_mode(n)",
        becomes="super().run_node(n)",
        told="runs a node so that the mode is in force",
    ),
    Mutant(
        function="passes.shape_prop.ShapeProp.run_node",
        misconception="The error of the operation says enough.",
        was="raise RuntimeError(\n"
        '                f"ShapeProp error for: node={n.format_node()} '
        'with "\n'
        '                f"meta={n.meta}"\n'
        "            ) from raised",
        becomes="raise",
        told="says that ShapeProp failed",
    ),
    Mutant(
        function="passes.shape_prop.ShapeProp.run_node",
        misconception="The type of a tensor is torch.Tensor.",
        was="if not isinstance(value, torch.Tensor):",
        becomes="if type(value) is not torch.Tensor:",
        told="A Parameter is a tensor, too",
    ),
    Mutant(
        function="interpreter.Transformer.transform",
        misconception="The result is one proxy.",
        was="self.tracer.create_arg(result)",
        becomes='getattr(result, "node", None)',
        told="may be a structure of proxies",
    ),
    Mutant(
        function="interpreter.Transformer.transform",
        misconception="A transformation works in place.",
        was="GraphModule(self.module, self.new_graph)",
        becomes="GraphModule(self.module, self.graph)",
        told="the old one stays the old module's",
    ),
    Mutant(
        function="interpreter.Transformer.transform",
        misconception="New nodes are new and have no history.",
        was="with fx_traceback.preserve_node_meta():",
        becomes="if self.graph is not None:",
        told="should inherit its notes",
    ),
    Mutant(
        function="interpreter.Transformer.transform",
        misconception="The output has a type and no notes.",
        was='self._recorder.create_node("output", "output", (value,), {})',
        becomes="self.new_graph.output(value, self.graph.output_node().type)",
        told="must not be lost",
    ),
    Mutant(
        function="interpreter.Transformer.transform",
        misconception="The return annotation comes by itself.",
        was='self._recorder.create_node("output", "output", (value,), {})',
        becomes="self.new_graph.output(value).meta.update("
        "self.graph.output_node().meta)",
        told="The return annotation is the type of the output node",
    ),
    Mutant(
        function="interpreter.Transformer.transform",
        misconception="A run is a run: inputs are processed as ever.",
        was="enable_io_processing=False",
        becomes="enable_io_processing=True",
        told="enable_io_processing=False",
    ),
    Mutant(
        function="interpreter.Transformer.transform",
        misconception="To take notes over is to take the dict over.",
        was='self._recorder.create_node("output", "output", (value,), {})',
        becomes="self._recorder.create_node("
        "'output', 'output', (value,), {}).meta = "
        "self.graph.output_node().meta",
        told="both have the same dict",
    ),
    Mutant(
        function="interpreter.Transformer.transform",
        misconception="It does not matter who makes the output.",
        was='self._recorder.create_node("output", "output", (value,), {})',
        becomes="""old = self.graph.output_node()
            new = self.new_graph.output(value, old.type)
            new.meta.update(old.meta)""",
        told="it is not among the recorder's `repeated`",
    ),
    Mutant(
        function="interpreter.Transformer.transform",
        misconception="Every graph has an output.",
        was="if self.graph.is_finished:",
        becomes="if self.graph is not None:",
        told="Ask `is_finished` before",
    ),
    Mutant(
        function="interpreter.Transformer.transform",
        misconception="The node that runs last is the output.",
        was="self._recorder.running = self.graph.output_node()",
        becomes="pass",
        told="the output is `running` before",
    ),
    Mutant(
        function="interpreter.Transformer.transform",
        misconception="What was noted of a value stays true.",
        was="if not self._keeps_values:",
        becomes="if False:",
        told="need not be true",
    ),
    Mutant(
        function="interpreter.Transformer.transform",
        misconception="No class knows whether it changes values.",
        was="if not self._keeps_values:",
        becomes="if True:",
        told="says that it keeps the values",
    ),
    Mutant(
        function="interpreter.Transformer.transform",
        misconception="a result of None is no result",
        was="if self.graph.is_finished:",
        becomes="if result is not None:",
        told="Ask `self.graph.is_finished`, not whether",
    ),
    Mutant(
        function="passes.shape_prop.ShapeProp.run_node",
        misconception="operators raise RuntimeErrors",
        was="except Exception as",
        becomes="except RuntimeError as",
        told="nobody hears which node it was",
    ),
    Mutant(
        function="interpreter.Interpreter._run_nodes",
        misconception="the nodes of a graph that runs stay the same",
        was="        for node in self.graph.nodes:",
        becomes="        for node in [*self.graph.nodes]:",
        told="run_node put neg in the place of add",
    ),
    Mutant(
        function="passes.shape_prop.ShapeProp.run_node",
        misconception="what is known of a value is all that its meta has",
        was="""        if tensors:
            n.meta["tensor_meta"] = described
""",
        becomes="""        n.meta = {}
        if tensors:
            n.meta["tensor_meta"] = described
""",
        told="leave all others as they are",
    ),
    Mutant(
        function="passes.shape_prop.ShapeProp.run_node",
        misconception="a dict is changed by making another one",
        was="""        n.meta["type"] = type(result)
""",
        becomes="""        n.meta = {**n.meta, "type": type(result)}
""",
        told="set the two entries in the dict that the node has",
    ),
    Mutant(
        function="interpreter.Interpreter._call",
        misconception="a method is found on the class",
        was="return getattr(self, n._op)(n._target, args, kwargs)",
        becomes=(
            "return getattr(type(self), n._op)(self, n._target, args, kwargs)"
        ),
        told="Look the method up on the object",
    ),
    Mutant(
        function="passes.shape_prop.ShapeProp.run_node",
        misconception="None is nothing to describe",
        was="        tensors: list[torch.Tensor] = []",
        becomes="""        if result is None:
            return None
        tensors: list[torch.Tensor] = []""",
        told="The value is None, which has a type, too",
    ),
    Mutant(
        function="interpreter.Interpreter.map_nodes_to_values",
        misconception="nodes may be left after one mapping",
        was="        return map_arg(args, load)",
        becomes="        return map_arg(map_arg(args, load), load)",
        told="Only the arguments are looked through",
    ),
    Mutant(
        function="interpreter.Interpreter.map_nodes_to_values",
        misconception="a named tuple is a tuple",
        was="return map_arg(args, load)",
        becomes=(
            "if isinstance(args, tuple):\n"
            "            return tuple(self.map_nodes_to_values(a, n) "
            "for a in args)\n"
            "        return map_arg(args, load)"
        ),
        told="the function may ask for its fields",
    ),
    Mutant(
        function="interpreter.Interpreter._call",
        misconception="parameters have the same names everywhere",
        was="(n._target, args, kwargs)",
        becomes="(n._target, args=args, kwargs=kwargs)",
        told="give target, args and kwargs by position",
    ),
    Mutant(
        function="passes.shape_prop.ShapeProp.run_node",
        misconception="a shape is noted once",
        was='            n.meta["tensor_meta"] = described',
        becomes='            n.meta.setdefault("tensor_meta", described)',
        told="what was noted before is replaced",
    ),
    Mutant(
        function="passes.shape_prop.ShapeProp.run_node",
        misconception="a type is noted once",
        was='        n.meta["type"] = type(result)',
        becomes='        n.meta.setdefault("type", type(result))',
        told="what was noted before is replaced",
    ),
    Mutant(
        function="passes.shape_prop.ShapeProp.run_node",
        misconception="without tensors the description is the value",
        was="        return result",
        becomes="        return result if tensors else described",
        told="return it, and not the copy",
    ),
    Mutant(
        function="interpreter.Transformer.transform",
        misconception="a new module has parameters of its own",
        was="GraphModule(self.module, self.new_graph)",
        becomes=(
            'GraphModule(\n            __import__("copy").deepcopy'
            "(self.module), self.new_graph\n        )"
        ),
        told="copies of the parameters",
    ),
    Mutant(
        function="interpreter.Interpreter._run_nodes",
        misconception="an input is the caller's to drop",
        was='if not node.users and node._op != "output":',
        becomes=(
            'if not node.users and node._op not in ("output", "placeholder"):'
        ),
        told="not even an input that has no users",
    ),
)
