"""Nodes in order: the ring of links, moving nodes, comparing nodes."""

from __future__ import annotations

import inspect
import random
from typing import TypeAlias

import torch

from tests.parity.harness import Lib, Made, Seen, error, names, program

Ring: TypeAlias = dict[str, tuple[str, str]]
"""For each link's name, the names before and behind it."""


def letters(lib: Lib, text: str) -> list[Made]:
    """A graph with a placeholder a letter: [graph, node, node, …]."""
    g = lib.Graph()
    return [g, *(g.placeholder(letter) for letter in text)]


def links(g: Made) -> Ring:
    """The names before and behind each node, 'root' for the sentinel."""

    def name(link: Made) -> str:
        return "root" if link is g._root else str(link.name)

    around = {n.name: (name(n._prev), name(n._next)) for n in g.nodes}
    return around | {"root": (name(g._root._prev), name(g._root._next))}


def changed(before: Ring, after: Ring) -> list[str]:
    """The keys whose values differ, sorted."""
    keys = before.keys() | after.keys()
    return sorted(k for k in keys if before.get(k) != after.get(k))


@program(claims=("graph-linked-list-not-array",))
def insertion_changes_only_the_neighbours_links(lib: Lib) -> Seen:
    g, _a, _b, c, _d, _e = letters(lib, "abcde")
    before = links(g)
    with g.inserting_before(c):
        g.placeholder("new")
    return changed(before, links(g)), links(g)


@program(claims=("graph-linked-list-not-array", "node-prepend"))
def moving_changes_only_four_neighbours_links(lib: Lib) -> Seen:
    g, _a, b, _c, _d, e, _f = letters(lib, "abcdef")
    before = links(g)
    b.prepend(e)
    return changed(before, links(g)), links(g)


@program(claims=("graph-root-sentinel", "nodes-property-skips-sentinel"))
def sentinel_is_neither_yielded_nor_counted(lib: Lib) -> Seen:
    g = lib.Graph()
    empty = (len(g.nodes), names(g.nodes), g._root in list(g.nodes))
    g.placeholder("x")
    g.output(())
    met = [any(n is g._root for n in g.nodes)]
    met.append(any(n is g._root for n in reversed(g.nodes)))
    return empty, len(g.nodes), names(g.nodes), met


@program(claims=("graph-root-sentinel",))
def sentinel_has_an_opcode_of_its_own_and_no_name(lib: Lib) -> Seen:
    root = lib.Graph()._root
    return type(root).__name__, root.op, root.name, root.target, repr(root)


@program(claims=("graph-circular-ring",))
def ring_leads_through_all_nodes_back_to_the_sentinel(lib: Lib) -> Seen:
    g, *_ = letters(lib, "abcd")
    seen = []
    for way in ("_next", "_prev"):
        link = getattr(g._root, way)
        walk = []
        while link is not g._root:
            walk.append(link.name)
            link = getattr(link, way)
        seen.append(walk)
    first, *_, last = g.nodes
    closed = (g._root._next is first, last._next is g._root)
    return seen, closed, (g._root._prev is last, first._prev is g._root)


@program(claims=("graph-circular-ring",))
def ring_closes_again_when_the_last_node_goes(lib: Lib) -> Seen:
    g, a = letters(lib, "a")
    g.erase_node(a)
    root = g._root
    emptied = (root._next is root, root._prev is root, len(g.nodes))
    g.placeholder("b")
    return emptied, names(g.nodes), names(reversed(g.nodes)), links(g)


@program(claims=("graph-default-insert-at-end",))
def nodes_are_created_at_the_end(lib: Lib) -> Seen:
    g = lib.Graph()
    hook = g._insert == g._root.prepend
    seen = []
    for letter in "abc":
        node = g.placeholder(letter)
        seen.append((names(g.nodes), node._next is g._root))
    return hook, seen, g._insert == g._root.prepend


@program(claims=("graph-init-state",))
def graph_takes_owner_and_tracer_and_starts_empty(lib: Lib) -> Seen:
    signature = inspect.signature(lib.Graph.__init__)
    owner = torch.nn.Module()
    owned, free = lib.Graph(owner), lib.Graph(owning_module=None)
    parameters = [(p.name, p.kind.name) for p in signature.parameters.values()]
    defaults = [
        p.default is None for p in list(signature.parameters.values())[1:]
    ]
    start = (len(free.nodes), free._len, str(free))
    return (
        parameters,
        defaults,
        start,
        owned.owning_module is owner,
        free.owning_module is None,
    )


@program(claims=("graph-init-state",))
def two_graphs_share_no_names(lib: Lib) -> Seen:
    first, second = lib.Graph(), lib.Graph()
    return [names([g.placeholder("x") for g in (first, first, second)])]


@program(
    claims=(
        "graph-init-state",
        "nodes-property-skips-sentinel",
        "node-list-reversed",
    ),
    differs="private-names",
    ours={
        "_used_names": False,
        "_find_nodes_lookup_table": False,
        "_node_list": False,
        "_NodeIter": False,
        "type of graph.nodes": "LinkedList",
    },
)
def side_tables_and_views_of_the_c_layer(lib: Lib) -> Seen:
    g = lib.Graph()
    seen: dict[str, object] = {
        name: hasattr(g, name)
        for name in ("_used_names", "_find_nodes_lookup_table")
    }
    for name in ("_node_list", "_NodeIter"):
        seen[name] = hasattr(lib.graph, name)
    return seen | {"type of graph.nodes": type(g.nodes).__name__}


@program(claims=("nodes-property-skips-sentinel",))
def len_follows_creations_erasures_and_moves(lib: Lib) -> Seen:
    g = lib.Graph()
    counts = [(len(g.nodes), g._len)]
    made: list[Made] = []
    for letter in "abcd":
        made.append(g.placeholder(letter))
        counts.append((len(g.nodes), g._len))
    made[0].prepend(made[3])
    counts.append((len(g.nodes), g._len))
    for node in made[1:3]:
        g.erase_node(node)
        counts.append((len(g.nodes), g._len))
    return counts, names(g.nodes), bool(g.nodes), bool(lib.Graph().nodes)


@program(claims=("nodes-property-skips-sentinel",))
def nodes_is_a_live_view_that_can_be_walked_again(lib: Lib) -> Seen:
    g, *_ = letters(lib, "ab")
    view = g.nodes
    first = names(view)
    g.placeholder("c")
    return first, names(view), names(view), len(view), len(g.nodes)


@program(claims=("nodes-property-skips-sentinel",))
def membership_of_nodes(lib: Lib) -> Seen:
    g, a, b = letters(lib, "ab")
    h, c = letters(lib, "a")
    g.erase_node(b)
    return a in g.nodes, b in g.nodes, c in g.nodes, c in h.nodes


@program(claims=("nodes-property-skips-sentinel",))
def nodes_cannot_be_indexed(lib: Lib) -> Seen:
    g, *_ = letters(lib, "ab")
    return [
        error(lambda: g.nodes[0]).partition(":")[0],
        error(lambda: g.nodes[0:1]).partition(":")[0],
        error(lambda: g.nodes.index(1)).partition(":")[0],
        error(lambda: setattr(g, "nodes", [])).partition(":")[0],
    ]


@program(claims=("node-list-reversed",))
def reversed_walks_back_and_is_an_iterator(lib: Lib) -> Seen:
    g, *_ = letters(lib, "abc")
    backwards: Made = reversed(g.nodes)
    return (
        names(reversed(g.nodes)) == names(g.nodes)[::-1],
        iter(backwards) is backwards,
        error(lambda: len(backwards)).partition(":")[0],
        error(lambda: reversed(backwards)).partition(":")[0],
        names(backwards),
    )


@program(claims=("node-list-reversed", "node-list-cpp-iterator"))
def iterators_are_independent(lib: Lib) -> Seen:
    g, *_ = letters(lib, "abc")
    one, two, back = iter(g.nodes), iter(g.nodes), reversed(g.nodes)
    seen = [next(one).name, next(one).name, next(two).name, next(back).name]
    return seen, (names(one), names(two), names(back))


@program(
    claims=("node-list-cpp-iterator",),
    differs="iterators-end",
    ours=[["a", "b"], [], ["b", "a"], []],
)
def an_iterator_that_has_ended_stays_ended(lib: Lib) -> Seen:
    g, *_ = letters(lib, "ab")
    there, back = iter(g.nodes), reversed(g.nodes)
    return [names(there), names(there), names(back), names(back)]


@program(claims=("node-next-prev",))
def next_and_prev_are_the_neighbours(lib: Lib) -> Seen:
    g, a, b = letters(lib, "ab")
    return (
        (a.next is b, b.prev is a),
        (a.prev is g._root, b.next is g._root),
        error(lambda: setattr(a, "next", b)).partition(":")[0],
        error(lambda: setattr(a, "prev", b)).partition(":")[0],
    )


@program(claims=("node-prepend",))
def prepend_moves_a_later_node_to_the_front(lib: Lib) -> Seen:
    g, p, n, b, x, c = letters(lib, "pnbxc")
    n.prepend(x)
    gap = (b.next is c, c.prev is b, p.next is x, x.next is n)
    return names(g.nodes), names(reversed(g.nodes)), len(g.nodes), gap


@program(claims=("node-prepend", "node-append"))
def moving_to_where_it_is_changes_nothing(lib: Lib) -> Seen:
    g, a, b, c = letters(lib, "abc")
    seen = []
    for move in (
        lambda: b.prepend(a),
        lambda: a.append(b),
        lambda: b.prepend(b),
        lambda: b.append(b),
        lambda: c.append(c),
        lambda: a.prepend(a),
    ):
        seen.append((error(move), names(g.nodes), names(reversed(g.nodes))))
    return seen, len(g.nodes)


@program(claims=("node-append",))
def append_is_prepend_of_the_next(lib: Lib) -> Seen:
    seen = []
    for at in range(5):
        for moved in range(5):
            g, *one = letters(lib, "abcde")
            h, *two = letters(lib, "abcde")
            one[at].append(one[moved])
            two[at].next.prepend(two[moved])
            seen.append((names(g.nodes), names(g.nodes) == names(h.nodes)))
    return seen


@program(claims=("node-append", "graph-default-insert-at-end"))
def append_to_the_last_node_makes_a_new_last_node(lib: Lib) -> Seen:
    g, a, _b, c = letters(lib, "abc")
    c.append(a)
    moved = (names(g.nodes), a.next is g._root)
    g.placeholder("d")
    return moved, names(g.nodes)


@program(claims=("node-prepend",))
def sentinel_can_be_prepended_and_appended_to(lib: Lib) -> Seen:
    g, a, _b, c = letters(lib, "abc")
    g._root.prepend(a)
    to_the_end = names(g.nodes)
    g._root.append(c)
    return to_the_end, names(g.nodes), names(reversed(g.nodes))


@program(claims=("node-move-same-graph",))
def a_node_cannot_move_into_another_graph(lib: Lib) -> Seen:
    g, a, _b = letters(lib, "ab")
    h, c, _d = letters(lib, "cd")
    return (
        [error(lambda: a.append(c), chars=47)],
        [error(lambda: a.prepend(c), chars=47)],
        [error(lambda: g._root.prepend(c)).partition(":")[0]],
        [names(g.nodes), names(reversed(g.nodes)), links(g)],
        [names(h.nodes), names(reversed(h.nodes)), links(h)],
    )


@program(claims=("node-sort-key",))
def nodes_compare_in_list_order(lib: Lib) -> Seen:
    _g, a, b, _c = letters(lib, "abc")
    return [
        (a < b, a <= b, a > b, a >= b, a == b, a != b),
        (b < a, b <= a, b > a, b >= a),
        (a < a, a <= a, a > a, a >= a, a == a),
        (min(b, a).name, max(b, a).name),
        [error(lambda: a < 1), error(lambda: a >= "x")],
    ]


@program(claims=("node-sort-key", "graph-linked-list-not-array"))
def order_holds_after_a_thousand_random_edits(lib: Lib) -> Seen:
    g, *nodes = letters(lib, "abcdef")
    dice = random.Random(7)
    for turn in range(1000):
        at, other = dice.choice(nodes), dice.choice(nodes)
        match dice.randrange(5):
            case 0:
                with g.inserting_before(at):
                    nodes.append(g.placeholder(f"n{turn}"))
            case 1:
                with g.inserting_after(at):
                    nodes.append(g.placeholder(f"n{turn}"))
            case 2:
                at.append(other)
            case 3:
                at.prepend(other)
            case _ if len(nodes) > 3:
                nodes.remove(at)
                g.erase_node(at)
    there = list(g.nodes)
    keys = [n._sort_key for n in there]
    return (
        names(there),
        names(sorted(nodes)) == names(there),
        names(reversed(g.nodes)) == names(there)[::-1],
        keys == sorted(keys) and len(set(keys)) == len(keys),
        len(g.nodes),
    )


@program(claims=("nodes-not-in-sets",))
def nodes_hash_by_identity_and_a_dict_keeps_their_order(lib: Lib) -> Seen:
    g, a, b, c = letters(lib, "abc")
    kept = dict.fromkeys([c, a, b, a, c])
    same = (hash(a) == hash(a), a in kept, g.placeholder("d") in kept)
    h, twin = letters(lib, "a")
    return names(kept), same, twin in kept, len({a, b, twin}), names(h.nodes)
