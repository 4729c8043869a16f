"""Stage 01, step by step: a link is moved, put in and erased."""

from __future__ import annotations

from dataclasses import replace

from docs.machinery.film import Arc, Film, Row
from fx.linked_list.ordered_graph import NamedNode, OrderedGraph


def film() -> Film:
    """The ring, seen through its pointers, under four edits."""
    steps = Film(rows="Links: _prev and _next")
    graph = OrderedGraph(NamedNode)
    ring = [graph._root]
    shoot(steps, "An empty graph: the sentinel is its own neighbour.", ring)
    x = graph.create_node("placeholder", "x")
    ring.append(x)
    shoot(steps, "x goes before the sentinel, which is the end.", ring)
    add = graph.create_node("call_method", "add")
    ring.append(add)
    relu = graph.create_node("call_method", "relu")
    ring.append(relu)
    shoot(
        steps,
        "Each new link goes before the sentinel, which is the end: x, then add "
        "and relu.",
        ring,
    )
    neg = graph.create_node("call_method", "neg")
    ring.append(neg)
    shoot(steps, "neg is put at the end as well.", ring)
    add.prepend(neg)
    shoot(
        steps,
        "add.prepend(neg): neg leaves its place (relu and the sentinel "
        "close the gap), and goes between x and add.",
        ring,
    )
    graph.erase_node(add)
    shoot(
        steps,
        "erase_node(add): neg and relu close the gap. add keeps its own "
        "pointers, so a loop that is at add finds relu next.",
        ring,
    )
    return steps


def shoot(film: Film, say: str, links: list[NamedNode[object]]) -> None:
    """Show links in the order of the ring, the erased ones behind."""
    root = links[0]
    order = [root]
    while order[-1].next is not root:
        order.append(order[-1].next)
    rows = [row(link) for link in order]
    for link in links:
        if link not in order:
            place = order.index(link.prev) + 1
            gone = replace(row(link), note="erased", mark="gone")
            rows.insert(place, gone)
    arcs = [Arc(name(link), name(link.next)) for link in order]
    film.shot(say, rows, arcs)


def row(link: NamedNode[object]) -> Row:
    """A link and where it leads."""
    around = f"_prev: {name(link.prev):9} _next: {name(link.next):9}"
    return Row(name(link), around)


def name(link: NamedNode[object]) -> str:
    """A link's name; the sentinel has none of its own."""
    return link.name or "sentinel"
