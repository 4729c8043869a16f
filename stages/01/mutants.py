"""Stage 01: likely mistakes, and what the tests say about each."""

from __future__ import annotations

from typing import Final

from stages.manifest import Mutant

MUTANTS: Final = (
    Mutant(
        function="linked_list.linked_list.Link._unlink",
        misconception="it is enough to change the pointer of one neighbour",
        was="        after._prev = before",
        becomes="",
        told="`c._prev` is b and must be a",
    ),
    Mutant(
        function="linked_list.linked_list.Link._unlink",
        misconception="a link that is not in a list points to itself",
        was="        after._prev = before",
        becomes=(
            "        after._prev = before\n"
            "        self._prev = self._next = self"
        ),
        told="has lost its own pointers",
    ),
    Mutant(
        function="linked_list.linked_list.Link._unlink",
        misconception="a link that leaves its place is erased",
        was="        after._prev = before",
        becomes="        after._prev = before\n        self._erased = True",
        told="_unlink marked the link as erased",
    ),
    Mutant(
        function="linked_list.linked_list.Link.prepend",
        misconception="it is enough to set x's pointers and the one before x",
        was="        self._prev = x",
        becomes="",
        told="`root._prev` is b and must be x",
    ),
    Mutant(
        function="linked_list.linked_list.Link.prepend",
        misconception="a link that is inserted leaves its old place by itself",
        was="        if x._next is not x:\n            x._unlink()\n",
        becomes="",
        told="has to leave its old place",
    ),
    Mutant(
        function="linked_list.linked_list.Link.prepend",
        misconception="the neighbour can be read before x has left its place",
        was=(
            "        if x._next is not x:\n"
            "            x._unlink()\n"
            "        before = self._prev\n"
        ),
        becomes=(
            "        before = self._prev\n"
            "        if x._next is not x:\n"
            "            x._unlink()\n"
        ),
        told="where a is right before b already",
    ),
    Mutant(
        function="linked_list.linked_list.Link.prepend",
        misconception="the pointers alone hold the order",
        was="            x._sort_key = _key_between(before, self)",
        becomes="            x._sort_key = before._sort_key",
        told="not between those of b and c",
    ),
    Mutant(
        function="linked_list.linked_list.Link.prepend",
        misconception="the sentinel's key is a neighbour's key like any other",
        was="        is_sentinel = self._sort_key == 0\n",
        becomes="        is_sentinel = False\n",
        told="no link follows that would limit the key",
    ),
    Mutant(
        function="linked_list.linked_list.LinkedList.__iter__",
        misconception="to be safe from edits, walk over a copy",
        was="                yield link\n            link = link._next",
        becomes=(
            "                pass\n"
            "            link = link._next\n"
            "        found = []\n"
            "        link = root._next\n"
            "        while link is not root:\n"
            "            found.append(link)\n"
            "            link = link._next\n"
            "        yield from found"
        ),
        told="find the next link after the loop's body has run",
    ),
    Mutant(
        function="linked_list.linked_list.LinkedList.__iter__",
        misconception="the next link must be read before the body erases this",
        was=(
            "            if not link._erased:\n"
            "                yield link\n"
            "            link = link._next"
        ),
        becomes=(
            "            following = link._next\n"
            "            if not link._erased:\n"
            "                yield link\n"
            "            link = following"
        ),
        told="The loop must visit x and z",
    ),
    Mutant(
        function="linked_list.linked_list.LinkedList.__iter__",
        misconception="no pointer ever points to an erased link",
        was="            if not link._erased:\n                yield link",
        becomes="            yield link",
        told="go past erased links without yielding them",
    ),
    Mutant(
        function="linked_list.linked_list.LinkedList.__iter__",
        misconception="an erased link ends the walk",
        was="        while link is not root:",
        becomes="        while link is not root and not link._erased:",
        told="go past erased links without yielding them",
    ),
    Mutant(
        function="linked_list.linked_list.LinkedList.__reversed__",
        misconception="only the start differs, not the step",
        was="            link = link._prev",
        becomes="            link = link._next",
        told="the last one first",
    ),
    Mutant(
        function="linked_list.linked_list.LinkedList.__reversed__",
        misconception="a reversed copy can stand for a walk backwards",
        was="        while link is not root:",
        becomes="        yield from list(self)[::-1]\n        while False:",
        told="c and b were erased before the loop got to them",
    ),
    Mutant(
        function="linked_list.linked_list.LinkedList.__reversed__",
        misconception="no pointer ever points to an erased link",
        was="            if not link._erased:\n                yield link",
        becomes="            yield link",
        told="c and b were erased before the loop got to them",
    ),
    Mutant(
        function="linked_list.linked_list.LinkedList.__reversed__",
        misconception="the walk ends at the link that was first at its start",
        was=(
            "        link = root._prev\n"
            "        while link is not root:\n"
            "            if not link._erased:\n"
            "                yield link\n"
        ),
        becomes=(
            "        link, first = root._prev, root._next\n"
            "        while link is not root:\n"
            "            if not link._erased:\n"
            "                yield link\n"
            "            if link is first:\n"
            "                return\n"
        ),
        told="The loop must visit x and w, which are ahead of it",
    ),
    Mutant(
        function="linked_list.linked_list.LinkedList.erase",
        misconception="len() counts the links by walking",
        was="        self._len -= 1",
        becomes="",
        told="len() must be 2",
    ),
    Mutant(
        function="linked_list.linked_list.LinkedList.erase",
        misconception="no loop can reach a link that is unlinked",
        was="        link._erased = True\n",
        becomes="",
        told="`_erased` is not True",
    ),
    Mutant(
        function="linked_list.linked_list.LinkedList.erase",
        misconception="an erased link must not point into the list",
        was="        link._erased = True\n",
        becomes=(
            "        link._erased = True\n"
            "        link._prev = link._next = link\n"
        ),
        told="lost its own pointers",
    ),
    Mutant(
        function="linked_list.namespace.Namespace.create_name",
        misconception="each legal identifier is a legal name",
        was="            if name in TAKEN and not _is_builtin(name, obj):",
        becomes="            if False:",
        told="even the first node of this name gets a number",
    ),
    Mutant(
        function="linked_list.namespace.Namespace.create_name",
        misconception="the candidate, not the name returned, is in use now",
        was="        used[name] = None",
        becomes="        used[candidate] = None",
        told="it is in use like any other name",
    ),
    Mutant(
        function="linked_list.namespace.Namespace.create_name",
        misconception="counting can start at one for each node",
        was="            number = counts.get(base, 0)",
        becomes="            number = 0",
        told="store in `_counts` where counting stopped",
    ),
    Mutant(
        function="linked_list.namespace.Namespace.create_name",
        misconception="the next number always gives a free name",
        was="        while name in used:\n            number += 1",
        becomes="        if name in used:\n            number += 1",
        told="goes on until it finds a free name",
    ),
    Mutant(
        function="linked_list.namespace.Namespace.create_name",
        misconception="each call returns a new name",
        was="            self._names[obj] = name",
        becomes="            pass",
        told="return the same name again",
    ),
    Mutant(
        function="linked_list.linked_list._make_room",
        misconception="numbering all links again is simplest",
        was=(
            "    while link._sort_key and "
            "link._sort_key - low <= (len(crowd) + 1) ** 2:"
        ),
        becomes="    while link._sort_key:",
        told="renumber the shortest run whose range is wide enough",
    ),
    Mutant(
        function="linked_list.linked_list._make_room",
        misconception="the sentinel's key is an upper end like any other",
        was="    high = link._sort_key or low + (places + 1) * GAP",
        becomes="    high = link._sort_key",
        told="its order key is not greater",
    ),
    Mutant(
        function="linked_list.linked_list._make_room",
        misconception="one free integer is room enough",
        was="    step = (high - low) // places",
        becomes="    step = 2",
        told="found no free key",
    ),
    Mutant(
        function="linked_list.namespace.Namespace.create_name",
        misconception="an object is true",
        was=(
            "        if obj is not None:\n            self._names[obj] = name"
        ),
        becomes=("        if obj:\n            self._names[obj] = name"),
        told="ask `obj is not None`, not `if obj`",
    ),
    Mutant(
        function="linked_list.namespace.Namespace.create_name",
        misconception="the last number is the highest",
        was="        counts[base] = number",
        becomes="        counts[base] = max(number, counts.get(base, 0))",
        told="holds the last number, not the highest",
    ),
    Mutant(
        function="linked_list.linked_list.Link.prepend",
        misconception="a link with one neighbour on both sides is a new one",
        was="        if x._next is not x:",
        becomes="        if x._next is not x._prev:",
        told="where a is the only link",
    ),
    Mutant(
        function="linked_list.linked_list.LinkedList.__iter__",
        misconception="a list is walked over by one loop at a time",
        was=(
            "        link = root._next\n"
            "        while link is not root:\n"
            "            if not link._erased:\n"
            "                yield link\n"
            "            link = link._next"
        ),
        becomes=(
            "        root.at = root._next\n"
            "        while root.at is not root:\n"
            "            if not root.at._erased:\n"
            "                yield root.at\n"
            "            root.at = root.at._next"
        ),
        told="Each loop has to remember for itself where it is",
    ),
    Mutant(
        function="linked_list.linked_list.LinkedList.__iter__",
        misconception="a walk begins when iter() is called",
        was=(
            "        link = root._next\n"
            "        while link is not root:\n"
            "            if not link._erased:\n"
            "                yield link\n"
            "            link = link._next"
        ),
        becomes=(
            "        def walk(link: LinkT) -> Iterator[LinkT]:\n"
            "            while link is not root:\n"
            "                if not link._erased:\n"
            "                    yield link\n"
            "                link = link._next\n"
            "\n"
            "        return walk(root._next)"
        ),
        told="between `iter(links)` and the first `next`",
    ),
    Mutant(
        function="linked_list.linked_list.LinkedList.__reversed__",
        misconception="a walk begins when reversed() is called",
        was=(
            "        link = root._prev\n"
            "        while link is not root:\n"
            "            if not link._erased:\n"
            "                yield link\n"
            "            link = link._prev"
        ),
        becomes=(
            "        def walk(link: LinkT) -> Iterator[LinkT]:\n"
            "            while link is not root:\n"
            "                if not link._erased:\n"
            "                    yield link\n"
            "                link = link._prev\n"
            "\n"
            "        return walk(root._prev)"
        ),
        told="between `reversed(links)` and the first `next`",
    ),
    Mutant(
        function="linked_list.namespace.Namespace.create_name",
        misconception="a name is its base and its number",
        was="            name, base, number = _parse(candidate)\n",
        becomes=(
            "            name, base, number = _parse(candidate)\n"
            "            if number >= 0:\n"
            '                name = f"{base}_{number}"\n'
        ),
        told="but the name is given out as it was asked for",
    ),
    Mutant(
        function="linked_list.linked_list.LinkedList.erase",
        misconception="the length is counted anew",
        was="self._len -= 1",
        becomes="self._len = sum(1 for _ in self)",
        told="as counting what is left does",
    ),
)
"""At least two for each exercise."""
