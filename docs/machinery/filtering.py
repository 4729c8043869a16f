"""Filters of a long list: radio buttons and a rule of CSS for each.

They need no script: a rule hides what does not have the checked value in its
`data-…` attribute, and with it the heading of a group of which none has it.
A link to something that would be hidden shows all.
"""

from __future__ import annotations

import xml.etree.ElementTree as etree
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from docs.machinery.scene import Scene, html


@dataclass(frozen=True)
class Filter:
    """One question, of which one answer is chosen.

    Attributes:
        name: the items have `data-NAME`, a list of values.
        label: what stands before the choices.
        values: value -> what it is called.
        first: the value that is chosen when the page opens; "" for all.
    """

    name: str
    label: str
    values: Mapping[str, str]
    first: str = ""


def draw_filters(scene: Scene, filters: Sequence[Filter], what: str) -> None:
    """Put filters into the page.

    Args:
        scene: the block that draws the list; the filters stand before it.
        filters: the questions.
        what: what the items are.
    """
    rules, fields = [], []
    for one in filters:
        choices = [_choice(one, "", f"all {what}")]
        for value, words in one.values.items():
            choices.append(_choice(one, value, words))
            other = f'[data-{one.name}]:not([data-{one.name}~="{value}"])'
            rules.append(
                f".md-content:has(#show-{one.name}-{value}:checked)"
                f":not(:has({other}:target)) {other}{{display:none}}"
            )
        fields.append(
            f"<fieldset><legend>{html(one.label)}</legend>"
            f"{''.join(choices)}</fieldset>"
        )
    scene.raw(
        scene.parent,
        f"<style>{''.join(rules)}</style>"
        f'<form class="fx-filters" data-search-exclude>{"".join(fields)}'
        "</form>",
    )


def of_group(
    heading: etree.Element, items: Iterable[etree.Element], *names: str
) -> None:
    """Hide a heading whenever all items below it are hidden by one filter.

    Args:
        heading: it gets the values of all items.
        items: what stands below it.
        names: the filters.
    """
    items = list(items)
    for name in names:
        values = " ".join(item.get(f"data-{name}", "") for item in items)
        heading.set(f"data-{name}", " ".join(dict.fromkeys(values.split())))


def _choice(one: Filter, value: str, words: str) -> str:
    """One radio button with its label."""
    checked = " checked" * (value == one.first)
    return (
        f'<label><input type="radio" name="{one.name}" '
        f'id="show-{one.name}-{value or "all"}"{checked}> '
        f"{html(words)}</label>"
    )
