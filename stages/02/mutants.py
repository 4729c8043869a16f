"""Stage 02: mistakes that people make, and what they are told."""

from __future__ import annotations

from typing import Final

from stages.mutant import Mutant

MUTANTS: Final = (
    Mutant(
        function="node.Node._connect",
        misconception="new arguments are new edges, and that is all",
        was=(
            "        for node in self._inputs:\n"
            "            node.users.pop(self, None)\n"
        ),
        becomes="",
        told="linear must lose its user",
    ),
    Mutant(
        function="node.Node._connect",
        misconception="whoever reads knows; what is read need not",
        was="            node.users[self] = None",
        becomes="            pass",
        told="both of them know add as a user",
    ),
    Mutant(
        function="node.Node._connect",
        misconception="it does not matter whether edges come or go first",
        was=(
            "        for node in self._inputs:\n"
            "            node.users.pop(self, None)\n"
            "        self._args = args\n"
            "        self._kwargs = kwargs\n"
            "        self._inputs = inputs\n"
            "        for node in inputs:\n"
            "            node.users[self] = None"
        ),
        becomes=(
            "        for node in inputs:\n"
            "            node.users[self] = None\n"
            "        for node in self._inputs:\n"
            "            node.users.pop(self, None)\n"
            "        self._args = args\n"
            "        self._kwargs = kwargs\n"
            "        self._inputs = inputs"
        ),
        told="must not take away the new ones",
    ),
    Mutant(
        function="node.Node._connect",
        misconception="each input can be checked when its turn comes",
        was=(
            "            if node.graph is not graph or node._erased:\n"
            "                raise refusals.not_in_graph(node, self)\n"
        ),
        becomes=(
            "            if node.graph is not graph or node._erased:\n"
            "                raise refusals.not_in_graph(node, self)\n"
            "            node.users[self] = None\n"
        ),
        told="check all, then change",
    ),
    Mutant(
        function="node.Node._connect",
        misconception="only what differs has to be moved",
        was=(
            "        for node in self._inputs:\n"
            "            node.users.pop(self, None)\n"
        ),
        becomes=(
            "        for node in set(self._inputs) - set(inputs):\n"
            "            node.users.pop(self, None)\n"
        ),
        told="All old edges go and all new ones come",
    ),
    Mutant(
        function="node.Node._freeze",
        misconception="only positional arguments are values",
        was="        named = map_aggregate(dict(kwargs), visit)",
        becomes="        named = immutable_dict(kwargs)",
        told="nodes in kwargs are inputs too",
    ),
    Mutant(
        function="node.Node._freeze",
        misconception="nobody will change a list after passing it on",
        was="        return frozen, named, inputs",
        becomes="        return tuple(args), named, inputs",
        told="A node keeps copies",
    ),
    Mutant(
        function="node.Node._freeze",
        misconception="nodes are found at the top of the arguments",
        was="        frozen = map_aggregate(tuple(args), visit)",
        becomes=(
            "        frozen = map_aggregate(tuple(args), lambda leaf: leaf)\n"
            "        for arg in args:\n"
            "            visit(arg)"
        ),
        told="though they stand inside a list",
    ),
    Mutant(
        function="node.Node._freeze",
        misconception="a set is a container like a list",
        was="                self._check_set(leaf)",
        becomes="                pass",
        told="`_check_set` must be asked",
    ),
    Mutant(
        function="node.Node._freeze",
        misconception="what is inside kwargs is frozen, so kwargs are",
        was="        named = map_aggregate(dict(kwargs), visit)",
        becomes=(
            "        named = {k: map_aggregate(v, visit) "
            "for k, v in kwargs.items()}"
        ),
        told="the dict of keyword arguments itself must be immutable too",
    ),
    Mutant(
        function="node.Node._freeze",
        misconception="whatever can be looped over is a row of arguments",
        was="        self._check_containers(args, kwargs)\n",
        becomes="",
        told="must be refused, not taken apart",
    ),
    Mutant(
        function="node.Node._freeze",
        misconception="only a set is a set",
        was="(set, frozenset)",
        becomes="set",
        told="A node stands inside a frozenset among the arguments",
    ),
    Mutant(
        function="node.Node.replace_input_with",
        misconception="only positional arguments are values",
        was="map_arg(self._kwargs, swap)",
        becomes="self._kwargs",
        told="replace_input_with must replace each occurrence",
    ),
    Mutant(
        function="node.Node.replace_input_with",
        misconception="the arguments are all there is to change",
        was=(
            "        self._update_args_kwargs(\n"
            "            map_arg(self._args, swap), "
            "map_arg(self._kwargs, swap)\n"
            "        )"
        ),
        becomes=(
            "        self._args = map_arg(self._args, swap)\n"
            "        self._kwargs = map_arg(self._kwargs, swap)\n"
            "        self._inputs = tuple(map(swap, self._inputs))"
        ),
        told="an edge is written at both ends",
    ),
    Mutant(
        function="node.Node.replace_input_with",
        misconception="a node's input is replaced for all who read it",
        was="        self._update_args_kwargs(\n",
        becomes=(
            "        for user in list(old_input.users):\n"
            "            user.args = map_arg(user._args, swap)\n"
            "        self._update_args_kwargs(\n"
        ),
        told="linear reads x too and was not asked to change",
    ),
    Mutant(
        function="node.Node.replace_input_with",
        misconception="the new node is checked when it becomes an input",
        was="        self._check_node(new_input)\n",
        becomes="",
        told="must be refused by `_check_node`, even where nothing would",
    ),
    Mutant(
        function="node.Node.replace_input_with",
        misconception="a hook is given the nodes",
        was="new=new_input._name,",
        becomes="new=new_input,",
        told="the new one's name (a str)",
    ),
    Mutant(
        function="node.Node.replace_all_uses_with",
        misconception="users can be looped over while they change",
        was="        for user in list(self.users):",
        becomes="        for user in self.users:",
        told="a dict must not change while you loop over it",
    ),
    Mutant(
        function="node.Node.replace_all_uses_with",
        misconception="all uses are all uses, whatever the callback says",
        was="            if delete_user_cb is None or delete_user_cb(user):",
        becomes="            if True:",
        told="a user for which the callback says False is left alone",
    ),
    Mutant(
        function="node.Node.replace_all_uses_with",
        misconception="who was asked was changed",
        was=(
            "            if delete_user_cb is None or delete_user_cb(user):\n"
            "                changed.append(user)\n"
        ),
        becomes=(
            "            changed.append(user)\n"
            "            if delete_user_cb is None or delete_user_cb(user):\n"
        ),
        told="it is not among the users that were changed",
    ),
    Mutant(
        function="node.Node.replace_all_uses_with",
        misconception="assigning a dict copies it",
        was="            replace_with.meta.update(self.meta)",
        becomes="            replace_with.meta = self.meta",
        told="the two nodes must not share one dict",
    ),
    Mutant(
        function="node.Node.replace_all_uses_with",
        misconception="what is refused in the end may be begun",
        was="        self._check_node(replace_with)\n",
        becomes="",
        told="which must be refused even if there are no users",
    ),
    Mutant(
        function="graph.Graph.erase_node",
        misconception="out of the list is out of the graph",
        was="        to_erase._drop_inputs()",
        becomes="",
        told="Erasing removes the edges as well as the node",
    ),
    Mutant(
        function="graph.Graph.erase_node",
        misconception="whoever erases a node knows that nobody uses it",
        was="        self._check_erasable(to_erase)\n        if self._owning",
        becomes="        if self._owning",
        told="add would read a value that is never computed",
    ),
    Mutant(
        function="graph.Graph.erase_node",
        misconception="hooks look and change nothing",
        was="            self._check_erasable(to_erase)\n",
        becomes="",
        told="it must be checked again after the hooks",
    ),
    Mutant(
        function="graph.Graph.erase_node",
        misconception="one check is enough, if it is the last thing",
        was="        self._check_erasable(to_erase)\n        if self._owning",
        becomes=(
            "        if self._owning_module is None:\n"
            "            self._check_erasable(to_erase)\n"
            "        if self._owning"
        ),
        told="check before the hooks as well as after them",
    ),
    Mutant(
        function="graph.Graph.erase_node",
        misconception="an erased node has no users left to tell, and no inputs",
        was="        to_erase._drop_inputs()",
        becomes=(
            "        for node in to_erase._inputs:\n"
            "            del node.users[to_erase]"
        ),
        told="A node that was erased reads nothing",
    ),
    Mutant(
        function="usedef.lint._uses",
        misconception="a value is defined before its user, or by it",
        was="0 < arg._sort_key < node._sort_key",
        becomes="0 < arg._sort_key <= node._sort_key",
        told="a value must be defined strictly before its user",
    ),
    Mutant(
        function="usedef.lint._uses",
        misconception="a use is written at one end only",
        was="            if node not in arg.users:",
        becomes="            if False:",
        told="an edge is there at one end only",
    ),
    Mutant(
        function="usedef.lint._uses",
        misconception="an erased node is in no graph",
        was="            if arg.graph is not graph or arg._erased:",
        becomes="            if arg.graph is not graph:",
        told="behind the graph's back",
    ),
    Mutant(
        function="usedef.lint._uses",
        misconception="one fault is enough to know",
        was=(
            '                    "are topologically ordered",\n'
            "                )"
        ),
        becomes=(
            '                    "are topologically ordered",\n'
            "                )\n"
            "                return"
        ),
        told="The verifier goes on after the first",
    ),
    Mutant(
        function="usedef.lint._uses",
        misconception="a node has one fault at most",
        was="            if node not in arg.users:",
        becomes="            elif node not in arg.users:",
        told="the last question is asked in any case",
    ),
    Mutant(
        function="usedef.lint._uses",
        misconception="order keys of two graphs can be compared",
        was="            elif not 0 <",
        becomes="            if not 0 <",
        told="do not ask for its place",
    ),
    Mutant(
        function="usedef.liveness.last_uses",
        misconception="the first user met is the last, from either side",
        was="    for user in reversed(nodes):",
        becomes="    for user in nodes:",
        told="add is the last",
    ),
    Mutant(
        function="usedef.liveness.last_uses",
        misconception="each use could be the last",
        was="                seen.add(node)\n",
        becomes="",
        told="add is the last",
    ),
    Mutant(
        function="usedef.liveness.last_uses",
        misconception="every user has a list, if an empty one",
        was="        for node in user._inputs:",
        becomes=(
            "        frees.setdefault(user, [])\n"
            "        for node in user._inputs:"
        ),
        told="reads nothing for the last time and has no entry",
    ),
    Mutant(
        function="usedef.liveness.last_uses",
        misconception="the last user is the last in `users`",
        was="            if node not in seen:",
        becomes="            if [*node.users][-1] is user:",
        told="What counts is who comes last in the program",
    ),
    Mutant(
        function="graph.Graph.eliminate_dead_code",
        misconception="nodes are looked at in the order in which they run",
        was="        for node in reversed(self._nodes):",
        becomes="        for node in self._nodes:",
        told="it must be looked at after cos",
    ),
    Mutant(
        function="graph.Graph.eliminate_dead_code",
        misconception="what nobody uses is dead",
        was="            if not node.users and not must_stay(node):",
        becomes='            if not node.users and node.op != "output":',
        told="but they do something else",
    ),
    Mutant(
        function="graph.Graph.eliminate_dead_code",
        misconception="a graph that is there is a graph that is right",
        was=(
            "        for problem in lint.structure_problems(self):\n"
            "            raise problem.kind(problem.message)\n"
        ),
        becomes="",
        told="users of a broken graph cannot be trusted",
    ),
    Mutant(
        function="graph.Graph.eliminate_dead_code",
        misconception="a graph has no other graphs in it",
        was=(
            "            changed |= graph.eliminate_dead_code(\n"
            "                is_impure_node, unknown=unknown\n"
            "            )\n"
            "            child.recompile()"
        ),
        becomes="            pass",
        told="dead code must be erased there, too",
    ),
    Mutant(
        function="graph.Graph.eliminate_dead_code",
        misconception="`or` asks both sides",
        was="            changed |= graph.eliminate_dead_code(",
        becomes=("            changed = changed or graph.eliminate_dead_code("),
        told="each graph must be cleaned, also if something was erased before",
    ),
    Mutant(
        function="graph.Graph.eliminate_dead_code",
        misconception="the answer is that of the last graph",
        was="            changed |= graph.eliminate_dead_code(",
        becomes="            changed = graph.eliminate_dead_code(",
        told="must not make the answer False",
    ),
    Mutant(
        function="graph.Graph.eliminate_dead_code",
        misconception="a child graph is cleaned as if by a call of its own",
        was="                is_impure_node, unknown=unknown\n",
        becomes="",
        told="clean the child with the same settings",
    ),
    Mutant(
        function="graph.Graph.eliminate_dead_code",
        misconception="whatever lint finds makes users untrustworthy",
        was="lint.structure_problems(self)",
        becomes="lint.problems(self)",
        told="ask lint.structure_problems only",
    ),
)
"""At least two for each exercise."""
