"""Stage 08's mutants: common mistakes about views and last uses."""

from __future__ import annotations

from typing import Final

from stages.manifest import Mutant

_RUN = "capture.capture.Capture.run"
_IS_ALIAS = "reinplacing.aliasing.Storages.is_alias"
_RULE_1B = "passes.reinplace.rule_1b_inputs"
_RULE_1C = "passes.reinplace.rule_1c_arguments"
_REDUNDANT = "passes.reinplace.is_redundant_scatter"
_RULE_2 = "passes.reinplace.rule_2_later_uses"

MUTANTS: Final = (
    Mutant(
        function=_RUN,
        misconception="bind returns the value that it was given.",
        was="""        self.bind(result, node, constant)
        return result""",
        becomes="        return self.bind(result, node, constant)",
        told="Return the result itself",
    ),
    Mutant(
        function=_RUN,
        misconception="To run an operator is to call it.",
        was="self._call(func, args, kwargs)",
        becomes="func(*args, **kwargs)",
        told="Let `self._call` run the operator",
    ),
    Mutant(
        function=_RUN,
        misconception="The node can be made before the operator is run.",
        was="""        result = self._call(func, args, kwargs)
        node = self.create_node(
            "call_function",
            func,
            tuple([self.create_arg(arg) for arg in args]),
            {key: self.create_arg(arg) for key, arg in kwargs.items()},
            func.overloadpacket.__name__,
        )
""",
        becomes="""        node = self.create_node(
            "call_function",
            func,
            tuple([self.create_arg(arg) for arg in args]),
            {key: self.create_arg(arg) for key, arg in kwargs.items()},
            func.overloadpacket.__name__,
        )
        result = self._call(func, args, kwargs)
""",
        told="run the operator first, then add its node",
    ),
    Mutant(
        function=_RUN,
        misconception="The next operator finds a result by its value.",
        was="self.bind(result, node, constant)",
        becomes="pass",
        told="Only if the result was bound to its node",
    ),
    Mutant(
        function=_RUN,
        misconception="Only positional arguments can be tensors.",
        was="{key: self.create_arg(arg) for key, arg in kwargs.items()}",
        becomes="dict(kwargs)",
        told="by its name, too",
    ),
    Mutant(
        function=_RUN,
        misconception="Operators take positional arguments.",
        was="{key: self.create_arg(arg) for key, arg in kwargs.items()}",
        becomes="{}",
        told="what create_arg makes of args and of kwargs",
    ),
    Mutant(
        function=_RUN,
        misconception="item() is an operator like others.",
        was="if facts is not None and facts.reads_data:",
        becomes="if False:",
        told="hold the number of this one run",
    ),
    Mutant(
        function=_RUN,
        misconception="A constant of the code is an attribute to work on.",
        was="func = _LIFT",
        becomes="pass",
        told="all runs write to one attribute",
    ),
    Mutant(
        function=_RUN,
        misconception="Only a tensor literal is constant.",
        was="constant = self.constants.fold(func, args, kwargs, result)",
        becomes="constant = None",
        told="that fold has computed from constants is one too",
    ),
    Mutant(
        function=_IS_ALIAS,
        misconception="A result in the storage of x is only a view of x.",
        was="if facts.writes:",
        becomes="if False:",
        told="it writes into it",
    ),
    Mutant(
        function=_IS_ALIAS,
        misconception="A view is a view of all its arguments.",
        was="any(view.of(node.args, node.kwargs) is of "
        "for view in facts.views)",
        becomes="facts.views",
        told="y is only read for its shape",
    ),
    Mutant(
        function=_IS_ALIAS,
        misconception="A view reads nothing.",
        was="return sum(arg is of for arg in arguments_of(node)) == 1",
        becomes="return True",
        told="the operator reads it as well",
    ),
    Mutant(
        function=_IS_ALIAS,
        misconception="A node without a schema is not a view.",
        was="return is_item(node)",
        becomes="return False",
        told="takes a view out of a list of views",
    ),
    Mutant(
        function=_IS_ALIAS,
        misconception="Schemas declare all views.",
        was="return bool(numbers) and set(numbers) <= set(self.of[of])",
        becomes="return False",
        told="found to be in the storage of x",
    ),
    Mutant(
        function=_RULE_1B,
        misconception="Only the placeholder itself is an input.",
        was="if memory.owner is None:",
        becomes='if call.base.op not in ("placeholder", "get_attr"):',
        told="an alias of one: the same memory",
    ),
    Mutant(
        function=_RULE_1B,
        misconception="An input is never free.",
        was="if _overwrites(sim, sim.nodes[place], call):",
        becomes="if False:",
        told="until then it is free memory",
    ),
    Mutant(
        function=_RULE_1B,
        misconception="Free once is free for good.",
        was="            return place\n",
        becomes="            return len(sim.nodes)\n",
        told="rule_1b_inputs has to return the place",
    ),
    Mutant(
        function=_RULE_1B,
        misconception="Any copy_ to the input frees it.",
        was="if _overwrites(sim, sim.nodes[place], call):",
        becomes="if sim.nodes[place].target is COPY:",
        told="the other rows would be changed for good",
    ),
    Mutant(
        function=_RULE_1B,
        misconception="Two inputs are never in one memory.",
        was="if memory.blocked is not None:",
        becomes="if False:",
        told="then no call may write",
    ),
    Mutant(
        function=_RULE_1C,
        misconception="The first argument is not given again later.",
        was="for arg in arguments_of(call.node)[1:]:",
        becomes="for arg in set(arguments_of(call.node)) - {call.base}:",
        told="is among the arguments twice",
    ),
    Mutant(
        function=_RULE_1C,
        misconception="Another node is another memory.",
        was="if call.memory in sim.storages.alias_sets(arg) and",
        becomes="if arg is call.base and",
        told="a view of the first",
    ),
    Mutant(
        function=_RULE_1C,
        misconception="Only positional arguments are tensors.",
        was="for arg in arguments_of(call.node)[1:]:",
        becomes="for arg in call.node.args[1:]:\n"
        "        if not isinstance(arg, Node):\n"
        "            continue",
        told="an argument given by keyword is read",
    ),
    Mutant(
        function=_RULE_1C,
        misconception="An argument is in one memory.",
        was="if call.memory in sim.storages.alias_sets(arg) and",
        becomes="if sim.storages.alias_sets(arg) == [call.memory] and",
        told="if one of the memories of an argument is that one",
    ),
    Mutant(
        function=_RULE_1C,
        misconception="Tensors in one storage always overlap.",
        was="not _are_apart(\n"
        "            sim, sim.values[arg], sim.values[call.base]\n"
        "        )",
        becomes="True",
        told="are in one storage and are apart",
    ),
    Mutant(
        function=_REDUNDANT,
        misconception="A scatter of the result undoes the view it came from.",
        was="return where is not None and sim.same_place(found, where)",
        becomes="return where is not None",
        told="is put to row 1, another place",
    ),
    Mutant(
        function=_REDUNDANT,
        misconception="A scatter always writes the result of the call.",
        was="found = through_views(sim, source, moved)",
        becomes="found = sim.values[call.base]",
        told="it writes something else",
    ),
    Mutant(
        function=_REDUNDANT,
        misconception="The scatter is given the result itself.",
        was="found = through_views(sim, source, moved)",
        becomes="found = moved.get(source)",
        told="through_views follows it back",
    ),
    Mutant(
        function=_RULE_2,
        misconception="Only users of the node read its memory.",
        was="users = [sim.nodes[place] for place in uses if place < limit]",
        becomes="later = [n for n in call.base.users if sim.places[n] in uses]"
        "\n    users = [n for n in later if sim.places[n] < limit]",
        told="what counts are the uses of the memory",
    ),
    Mutant(
        function=_RULE_2,
        misconception="Uses after the copy_ that frees an input count too.",
        was="users = [sim.nodes[place] for place in uses if place < limit]",
        becomes="users = [sim.nodes[place] for place in uses]",
        told="Only uses before `limit` count",
    ),
    Mutant(
        function=_RULE_2,
        misconception="A scatter that vanishes takes all later uses along.",
        was="if len(users) == 1 and "
        "is_redundant_scatter(sim, call, users[0]):\n"
        "        scatter = users.pop()",
        becomes="if users and is_redundant_scatter(sim, call, users[0]):\n"
        "        scatter = users[0]\n"
        "        users.clear()",
        told="exactly one later use may be a scatter",
    ),
    Mutant(
        function=_RULE_2,
        misconception="A redundant scatter may stay in the graph.",
        was="scatter = users.pop()",
        becomes="users.pop()",
        told="rule_2_later_uses has to return it",
    ),
    Mutant(
        function=_RULE_2,
        misconception="Only the call's own result can be needed too late.",
        was="_check_copy(sim, call, scatter, limit)",
        becomes="_check_copy(sim, call, None, limit)",
        told="tell _check_copy of the scatter",
    ),
    Mutant(
        function=_RULE_2,
        misconception="Before copy_ the memory is free, and that is all.",
        was="_check_copy(sim, call, scatter, limit)",
        becomes="pass",
        told="_check_copy has to be called",
    ),
    Mutant(
        function=_RUN,
        misconception="During a capture, values are nodes.",
        was="return result",
        becomes="return node",
        told="goes on with its result",
    ),
    Mutant(
        function=_RULE_1B,
        misconception="Memory that is free once is free.",
        was="if memory.owner is None:",
        becomes="if True:",
        told="the caller needs it as it was",
    ),
    Mutant(
        function=_RULE_2,
        misconception="A later read does no harm.",
        was="    if users:",
        becomes="    if False:",
        told="relu reads it later and needs the old",
    ),
    Mutant(
        function=_IS_ALIAS,
        misconception="A value without storages is in this one.",
        was="bool(numbers) and set(numbers) <= set(self.of[of])",
        becomes="set(numbers) <= set(self.of[of])",
        told="ask whether there are some",
    ),
    Mutant(
        function=_REDUNDANT,
        misconception="Each user is an operator.",
        was="if facts is None or facts.view is None:",
        becomes="if facts.view is None:",
        told="a node without facts is not a scatter",
    ),
    Mutant(
        function=_RULE_1B,
        misconception="Only the memory of inputs is not to be written.",
        was="""    if memory.blocked is not None:
        raise NotInPlace("1b", memory.blocked)
    if memory.owner is None:
        return len(sim.nodes)
""",
        becomes="""    if memory.owner is None:
        return len(sim.nodes)
    if memory.blocked is not None:
        raise NotInPlace("1b", memory.blocked)
""",
        told="ask memory.blocked before memory.owner",
    ),
    Mutant(
        function=_RULE_1B,
        misconception="The next use tells.",
        was="    for place in sim.next_uses(memory, call.place):",
        becomes="    for place in sim.next_uses(memory, call.place)[:1]:",
        told="look at all that next_uses gives",
    ),
    Mutant(
        function=_IS_ALIAS,
        misconception="One result in the storage of x makes it a view of x.",
        was="bool(numbers) and set(numbers) <= set(self.of[of])",
        becomes="bool(set(numbers) & set(self.of[of]))",
        told="only if all its results are in the storage of x",
    ),
    Mutant(
        function=_IS_ALIAS,
        misconception="A view is a view of all that is declared.",
        was="if any(view.of(node.args, node.kwargs) is of for view in facts."
        "views):",
        becomes="if facts.views and facts.views[0].of(node.args, node.kwargs) "
        "is of:",
        told="one of facts.views is enough",
    ),
    Mutant(
        function=_RULE_2,
        misconception="A later use is a later use.",
        was="if len(users) == 1 and is_redundant_scatter",
        becomes="if False and is_redundant_scatter",
        told="it is redundant (2c)",
    ),
    Mutant(
        function=_REDUNDANT,
        misconception="A scatter that has another base is redundant as well.",
        was="""        return False
    if geometry""",
        becomes="""        return True
    if geometry""",
        told="another tensor, which has to be made",
    ),
    Mutant(
        function=_REDUNDANT,
        misconception="Each element has a place of its own.",
        was="if geometry(sim.values[into]).overlaps_itself():",
        becomes="if False:",
        told="the same three elements",
    ),
    Mutant(
        function=_RUN,
        misconception="An operator that raises takes no arguments.",
        was="""        result = self._call(func, args, kwargs)
        node = self.create_node(
            "call_function",
            func,
            tuple([self.create_arg(arg) for arg in args]),
""",
        becomes="""        nodes = tuple([self.create_arg(arg) for arg in args])
        result = self._call(func, args, kwargs)
        node = self.create_node(
            "call_function",
            func,
            nodes,
""",
        told="ask it after the operator has run",
    ),
    Mutant(
        function=_RULE_1B,
        misconception="Any later copy_ will do.",
        was="    for place in sim.next_uses(memory, call.place):",
        becomes="    for place in sorted("
        "p for p in memory.uses if p > call.place):",
        told="not among the next two",
    ),
    Mutant(
        function=_RULE_1C,
        misconception="Where the run found a value, there it is.",
        was="if call.memory in sim.storages.alias_sets(arg) and",
        becomes="if not set(sim.storages.of[call.base]).isdisjoint("
        "sim.storages.of[arg]) and",
        told="ask the alias sets, and not the storages",
    ),
    Mutant(
        function=_RULE_1C,
        misconception="What certainly shares storage is all that may.",
        was="if call.memory in sim.storages.alias_sets(arg) and",
        becomes="if sim.share_storage(sim.values[arg], sim.values[call.base]) "
        "and",
        told="ask the alias sets, and not the storages",
    ),
    Mutant(
        function=_REDUNDANT,
        misconception="The same strides and offset are the same place.",
        was="sim.same_place(found, where)",
        becomes="geometry(found) == geometry(where)",
        told="equal offsets in two storages",
    ),
    Mutant(
        function=_IS_ALIAS,
        misconception="What may share storage is a view.",
        was="""        numbers = self.of[node]
        return bool(numbers) and set(numbers) <= set(self.of[of])""",
        becomes="""        numbers = self.alias_sets(node)
        return bool(numbers) and set(numbers) <= set(self.alias_sets(of))""",
        told="compare `of`, and not the alias sets",
    ),
    Mutant(
        function=_IS_ALIAS,
        misconception="A schema only saves the search for storages.",
        was="""        if facts is None:
            return is_item(node)
        if facts.writes:
            return False
        if any(""",
        becomes="""        if facts is not None and facts.writes:
            return False
        if is_item(node):
            return True
        if facts is not None and any(""",
        told="a method, which has no schema",
    ),
    # -- do_in_place ---------------------------------------------------------
    Mutant(
        function="reinplacing.simulation.Simulation.do_in_place",
        misconception="The memories stay what they were.",
        was="        self._replace(node, base)\n",
        becomes="        self.replaced[node] = base\n",
        told="their alias sets are merged",
    ),
    Mutant(
        function="reinplacing.simulation.Simulation.do_in_place",
        misconception="A redundant scatter is its source.",
        was="self._replace(scatter, old)",
        becomes="self._replace(scatter, node)",
        told="which is what the scatter wrote into",
    ),
    Mutant(
        function="reinplacing.simulation.Simulation.do_in_place",
        misconception="An erased node needs no replacement.",
        was="            self._replace(scatter, old)\n",
        becomes="",
        told="which is what the scatter wrote into",
    ),
    Mutant(
        function="reinplacing.simulation.Simulation.do_in_place",
        misconception="Strides do not matter to later calls.",
        was="        self.values.update(changed)",
        becomes="        pass",
        told="values that have other strides from now on",
    ),
    Mutant(
        function="capture.capture.Capture.run",
        misconception="a literal is its own constant",
        was="constant = copy_of_small(args[0])",
        becomes="constant = args[0]",
        told="only a small one has a constant",
    ),
    Mutant(
        function="capture.capture.Capture.run",
        misconception="the result is its own constant",
        was="constant = copy_of_small(args[0])",
        becomes="constant = result",
        told="each write is done twice",
    ),
    Mutant(
        function="capture.capture.Capture.run",
        misconception="a name has no underscore at its end",
        was="func.overloadpacket.__name__",
        becomes='func.overloadpacket.__name__.rstrip("_")',
        told="the node asks for the whole name",
    ),
    Mutant(
        function="reinplacing.aliasing.Storages.is_alias",
        misconception="a view is found where its argument is, and everywhere",
        was="set(numbers) <= set(self.of[of])",
        becomes="set(numbers) == set(self.of[of])",
        told="ask for a subset",
    ),
    Mutant(
        function="reinplacing.aliasing.Storages.is_alias",
        misconception="what is viewed is given by place",
        was="view.of(node.args, node.kwargs) is of",
        becomes="view.of(node.args, {}) is of",
        told="and t is given by name",
    ),
    Mutant(
        function="passes.reinplace.is_redundant_scatter",
        misconception="the source is the second argument by place",
        was="""facts.parameters["src"].of(user.args, user.kwargs)""",
        becomes="user.args[1]",
        told="the source is not in args",
    ),
    Mutant(
        function="passes.reinplace.is_redundant_scatter",
        misconception="what is given by name is no node",
        was="""facts.parameters["src"].of(user.args, user.kwargs)""",
        becomes="""facts.parameters["src"].of(user.args, {})""",
        told="is the same call as with all arguments by place",
    ),
    Mutant(
        function="capture.capture.Capture.run",
        misconception="without a result there is nothing to record",
        was="        node = self.create_node(",
        becomes="""        if result is None:
            return None
        node = self.create_node(""",
        told="and is called for its effect",
    ),
    Mutant(
        function="capture.capture.Capture.run",
        misconception="what folds has no keywords",
        was="self.constants.fold(func, args, kwargs, result)",
        becomes="self.constants.fold(func, args, {}, result)",
        told="where the 3 is the keyword argument alpha",
    ),
    Mutant(
        function="capture.capture.Capture.run",
        misconception="what reads has no keywords",
        was="self.constants.read(func, args, kwargs)",
        becomes="self.constants.read(func, args, {})",
        told="which is given by name",
    ),
    Mutant(
        function="capture.capture.Capture.run",
        misconception="a constant that is false is none",
        was="            constant = copy_of_small(args[0])",
        becomes=(
            "            constant = copy_of_small(args[0])\n"
            "            if constant is not None and not constant.any():\n"
            "                constant = None"
        ),
        told="and its truth value is false",
    ),
    Mutant(
        function="passes.reinplace.rule_1c_arguments",
        misconception="an argument is not inside a list",
        was="for arg in arguments_of(call.node)[1:]:",
        becomes=(
            "for arg in [\n"
            "        a\n"
            "        for a in [*call.node.args[1:], "
            "*call.node.kwargs.values()]\n"
            "        if isinstance(a, Node)\n"
            "    ]:"
        ),
        told="a view of the first argument is in it",
    ),
    Mutant(
        function="capture.capture.Capture.run",
        misconception="only a tensor can become a node",
        was="tuple([self.create_arg(arg) for arg in args])",
        becomes=(
            "tuple(\n"
            "                [\n"
            "                    self.create_arg(arg)\n"
            "                    if isinstance(arg, torch.Tensor)\n"
            "                    else arg\n"
            "                    for arg in args\n"
            "                ]\n"
            "            )"
        ),
        told="cat takes a list of tensors",
    ),
    Mutant(
        function="capture.capture.Capture.run",
        misconception="every operator is recorded",
        was="            return self.constants.read(func, args, kwargs)",
        becomes=(
            "            self.create_node(\n"
            '                "call_function", func,\n'
            "                tuple(map(self.create_arg, args)),\n"
            "                {k: self.create_arg(v) "
            "for k, v in kwargs.items()},\n"
            "            )\n"
            "            return self.constants.read(func, args, kwargs)"
        ),
        told="an operator that reads data has no node",
    ),
)
