"""Draws a question with all its answers: `/// choose`, or one: `/// still`.

The answers are radio buttons, and a rule of CSS shows what belongs to the one
that is checked; so it needs no script.  All outcomes stand in the page.
"""

from __future__ import annotations

import json
import xml.etree.ElementTree as etree

from docs.machinery import running
from docs.machinery.directives import Kind
from docs.machinery.scene import Block, Scene, element, html
from docs.machinery.stepper import Data, draw_panel, draw_shot


def _choose(scene: Scene) -> etree.Element:
    """A question and its answers, and the prose as a caption."""
    target = scene.directive.argument
    asked: Data = json.loads(running.film(target, "choices"))
    if len(asked["labels"]) < 2:
        raise scene.error("a choice needs two answers at least")
    name = target.rpartition(".")[2].replace("_", "-")
    box = element(scene.parent, "div", css="fx-film")
    scene.raw(
        box,
        f'<div class="fx-choose" id="{name}" data-search-exclude>'
        f"{_rules(name, len(asked['labels']))}{_question(name, asked)}"
        f'<div class="fx-answers">{_answers(asked)}</div></div>',
    )
    return element(box, "div", css="fx-caption")


def _rules(name: str, count: int) -> str:
    """Which answer is shown while which button is checked."""
    rules = [
        f"#{name}:has(#{name}-{k}:checked) "
        f".fx-answers>:nth-child({k}){{visibility:visible}}"
        for k in range(1, count + 1)
    ]
    return f"<style>{''.join(rules)}</style>"


def _question(name: str, asked: Data) -> str:
    """The buttons; the first is checked."""
    labels = [
        f'<label><input type="radio" name="{name}" id="{name}-{k}"'
        f"{' checked' * (k == 1)}> <code>{html(label)}</code></label>"
        for k, label in enumerate(asked["labels"], 1)
    ]
    return (
        f'<form class="fx-filters"><fieldset><legend>{html(asked["question"])}'
        f"</legend>{''.join(labels)}</fieldset></form>"
    )


def _answers(asked: Data) -> str:
    """What comes of each answer."""
    return "".join(
        f'<div role="group" aria-label="{html(label)}">'
        f"{draw_shot(asked, shot)}</div>"
        for label, shot in zip(asked["labels"], asked["shots"], strict=True)
    )


def _still(scene: Scene) -> etree.Element:
    """What comes of one answer, in the margin."""
    asked: Data = json.loads(running.film(scene.directive.argument, "choices"))
    shots = dict(zip(asked["labels"], asked["shots"], strict=True))
    label = scene.directive.option("of")
    if label not in shots:
        raise scene.error(f"there is no {label!r}: {', '.join(shots)}")
    wide = scene.directive.flag("wide")
    css = "fx-film" if wide else "fx-figure fx-beside"
    box = element(scene.parent, "div", css=css)
    shot = shots[label]
    scene.raw(box, draw_panel(shot["say"], shot))
    return box


BLOCKS = {
    "choose": Block(Kind(True, {}, "prose"), _choose),
    "still": Block(Kind(True, {"of": True, "wide": False}, "none"), _still),
}
