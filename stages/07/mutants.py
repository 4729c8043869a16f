"""Stage 07's mutants: what people get wrong when they write the rewriter."""

from __future__ import annotations

from typing import Final

from stages.manifest import Mutant

_MATCH_NODE = "passes.utils.matcher_utils.Search.match_node"
_IS_CONVEX = "passes.utils.matcher_utils.is_convex"
_INSERT = "rewriting.replacing.Edit.insert"
_LOOK_AGAIN = "rewriting.rules.Worklist.look_again"

MUTANTS: Final = (
    Mutant(
        function=_MATCH_NODE,
        misconception="If op, target and arguments agree, it is a match.",
        was="if 0 <= asked.user_count < len(found.users):",
        becomes="if False:",
        told="must not have users outside",
    ),
    Mutant(
        function=_MATCH_NODE,
        misconception="Both nodes have equally many users.",
        was="if 0 <= asked.user_count < len(found.users):",
        becomes="if 0 <= asked.user_count != len(found.users):",
        told="may have fewer: none of them is outside",
    ),
    Mutant(
        function=_MATCH_NODE,
        misconception="No node of a match may have users outside.",
        was="if 0 <= asked.user_count < len(found.users):",
        becomes="if max(asked.user_count, 1) < len(found.users):",
        told="others may use it",
    ),
    Mutant(
        function=_MATCH_NODE,
        misconception="Two nodes of the pattern may stand for one.",
        was="if found in self.partners:",
        becomes="if False:",
        told="cannot both be the one neg",
    ),
    Mutant(
        function=_MATCH_NODE,
        misconception="A node that was met before fits again.",
        was='return "" if known is found else f"{sought} is {known} already"',
        becomes='return ""',
        told="it has its partner already",
    ),
    Mutant(
        function=_MATCH_NODE,
        misconception="Operands have one order.",
        was="if commutes:",
        becomes="if False:",
        told="a sum may have its",
    ),
    Mutant(
        function=_IS_CONVEX,
        misconception="A path that comes back has one node outside.",
        was="rest.extend(node.users)",
        becomes="pass",
        told="Looking one user far is not enough",
    ),
    Mutant(
        function=_IS_CONVEX,
        misconception="Every match has an operation.",
        was="""    if not nodes:
        return True
""",
        becomes="",
        told="the set is empty",
    ),
    Mutant(
        function=_IS_CONVEX,
        misconception="A user inside of the set is a way back.",
        was="[user for user in users if user not in nodes]",
        becomes="list(users)",
        told="does not leave it",
    ),
    Mutant(
        function=_IS_CONVEX,
        misconception="Whatever leaves comes back.",
        was="(node.users)\n    return True",
        becomes="(node.users)\n    return not seen",
        told="as long as nothing comes back",
    ),
    Mutant(
        function=_INSERT,
        misconception="The values of the match are still those of the graph.",
        was="[self.current(value) for value in match.placeholder_nodes]",
        becomes="list(match.placeholder_nodes)",
        told="has to use its replacement",
    ),
    Mutant(
        function=_INSERT,
        misconception="New nodes go where the old ones began.",
        was="self.graph.inserting_before(place)",
        becomes="self.graph.inserting_before(next(iter(rewrite.operations)))",
        told="before their future users",
    ),
    Mutant(
        function=_INSERT,
        misconception="Only what is returned has to be erased.",
        was="self.dead.update(rewrite.operations)",
        becomes="self.dead.update(dict.fromkeys(match.returning_nodes))",
        told="All operations of the match are dead",
    ),
    Mutant(
        function=_INSERT,
        misconception="Outputs are those of the template.",
        was="known[out] if isinstance(out, Node) else out for",
        becomes="out for",
        told="and not the template's placeholder",
    ),
    Mutant(
        function=_INSERT,
        misconception="A path means the same in every module.",
        was="new.target = made.renamed.get(path, path)",
        becomes="new.target = path",
        told="the copied get_attr must fetch that one",
    ),
    Mutant(
        function=_LOOK_AGAIN,
        misconception="Only new nodes can be in new matches.",
        was="map_arg(new, lambda node: touched.setdefault(node, 0))",
        becomes="map_arg(new, lambda node: None)",
        told="nothing in it is new",
    ),
    Mutant(
        function=_LOOK_AGAIN,
        misconception="A new match ends at what is new.",
        was="if depth < self.reach:",
        becomes="if depth < 1:",
        told="two users below",
    ),
    Mutant(
        function=_LOOK_AGAIN,
        misconception="Losing a user changes nothing.",
        was="map_arg(tuple(done.match.placeholder_nodes), lost_a_user)",
        becomes="pass",
        told="the inputs of a match lose a user",
    ),
    Mutant(
        function=_LOOK_AGAIN,
        misconception="To be safe, everything below is looked at again.",
        was="if depth < self.reach:",
        becomes="if depth:",
        told="stop at a pattern's size",
    ),
    Mutant(
        function=_MATCH_NODE,
        misconception="A pair is a pair, whatever its arguments.",
        was="self.stack += pairs",
        becomes="pass",
        told="matching goes on with the operands",
    ),
    Mutant(
        function=_MATCH_NODE,
        misconception="An inner node has one user.",
        was="if 0 <= asked.user_count < len(found.users):",
        becomes="if len(found.users) > 1 and asked.user_count >= 0:",
        told="both users may be in the match",
    ),
    Mutant(
        function=_INSERT,
        misconception="New nodes are in the graph, and that will do.",
        was="rewrite.made.append(new)",
        becomes="pass",
        told="rewrite.made lists the new nodes",
    ),
    Mutant(
        function=_INSERT,
        misconception="Users of the old nodes find the new by their place.",
        was="self.replace(gone, came)",
        becomes="pass",
        told="The users of relu are to use clamp",
    ),
    Mutant(
        function=_INSERT,
        misconception="A replacement returns nodes.",
        was="known[out] if isinstance(out, Node) else out for",
        becomes="known.get(out) for",
        told="which is not a node of the template",
    ),
    Mutant(
        function=_INSERT,
        misconception="Meta is copied with the node.",
        was="if self.carry_meta:",
        becomes="if False:",
        told="the new nodes say what they replace",
    ),
    Mutant(
        function=_MATCH_NODE,
        misconception="Names are the matcher's business, not match_node's.",
        was="if pair is None and self.named(sought, found):",
        becomes="if pair is None and not self.name:",
        told="Only an anchor may be paired for its name",
    ),
    Mutant(
        function=_MATCH_NODE,
        misconception="A name will do anywhere.",
        was="pair is None and self.named(sought, found)",
        becomes="pair is None and self.name in found.name",
        told="Only an anchor may be paired for its name",
    ),
    Mutant(
        function=_MATCH_NODE,
        misconception="Arguments side by side are equally many.",
        was="if pair is None or len(pair[0]) != len(pair[1]):",
        becomes="if pair is None:",
        told="two sequences of different lengths, and then nothing is paired",
    ),
    Mutant(
        function=_MATCH_NODE,
        misconception="With normalize, operands may be exchanged.",
        was="if commutes:",
        becomes="if len(pairs) == 2:",
        told="Only where self.commutes",
    ),
    Mutant(
        function=_IS_CONVEX,
        misconception="A graph is a tree.",
        was="            seen.add(node)\n",
        becomes="",
        told="keep what you have seen",
    ),
    Mutant(
        function=_INSERT,
        misconception="A match stays what it was when it was found.",
        was="        show_inputs(rewrite, values)\n",
        becomes="",
        told="tell `show_inputs`",
    ),
    Mutant(
        function=_MATCH_NODE,
        misconception="A choice is noted as soon as it is known.",
        was="""        self.bind(sought, found)
        pairs = list(zip(*pair, strict=True))
        pairs.reverse()
        if commutes:
            exchanged = [*self.stack, *_exchanged(pairs)]
            self.choices.append((exchanged, len(self.nodes_map)))
""",
        becomes="""        pairs = list(zip(*pair, strict=True))
        pairs.reverse()
        if commutes:
            exchanged = [*self.stack, *_exchanged(pairs)]
            self.choices.append((exchanged, len(self.nodes_map)))
        self.bind(sought, found)
""",
        told="bind the node before you count them",
    ),
    Mutant(
        function=_MATCH_NODE,
        misconception="A choice is about the operands of one node.",
        was="exchanged = [*self.stack, ",
        becomes="exchanged = [",
        told="A choice is the whole stack",
    ),
    Mutant(
        function=_LOOK_AGAIN,
        misconception="Of three nodes in a row the last is two steps off.",
        was="if depth < self.reach:",
        becomes="if depth < self.reach - 1:",
        told="a step of one is less",
    ),
    Mutant(
        function=_LOOK_AGAIN,
        misconception="An inner node of a pattern has one user.",
        was="if len(node.users) <= self.reach:",
        becomes="if len(node.users) <= 1:",
        told="even if it still has several",
    ),
    # -- match_from ----------------------------------------------------------
    Mutant(
        function="passes.utils.matcher_utils.Search.match_from",
        misconception="A failed pair ends the search.",
        was="""                if not self.choices:
                    return False""",
        becomes="                return False",
        told="go on at the last choice",
    ),
    Mutant(
        function="passes.utils.matcher_utils.Search.match_from",
        misconception="Choices that are left do no harm.",
        was="self.stack, self.choices = [(anchor, node)], []",
        becomes="self.stack = [(anchor, node)]",
        told="begin with no choices",
    ),
    Mutant(
        function="passes.utils.matcher_utils.Search.match_from",
        misconception="The other order begins with what is paired.",
        was="                self.backtrack(mark)\n",
        becomes="",
        told="without what was paired since",
    ),
    Mutant(
        function="passes.utils.matcher_utils.Search.match_from",
        misconception="Only nodes can differ.",
        was="problem = self.compare(sought, found)",
        becomes='problem = ""',
        told="what `compare` answers must end the search",
    ),
    Mutant(
        function=_MATCH_NODE,
        misconception="A partner is never None.",
        was="if sought in self.nodes_map:",
        becomes="if self.nodes_map.get(sought) is not None:",
        told="what is there may be None",
    ),
    Mutant(
        function=_MATCH_NODE,
        misconception="The pattern knows what commutes.",
        was="self.commutes(asked, found)",
        becomes="asked.commutes",
        told="their order counts",
    ),
    Mutant(
        function=_INSERT,
        misconception="Inputs of one name belong together.",
        was="known = dict(zip(made.placeholders, values, strict=True))",
        becomes="""names = [one.name for one in rewrite.inputs]
        known = {
            one: values[
                names.index(one.name) if one.name in names else place
            ]
            for place, one in enumerate(made.placeholders)
        }""",
        told="whatever they are called",
    ),
    Mutant(
        function=_LOOK_AGAIN,
        misconception="What waits already has been gone through.",
        was="if user not in touched:",
        becomes="if user not in touched and user not in self.waiting:",
        told="go on below it all the same",
    ),
    Mutant(
        function=_LOOK_AGAIN,
        misconception="An input is a node or a constant.",
        was="map_arg(tuple(done.match.placeholder_nodes), lost_a_user)",
        becomes="""for one in done.match.placeholder_nodes:
            if isinstance(one, Node):
                lost_a_user(one)""",
        told="`map_arg` finds nodes at any depth",
    ),
    Mutant(
        function=_LOOK_AGAIN,
        misconception="All inputs are to be looked at.",
        was="if len(node.users) <= self.reach:",
        becomes="if True:",
        told="no pattern has so many nodes",
    ),
    Mutant(
        function="passes.utils.matcher_utils.is_convex",
        misconception="the users of one node lead out",
        was="(user for node in nodes for user in node.users)",
        becomes="[*next(iter(nodes)).users]",
        told="not of the first one",
    ),
    Mutant(
        function="rewriting.replacing.Edit.insert",
        misconception="a match returns one value",
        was=(
            "        for gone, came in zip(match.returning_nodes, "
            "outputs, strict=True):\n"
            "            self.replace(gone, came)"
        ),
        becomes="        self.replace(match.returning_nodes[0], outputs[0])",
        told="not only the first",
    ),
    Mutant(
        function="passes.utils.matcher_utils.Search.match_node",
        misconception="a wildcard takes what is taken",
        was=(
            "        if found in self.partners:\n"
            '            return f"{found} is paired with another node of '
            'the pattern"\n'
            "        asked = self.pattern.nodes[sought]\n"
            "        if asked.wildcard:\n"
            "            self.bind(sought, found)\n"
            '            return ""'
        ),
        becomes=(
            "        asked = self.pattern.nodes[sought]\n"
            "        if asked.wildcard:\n"
            "            self.bind(sought, found)\n"
            '            return ""\n'
            "        if found in self.partners:\n"
            '            return f"{found} is paired with another node of '
            'the pattern"'
        ),
        told="before you let a wildcard take a node",
    ),
    Mutant(
        function="passes.utils.matcher_utils.Search.match_node",
        misconception="a node has as many users as it has uses",
        was="len(found.users)",
        becomes=(
            "sum([*one._args, *one._kwargs.values()].count(found) "
            "for one in found.users)"
        ),
        told="That is one user, and user_count is 1",
    ),
    Mutant(
        function="passes.utils.matcher_utils.is_convex",
        misconception="a walk along users may call itself",
        was="""    users = (user for node in nodes for user in node.users)
    rest = [user for user in users if user not in nodes]
    while rest:
        node = rest.pop()
        if node in nodes:
            return False
        if node not in seen and node < last:
            seen.add(node)
            rest.extend(node.users)
    return True
""",
        becomes="""
    def comes_back(node: Node) -> bool:
        if node in nodes or node in seen or not node < last:
            return node in nodes
        seen.add(node)
        return any(comes_back(user) for user in node.users)

    users = [user for node in nodes for user in node.users]
    return not any(comes_back(user) for user in users if user not in nodes)
""",
        told="goes too deep for Python: keep what is still to be looked at",
    ),
    Mutant(
        function="passes.utils.matcher_utils.Search.match_from",
        misconception="the next pair is another call of the same function",
        was="""        self.stack, self.choices = [(anchor, node)], []
        while self.stack:
            sought, found = self.stack.pop()
            if isinstance(sought, Node) and isinstance(found, Node):
                problem = self.match_node(sought, found)
            else:
                problem = self.compare(sought, found)
            if problem:
                self.note(problem, sought, found)
                if not self.choices:
                    return False
                self.stack, mark = self.choices.pop()
                self.backtrack(mark)
        return True
""",
        becomes="""        self.stack, self.choices = [(anchor, node)], []

        def go_on() -> bool:
            if not self.stack:
                return True
            sought, found = self.stack.pop()
            if isinstance(sought, Node) and isinstance(found, Node):
                problem = self.match_node(sought, found)
            else:
                problem = self.compare(sought, found)
            if problem:
                self.note(problem, sought, found)
                if not self.choices:
                    return False
                self.stack, mark = self.choices.pop()
                self.backtrack(mark)
            return go_on()

        return go_on()
""",
        told="take the pairs from the stack in a loop",
    ),
    Mutant(
        function="rewriting.replacing.Edit.insert",
        misconception="only an input that is a node was replaced",
        was="self.current(value) for value in match.placeholder_nodes",
        becomes=(
            "self.current(value) if isinstance(value, Node) else value "
            "for value in match.placeholder_nodes"
        ),
        told="which looks into lists, and not only for nodes",
    ),
    Mutant(
        function="rewriting.rules.Worklist.look_again",
        misconception="a node is replaced by a node or a constant",
        was="map_arg(new, lambda node: touched.setdefault(node, 0))",
        becomes="""if isinstance(new, Node):
                touched.setdefault(new, 0)""",
        told="the list took the place of cat",
    ),
    Mutant(
        function="passes.utils.matcher_utils.Search.match_from",
        misconception="the stack is empty at first",
        was="self.stack, self.choices = [(anchor, node)], []",
        becomes=(
            "self.choices = []\n        self.stack.append((anchor, node))"
        ),
        told="which is not part of this one",
    ),
    Mutant(
        function="rewriting.replacing.Edit.insert",
        misconception="inputs were paired in their order",
        was="for value in match.placeholder_nodes]",
        becomes=(
            "for value in [\n"
            "            found\n"
            "            for sought, found in match.nodes_map.items()\n"
            '            if sought.op == "placeholder"\n'
            "        ]]"
        ),
        told="Nor does it matter which was paired first",
    ),
    Mutant(
        function="rewriting.replacing.Edit.insert",
        misconception="None is not a replacement",
        was="            self.replace(gone, came)",
        becomes=(
            "            if came is not None:\n"
            "                self.replace(gone, came)"
        ),
        told="is the constant None",
    ),
    Mutant(
        function="rewriting.replacing.Edit.insert",
        misconception="all paths have other names",
        was="made.renamed.get(path, path)",
        becomes="made.renamed[path]",
        told="what is not in it keeps its path",
    ),
    Mutant(
        function="rewriting.replacing.Edit.insert",
        misconception="a copy has the meta of its original",
        was="                rewrite.made.append(new)",
        becomes=(
            "                new.meta = node.meta\n"
            "                rewrite.made.append(new)"
        ),
        told="shares the dict `meta`",
    ),
    Mutant(
        function="rewriting.rules.Worklist.look_again",
        misconception="any order of the walk will do",
        was="rest.popleft()",
        becomes="rest.pop()",
        told="or the longer way is counted",
    ),
    Mutant(
        function="rewriting.rules.Worklist.look_again",
        misconception="the walk can call itself for users",
        was=(
            "            if depth < self.reach:\n"
            "                for user in node.users:\n"
            "                    if user not in touched:\n"
            "                        touched[user] = depth\n"
            "                        rest.append(user)"
        ),
        becomes=(
            "            def below(n: Node, depth: int) -> None:\n"
            "                for user in n.users:\n"
            "                    if depth < self.reach and user not in "
            "touched:\n"
            "                        touched[user] = depth\n"
            "                        self.waiting[user] = None\n"
            "                        below(user, depth + 1)\n"
            "\n"
            "            below(node, depth)"
        ),
        told="or the longer way is counted",
    ),
)
