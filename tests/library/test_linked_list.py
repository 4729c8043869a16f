"""Stage 01: the ring of links beside a Python list that does the same."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fx.linked_list.linked_list import GAP, Link, LinkedList
from fx.linked_list.ordered_graph import NamedNode, OrderedGraph


class Item(Link):
    """A link with a number, so that a failure can be read."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number

    def __repr__(self) -> str:
        return str(self.number)


def ring(count: int) -> tuple[LinkedList[Item], list[Item]]:
    """A list of items 0 … count-1, and the items."""
    root = Item(-1)
    links = LinkedList(root)
    items = [Item(number) for number in range(count)]
    for item in items:
        root.prepend(item)
        links._len += 1
    return links, items


def check(links: LinkedList[Item], expected: list[Item]) -> None:
    """The list reads as expected both ways, and the keys are in order."""
    assert list(links) == expected
    assert list(reversed(links)) == expected[::-1]
    assert len(links) == len(expected)
    keys = [item._sort_key for item in expected]
    assert all(a < b for a, b in zip([0, *keys], keys, strict=False))
    for item in (*expected, links._root):
        assert item._next._prev is item
        assert item._prev._next is item


EDITS = st.lists(
    st.tuples(
        st.sampled_from(["insert before", "insert after", "erase", "move"]),
        st.integers(0, 10**6),
        st.integers(0, 10**6),
    ),
    max_size=60,
)


@settings(max_examples=200, deadline=None)
@given(EDITS)
def test_any_edits_do_what_a_python_list_does(
    edits: list[tuple[str, int, int]],
) -> None:
    links, model = ring(4)
    for step, (edit, i, j) in enumerate(edits):
        if not model:
            break
        place = model[i % len(model)]
        if edit == "erase":
            links.erase(place)
            model.remove(place)
        elif edit == "move":
            moved = model[j % len(model)]
            place.append(moved)
            if moved is not place:
                model.remove(moved)
                model.insert(model.index(place) + 1, moved)
        else:
            new = Item(100 + step)
            (place.prepend if edit == "insert before" else place.append)(new)
            links._len += 1
            behind = edit == "insert after"
            model.insert(model.index(place) + behind, new)
        check(links, model)


@pytest.mark.parametrize("where", ["front", "before last", "after first"])
def test_keys_stay_in_order_however_often_one_place_is_used(
    where: str,
) -> None:
    """Inserting at one place uses up its keys; they are spread again."""
    links, (first, last) = ring(2)
    model = [first, last]
    for number in range(3_000):
        new = Item(number)
        if where == "front":
            links._root.append(new)
            model.insert(0, new)
        elif where == "before last":
            last.prepend(new)
            model.insert(len(model) - 1, new)
        else:
            first.append(new)
            model.insert(1, new)
        links._len += 1
    check(links, model)
    assert max(x._sort_key for x in model) < GAP * 10**6
    shuffled = random.Random(0).sample(model, len(model))
    assert sorted(shuffled) == model


def test_a_graph_without_values() -> None:
    """What stage 01 can do by itself: build, edit, walk and print."""
    graph = OrderedGraph(NamedNode)
    x = graph.create_node("placeholder", "x")
    graph.create_node("output", "output")
    with graph.inserting_after(x):
        graph.create_node("call_method", "relu")
    with graph.inserting_before(x):
        weight = graph.create_node("get_attr", "layer.0.weight")
    assert str(graph) == (
        "graph():\n"
        "    %layer_0_weight = get_attr[target=layer.0.weight]\n"
        "    %x = placeholder[target=x]\n"
        "    %relu = call_method[target=relu]\n"
        "    %output = output[target=output]"
    )
    graph.erase_node(weight)
    assert [n.name for n in graph.nodes] == ["x", "relu", "output"]
    with pytest.raises(RuntimeError, match="not in this graph"):
        graph.erase_node(weight)
    with pytest.raises(AssertionError, match="was erased"):
        graph.inserting_before(weight)
