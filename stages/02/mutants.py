"""Stage 02: likely mistakes, and what the tests say about each."""

from __future__ import annotations

from typing import Final

from stages.manifest import Mutant

MUTANTS: Final = (
    Mutant(
        function="node.Node._connect",
        misconception="new arguments only add edges",
        was=(
            "        for node in self._inputs:\n"
            "            node.users.pop(self, None)\n"
        ),
        becomes="",
        told="linear must lose add as a user",
    ),
    Mutant(
        function="node.Node._connect",
        misconception="an edge is recorded only at its user",
        was="            node.users[self] = None",
        becomes="            pass",
        told="both must have add among their users",
    ),
    Mutant(
        function="node.Node._connect",
        misconception="new edges can be added before old ones are dropped",
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
        told="must not remove the new ones",
    ),
    Mutant(
        function="node.Node._connect",
        misconception="each input can be checked right before it is linked",
        was=(
            "            if node.graph is not graph or node._erased:\n"
            "                raise errors.not_in_graph(node, self)\n"
        ),
        becomes=(
            "            if node.graph is not graph or node._erased:\n"
            "                raise errors.not_in_graph(node, self)\n"
            "            node.users[self] = None\n"
        ),
        told="check all inputs before you change any",
    ),
    Mutant(
        function="node.Node._connect",
        misconception="only the edges that differ have to change",
        was=(
            "        for node in self._inputs:\n"
            "            node.users.pop(self, None)\n"
        ),
        becomes=(
            "        for node in set(self._inputs) - set(inputs):\n"
            "            node.users.pop(self, None)\n"
        ),
        told="Drop all old edges and add all new ones",
    ),
    Mutant(
        function="node.Node._freeze",
        misconception="only positional arguments can be nodes",
        was="        named = map_aggregate(dict(kwargs), visit)",
        becomes="        named = immutable_dict(kwargs)",
        told="nodes in kwargs are inputs too",
    ),
    Mutant(
        function="node.Node._freeze",
        misconception="a caller does not change a list after passing it",
        was="        return tuple(frozen), named, inputs",
        becomes="        return tuple(args), named, inputs",
        told="A node must keep copies",
    ),
    Mutant(
        function="node.Node._freeze",
        misconception="nodes are never nested in lists",
        was="                arg = map_aggregate(arg, visit)",
        becomes="                arg = map_aggregate(arg, lambda leaf: leaf)",
        told="though they are inside a list",
    ),
    Mutant(
        function="node.Node._freeze",
        misconception="a set is a container like a list",
        was="                return errors.constant(leaf, self)",
        becomes="                return leaf",
        told="`errors.constant` must be called",
    ),
    Mutant(
        function="node.Node._freeze",
        misconception="if the values in kwargs are immutable, kwargs are",
        was="        named = map_aggregate(dict(kwargs), visit)",
        becomes=(
            "        named = {k: map_aggregate(v, visit) "
            "for k, v in kwargs.items()}"
        ),
        told="the dict of keyword arguments itself must be immutable too",
    ),
    Mutant(
        function="node.Node._freeze",
        misconception="anything iterable can be the arguments",
        was="        self._check_containers(args, kwargs)\n",
        becomes="",
        told="must be refused, not iterated over",
    ),
    Mutant(
        function="node.Node.replace_all_uses_with",
        misconception="the meta that is in the way is one's own",
        was="errors.meta_is_taken(replace_with.meta)",
        becomes="errors.meta_is_taken(self.meta)",
        told="the message must list the keys of its meta",
    ),
    Mutant(
        function="node.Node.replace_all_uses_with",
        misconception="one can loop over users while they change",
        was="        for user in list(self.users):",
        becomes="        for user in self.users:",
        told="a dict must not change while you loop over it",
    ),
    Mutant(
        function="node.Node.replace_all_uses_with",
        misconception="all users change, whatever the callback returns",
        was="            if delete_user_cb is None or delete_user_cb(user):",
        becomes="            if True:",
        told="a user for which the callback returns False must not change",
    ),
    Mutant(
        function="node.Node.replace_all_uses_with",
        misconception="each user that the callback saw was changed",
        was=(
            "            if delete_user_cb is None or delete_user_cb(user):\n"
            "                changed.append(user)\n"
        ),
        becomes=(
            "            changed.append(user)\n"
            "            if delete_user_cb is None or delete_user_cb(user):\n"
        ),
        told="it must not be among the users that were changed",
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
        misconception="nothing may be shared, so the notes are copied, too",
        was="replace_with.meta.update(self.meta)",
        becomes="replace_with.meta.update(copy.deepcopy(self.meta))",
        told="must have the very notes of the old one, and not copies",
    ),
    Mutant(
        function="node.Node.replace_all_uses_with",
        misconception="it is enough that the first replacement is refused",
        was="        self._check_node(replace_with)\n",
        becomes="",
        told="and must be refused even if there are no users",
    ),
    Mutant(
        function="graph.Graph.erase_node",
        misconception="a node is only recorded in the list of nodes",
        was="        to_erase._drop_inputs()",
        becomes="",
        told="Erasing removes the edges as well as the node",
    ),
    Mutant(
        function="graph.Graph.erase_node",
        misconception="the caller has made sure that there are no users",
        was="        self._check_erasable(to_erase)\n        if self.owning",
        becomes="        if self.owning",
        told="add would use a value that is never computed",
    ),
    Mutant(
        function="graph.Graph.erase_node",
        misconception="hooks do not change the graph",
        was="            self._check_erasable(to_erase)\n",
        becomes="",
        told="check again after the hooks",
    ),
    Mutant(
        function="graph.Graph.erase_node",
        misconception="the inputs can be told before the hooks",
        was="        if self.owning_module is not None:",
        becomes=(
            "        to_erase._drop_inputs()\n"
            "        if self.owning_module is not None:"
        ),
        told="while the node is still in the graph and has its arguments",
    ),
    Mutant(
        function="graph.Graph.erase_node",
        misconception="a check after the hooks is enough",
        was="        self._check_erasable(to_erase)\n        if self.owning",
        becomes=(
            "        if self.owning_module is None:\n"
            "            self._check_erasable(to_erase)\n"
            "        if self.owning"
        ),
        told="check before the hooks as well as after them",
    ),
    Mutant(
        function="graph.Graph.erase_node",
        misconception="only the users change, not the erased node's inputs",
        was="        to_erase._drop_inputs()",
        becomes=(
            "        for node in to_erase._inputs:\n"
            "            del node.users[to_erase]"
        ),
        told="An erased node has no inputs",
    ),
    Mutant(
        function="use_def.lint._uses",
        misconception="a node may use its own value",
        was="0 < arg._sort_key < node._sort_key",
        becomes="0 < arg._sort_key <= node._sort_key",
        told="a value must be defined strictly before its user",
    ),
    Mutant(
        function="use_def.lint._uses",
        misconception="an edge is recorded only at its user",
        was="            if node not in arg.users:",
        becomes="            if False:",
        told="the edge is recorded at one end only",
    ),
    Mutant(
        function="use_def.lint._uses",
        misconception="an erased node no longer has its graph",
        was="            if arg.graph is not graph or arg._erased:",
        becomes="            if arg.graph is not graph:",
        told="without telling the graph",
    ),
    Mutant(
        function="use_def.lint._uses",
        misconception="the verifier can stop at the first fault",
        was="errors.used_before_defined(arg, node))",
        becomes=(
            "errors.used_before_defined(arg, node))\n                return"
        ),
        told="The verifier must go on after the first",
    ),
    Mutant(
        function="use_def.lint._uses",
        misconception="an edge has at most one fault",
        was="            if node not in arg.users:",
        becomes="            elif node not in arg.users:",
        told="check the users in any case",
    ),
    Mutant(
        function="use_def.lint._uses",
        misconception="order keys of two graphs can be compared",
        was="            elif not 0 <",
        becomes="            if not 0 <",
        told="do not compare its order key",
    ),
    Mutant(
        function="use_def.lint.last_users",
        misconception="the direction of the walk does not matter",
        was="for user in nodes",
        becomes="for user in reversed(nodes)",
        told="add is the last",
    ),
    Mutant(
        function="use_def.lint.last_users",
        misconception="every value has a last user, if only itself",
        was="return {node: user",
        becomes="return {node: node for node in nodes} | {node: user",
        told="has no last user, so it must not have an entry",
    ),
    Mutant(
        function="use_def.lint.last_users",
        misconception="`users` is in the order of the program",
        was="{node: user for user in nodes for node in user._inputs}",
        becomes="{node: [*node.users][-1] for node in nodes if node.users}",
        told="What counts is the order of the program",
    ),
    Mutant(
        function="use_def.lint.last_users",
        misconception="a value is used where it stands in args itself",
        was="in user._inputs",
        becomes="in user.args if type(node) is Node",
        told="inside a list",
    ),
    Mutant(
        function="graph.Graph.eliminate_dead_code",
        misconception="one walk from the first node to the last is enough",
        was="        for node in reversed(self._nodes):",
        becomes="        for node in self._nodes:",
        told="the walk must come to neg after cos",
    ),
    Mutant(
        function="graph.Graph.eliminate_dead_code",
        misconception="walk again until nothing changes",
        was="""        for node in reversed(self._nodes):
            if not node.users and not must_stay(node):
                self.erase_node(node)
                changed = True
""",
        becomes="""        again = True
        while again:
            again = False
            for node in self._nodes:
                if not node.users and not must_stay(node):
                    self.erase_node(node)
                    changed = again = True
""",
        told="your loop walks over the graph again and again",
    ),
    Mutant(
        function="graph.Graph.eliminate_dead_code",
        misconception="after an edit a walk has to begin anew",
        was="""        for node in reversed(self._nodes):
            if not node.users and not must_stay(node):
                self.erase_node(node)
                changed = True
""",
        becomes="""        while dead := [
            node
            for node in self._nodes
            if not node.users and not must_stay(node)
        ]:
            self.erase_node(dead[-1])
            changed = True
""",
        told="your loop walks over the graph again and again",
    ),
    Mutant(
        function="graph.Graph.eliminate_dead_code",
        misconception="every node without users is dead",
        was="            if not node.users and not must_stay(node):",
        becomes='            if not node.users and node.op != "output":',
        told="but each has another purpose",
    ),
    Mutant(
        function="graph.Graph.eliminate_dead_code",
        misconception="the graph is always well formed",
        was=(
            "        for problem in lint.structure_problems(self):\n"
            "            raise problem.kind(problem.message)\n"
        ),
        becomes="",
        told="a broken graph may have wrong users",
    ),
    Mutant(
        function="graph.Graph.eliminate_dead_code",
        misconception="a graph does not contain other graphs",
        was=(
            "            changed |= graph.eliminate_dead_code(\n"
            "                is_impure_node, unknown=unknown, effects=effects\n"
            "            )\n"
            "            child.recompile()"
        ),
        becomes="            pass",
        told="dead code must be erased there too",
    ),
    Mutant(
        function="graph.Graph.eliminate_dead_code",
        misconception="a child that had no dead code needs no new code",
        was="""            changed |= graph.eliminate_dead_code(
                is_impure_node, unknown=unknown, effects=effects
            )
            child.recompile()""",
        becomes="""            if graph.eliminate_dead_code(
                is_impure_node, unknown=unknown, effects=effects
            ):
                changed = True
                child.recompile()""",
        told="Recompile the child in any case",
    ),
    Mutant(
        function="graph.Graph.eliminate_dead_code",
        misconception="the child can be recompiled at any time",
        was="""            changed |= graph.eliminate_dead_code(
                is_impure_node, unknown=unknown, effects=effects
            )
            child.recompile()""",
        becomes="""            child.recompile()
            changed |= graph.eliminate_dead_code(
                is_impure_node, unknown=unknown, effects=effects
            )""",
        told="recompile the child, after its graph was cleaned",
    ),
    Mutant(
        function="graph.Graph.eliminate_dead_code",
        misconception="`or` evaluates both sides",
        was="            changed |= graph.eliminate_dead_code(",
        becomes=("            changed = changed or graph.eliminate_dead_code("),
        told="each graph must be cleaned, even if something was erased before",
    ),
    Mutant(
        function="graph.Graph.eliminate_dead_code",
        misconception="the result is that of the last graph",
        was="            changed |= graph.eliminate_dead_code(",
        becomes="            changed = graph.eliminate_dead_code(",
        told="must not make the result False",
    ),
    Mutant(
        function="graph.Graph.eliminate_dead_code",
        misconception="a child graph is cleaned with the default settings",
        was=(
            "                is_impure_node, unknown=unknown, effects=effects\n"
        ),
        becomes="",
        told="clean the child with the same settings",
    ),
    Mutant(
        function="graph.Graph.eliminate_dead_code",
        misconception="every fault that lint finds makes users wrong",
        was="lint.structure_problems(self)",
        becomes="lint.problems(self)",
        told="call lint.structure_problems, not lint.problems",
    ),
    Mutant(
        function="node.Node.replace_all_uses_with",
        misconception="all users are asked, then changed",
        was=(
            "        changed = []\n"
            "        for user in list(self.users):\n"
            "            if delete_user_cb is None or "
            "delete_user_cb(user):\n"
            "                changed.append(user)\n"
            "                user.replace_input_with(self, replace_with)"
        ),
        becomes=(
            "        changed = [user for user in self.users if "
            "delete_user_cb is None or delete_user_cb(user)]\n"
            "        for user in changed:\n"
            "            user.replace_input_with(self, replace_with)"
        ),
        told="and only then ask for the next one",
    ),
    Mutant(
        function="node.Node.replace_all_uses_with",
        misconception="without users there is nothing to do",
        was="        self._check_node(replace_with)",
        becomes=(
            "        self._check_node(replace_with)\n"
            "        if not self.users:\n"
            "            return []"
        ),
        told="what nothing uses yet may be used later",
    ),
    Mutant(
        function="node.Node.replace_all_uses_with",
        misconception="a copy of the old meta is the new node's meta",
        was="            replace_with.meta.update(self.meta)",
        becomes="            replace_with.meta = dict(self.meta)",
        told="copy them into the dict that the node has",
    ),
    Mutant(
        function="graph.Graph.erase_node",
        misconception="an owner is true",
        was="        if self.owning_module is not None:",
        becomes="        if self.owning_module:",
        told="and its hook must be called: ask `is not None`",
    ),
    Mutant(
        function="graph.Graph.erase_node",
        misconception="the list of hooks stays the same while they are called",
        was="""            self._tell_owner("_erase_node_hooks", to_erase)""",
        becomes=(
            "            for hook in self.owning_module._erase_node_hooks:\n"
            "                hook(to_erase)"
        ),
        told="`_tell_owner` goes through a copy of the list",
    ),
    Mutant(
        function="graph.Graph.eliminate_dead_code",
        misconception="what an erased node used is looked at at once",
        was="""        for node in reversed(self._nodes):
            if not node.users and not must_stay(node):
                self.erase_node(node)
                changed = True
""",
        becomes="""        def erase(node: Node) -> bool:
            if node._erased or node.users or must_stay(node):
                return False
            inputs = [*node._inputs]
            self.erase_node(node)
            for one in inputs:
                erase(one)
            return True

        for node in [*reversed(self._nodes)]:
            changed |= erase(node)
""",
        told="goes too deep for Python",
    ),
    Mutant(
        function="node.Node._freeze",
        misconception="without a node there is nothing to protect",
        was="                arg = map_aggregate(arg, visit)\n",
        becomes="""                before = {**inputs}
                inputs.clear()
                copied = map_aggregate(arg, visit)
                arg = copied if inputs else arg
                before.update(inputs)
                inputs.clear()
                inputs.update(before)
""",
        told="Copy all containers, not only those that have nodes",
    ),
    Mutant(
        function="node.Node._connect",
        misconception="a dict of users can be made anew",
        was="            node.users.pop(self, None)",
        becomes=(
            "            node.users = {u: None for u in node.users if "
            "u is not self}"
        ),
        told="with a new dict in its place",
    ),
    Mutant(
        function="node.Node._freeze",
        misconception="what is false is no node",
        was="            if not isinstance(leaf, Node):",
        becomes=(
            "            if not leaf:\n"
            "                return leaf\n"
            "            if not isinstance(leaf, Node):"
        ),
        told="whose truth value nobody can ask for",
    ),
    Mutant(
        function="node.Node._freeze",
        misconception="a node is exactly of type Node",
        was="if not isinstance(leaf, Node):",
        becomes="if type(leaf) is not Node:",
        told="ask `isinstance(leaf, Node)`",
    ),
    Mutant(
        function="node.Node.replace_all_uses_with",
        misconception="a callback that is false is none",
        was="delete_user_cb is None or",
        becomes="not delete_user_cb or",
        told="write `if delete_user_cb is None`",
    ),
    Mutant(
        function="use_def.lint._uses",
        misconception="only the items of args are used",
        was="for arg in node._inputs:",
        becomes="for arg in [a for a in node.args if isinstance(a, Node)]:",
        told="not at the items of its args alone",
    ),
    Mutant(
        function="graph.Graph.eliminate_dead_code",
        misconception="`unknown` is for the graph itself",
        was="unknown=unknown, ",
        becomes="",
        told="must stay in the child's graph, too",
    ),
    Mutant(
        function="graph.Graph.eliminate_dead_code",
        misconception="`effects` is for the graph itself",
        was=(", effects=effects\n            )"),
        becomes=("\n            )"),
        told="and in the child's graph, too",
    ),
    Mutant(
        function="graph.Graph.eliminate_dead_code",
        misconception="only calls can be dead",
        was="not must_stay(node)",
        becomes=(
            "(\n"
            '                node.op.startswith("call") and not '
            "must_stay(node)\n"
            "            )"
        ),
        told="nodes of every opcode",
    ),
    Mutant(
        function="graph.Graph.eliminate_dead_code",
        misconception="a list that changes must be copied before a walk",
        was="for node in reversed(self._nodes):",
        becomes="for node in reversed([*self._nodes]):",
        told="over a copy of the nodes",
    ),
)
"""At least two for each exercise."""
