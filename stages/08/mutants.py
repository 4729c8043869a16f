"""Stage 08's mutants: what people get wrong about views and last uses."""

from __future__ import annotations

from typing import Final

from stages.mutant import Mutant

_RUN = "reinplacing.capture.Capture.run"
_MERGE = "reinplacing.aliasing.Storages._merge_declared"
_IS_ALIAS = "reinplacing.aliasing.Storages.is_alias"
_RULE_1A = "passes.reinplace._rule_1a_metadata"
_RULE_1B = "passes.reinplace._rule_1b_inputs"
_RULE_1C = "passes.reinplace._rule_1c_arguments"
_NOTHING_LEFT = "passes.reinplace._has_nothing_left"
_RULE_2 = "passes.reinplace._rule_2_later_uses"

MUTANTS: Final = (
    Mutant(
        function=_RUN,
        misconception="The node can be made before the operator is run.",
        was="""        result = self._call(func, args, kwargs)
        node = self.create_node(
            "call_function",
            func,
            tuple([self.create_arg(arg) for arg in args]),
            {key: self.create_arg(arg) for key, arg in kwargs.items()},
            what.name,
        )
""",
        becomes="""        node = self.create_node(
            "call_function",
            func,
            tuple([self.create_arg(arg) for arg in args]),
            {key: self.create_arg(arg) for key, arg in kwargs.items()},
            what.name,
        )
        result = self._call(func, args, kwargs)
""",
        told="run the operator first, then add its node",
    ),
    Mutant(
        function=_RUN,
        misconception="A result is found again by its value.",
        was="self.bind(result, node, constant)",
        becomes="pass",
        told="Only if the result was bound to its node",
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
        was="if what.reads_data:",
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
        misconception="Only the tensor that was made is constant.",
        was="constant = self._fold(func, args, kwargs, result)",
        becomes="pass",
        told="what is made of constants is one too",
    ),
    Mutant(
        function=_MERGE,
        misconception="What was no view on these inputs is none.",
        was="self.sets.merge(one, other)",
        becomes="pass",
        told="may be a view of its argument",
    ),
    Mutant(
        function=_MERGE,
        misconception="A view is a view of all its arguments.",
        was="            source = parameter.of(node.args, node.kwargs)\n"
        "            if isinstance(source, Node):",
        becomes="            for source in node.all_input_nodes:",
        told="nothing to do with the memory of the other one",
    ),
    Mutant(
        function=_MERGE,
        misconception="What is viewed stands first among the arguments.",
        was="source = parameter.of(node.args, node.kwargs)",
        becomes="source = node.args[0] if node.args else None",
        told="the viewed argument is given by keyword here",
    ),
    Mutant(
        function=_IS_ALIAS,
        misconception="What is in the storage of another is a view of it.",
        was="if facts.writes:",
        becomes="if False:",
        told="it writes into it",
    ),
    Mutant(
        function=_IS_ALIAS,
        misconception="A view is a view of all its arguments.",
        was="any(one.of(node.args, node.kwargs) is of for one in facts.views)",
        becomes="facts.views",
        told="y is only read for its shape",
    ),
    Mutant(
        function=_IS_ALIAS,
        misconception="A view reads nothing.",
        was="return sum(arg is of for arg in arguments_of(node)) == 1",
        becomes="return True",
        told="it is read as well",
    ),
    Mutant(
        function=_IS_ALIAS,
        misconception="A node without schema is no view.",
        was="return is_item(node)",
        becomes="return False",
        told="takes a view out of a list of views",
    ),
    Mutant(
        function=_IS_ALIAS,
        misconception="Schemas tell of all views.",
        was="return bool(found) and set(found) <= set(self.of[of])",
        becomes="return False",
        told="found to be in the storage of x",
    ),
    Mutant(
        function=_RULE_1A,
        misconception="As many elements take as much memory.",
        was="if base.size() != result.size():",
        becomes="if base.numel() != result.numel():",
        told="not the number of elements",
    ),
    Mutant(
        function=_RULE_1A,
        misconception="In-place operators convert to the dtype of self.",
        was="if base.dtype != result.dtype or base.device != result.device:",
        becomes="if base.device != result.device:",
        told="is of bools and x of floats",
    ),
    Mutant(
        function=_RULE_1A,
        misconception="Each element has its own memory.",
        was="if geometry(base).overlaps_itself():",
        becomes="if False:",
        told="would be written to all",
    ),
    Mutant(
        function=_RULE_1A,
        misconception="Autograd keeps only what requires a gradient.",
        was="if base.requires_grad or result.requires_grad:",
        becomes="if base.requires_grad:",
        told="autograd keeps x",
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
        was="if _overwrites(plan, plan.nodes[place], call):",
        becomes="if False:",
        told="until then it is free memory",
    ),
    Mutant(
        function=_RULE_1B,
        misconception="Free once is free for good.",
        was="            call.limit = place\n",
        becomes="",
        told="call.limit has to be the place",
    ),
    Mutant(
        function=_RULE_1B,
        misconception="Any copy_ to the input frees it.",
        was="if _overwrites(plan, plan.nodes[place], call):",
        becomes="if plan.nodes[place].target is COPY:",
        told="the other rows would be changed for good",
    ),
    Mutant(
        function=_RULE_1B,
        misconception="Two inputs are two memories.",
        was="if memory.held is not None:",
        becomes="if False:",
        told="then nobody may write",
    ),
    Mutant(
        function=_RULE_1C,
        misconception="The first argument is the first wherever it stands.",
        was="for arg in arguments_of(call.node)[1:]:",
        becomes="for arg in set(arguments_of(call.node)) - {call.base}:",
        told="stands among the arguments twice",
    ),
    Mutant(
        function=_RULE_1C,
        misconception="Another node is another memory.",
        was="if call.memory in plan.storages.classes(arg) and",
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
        misconception="One storage is one place.",
        was="not _are_apart(\n"
        "            plan, plan.values[arg], plan.values[call.base]\n"
        "        )",
        becomes="True",
        told="are in one storage and are apart",
    ),
    Mutant(
        function=_NOTHING_LEFT,
        misconception="A scatter of the result undoes the view it came from.",
        was="return where is not None and plan.same_place(found, where)",
        becomes="return where is not None",
        told="is put to row 1, another place",
    ),
    Mutant(
        function=_NOTHING_LEFT,
        misconception="What is scattered to the place is the result.",
        was="found = plan.through_views(source, starts)",
        becomes="found = plan.values[call.base]",
        told="it writes something else",
    ),
    Mutant(
        function=_NOTHING_LEFT,
        misconception="The scatter is given the result itself.",
        was="found = plan.through_views(source, starts)",
        becomes="found = starts.get(source)",
        told="through_views follows it back",
    ),
    Mutant(
        function=_RULE_2,
        misconception="Who reads the memory is a user of the node.",
        was="users = [plan.nodes[place] for place in uses if place < limit]",
        becomes="later = [n for n in call.base.users if plan.places[n] in uses]"
        "\n    users = [n for n in later if plan.places[n] < limit]",
        told="what counts are the uses of the memory",
    ),
    Mutant(
        function=_RULE_2,
        misconception="The copy_ that frees an input ends nothing.",
        was="users = [plan.nodes[place] for place in uses if place < limit]",
        becomes="users = [plan.nodes[place] for place in uses]",
        told="Only uses before call.limit are in the way",
    ),
    Mutant(
        function=_RULE_2,
        misconception="A scatter that vanishes takes all later uses along.",
        was="if len(users) == 1 and _has_nothing_left(plan, call, users[0]):\n"
        "        call.scatter = users.pop()",
        becomes="if users and _has_nothing_left(plan, call, users[0]):\n"
        "        call.scatter = users[0]\n"
        "        users.clear()",
        told="exactly one later use may be a scatter",
    ),
    Mutant(
        function=_RULE_2,
        misconception="A scatter with nothing to do does no harm.",
        was="call.scatter = users.pop()",
        becomes="users.pop()",
        told="it is to be noted in call.scatter",
    ),
    Mutant(
        function=_RULE_2,
        misconception="Before copy_ the memory is free, and that is all.",
        was="return None if call.limit is None else "
        "_after_limit(plan, call, limit)",
        becomes="return None",
        told="_after_limit has to be asked",
    ),
    Mutant(
        function=_RUN,
        misconception="In a capture values are nodes.",
        was="return result",
        becomes="return node",
        told="goes on with its result",
    ),
    Mutant(
        function=_RULE_1B,
        misconception="Memory that is free once is free.",
        was="if memory.owner is None:",
        becomes="if True:",
        told="whoever passed it wants to find it as it was",
    ),
    Mutant(
        function=_RULE_2,
        misconception="What is read later has been read by then.",
        was="    if users:",
        becomes="    if False:",
        told="relu reads it later and wants the old",
    ),
    Mutant(
        function=_IS_ALIAS,
        misconception="What is in no other storage is in this one.",
        was="bool(found) and set(found) <= set(self.of[of])",
        becomes="set(found) <= set(self.of[of])",
        told="ask whether there are some",
    ),
    Mutant(
        function=_RULE_1A,
        misconception="What is computed from one device stays there.",
        was=" or base.device != result.device",
        becomes="",
        told="one on another device",
    ),
    Mutant(
        function=_RULE_1A,
        misconception="Each value is a tensor.",
        was="not isinstance(base, torch.Tensor) or not tensors_in(base)",
        becomes="not tensors_in(base)",
        told="is a list of tensors",
    ),
    Mutant(
        function=_NOTHING_LEFT,
        misconception="Each user is an operator.",
        was="if facts is None or facts.view is None or facts.source is None:",
        becomes="if facts.view is None or facts.source is None:",
        told="what nothing is known of is no scatter",
    ),
)
