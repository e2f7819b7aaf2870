"""The marks of a difference in a drawing of both graphs side by side."""

from __future__ import annotations

import textwrap

from blockgraph.diff.pairing import Pairing
from blockgraph.diff.report import Difference
from blockgraph.drawing.marking import Key, Mark, Marks

WIDTH = 40  # characters of a note in a box


def marks(found: Difference) -> Marks:
    """Units of the left graph without a partner are removed, of the right one added; others with changes are changed.

    A body that is compared with several others is marked as changed where they disagree.
    """
    boxes: dict[Key, Mark] = {}
    for pairing in found.pairings:
        for key, mark in _marks(pairing):
            old = boxes.get(key)
            boxes[key] = mark if old is None or old == mark else Mark("~", (*old.notes, *mark.notes))
        plain = [
            (id(pairing.left.graph), pairing.left.all[i].key) for i, j in pairing.pairs if j not in pairing.touched
        ]
        boxes |= {key: Mark("~") for key in plain if key in boxes and boxes[key].sign == "-"}
    return Marks(boxes, {})


def _marks(pairing: Pairing) -> list[tuple[Key, Mark]]:
    left, right = pairing.left, pairing.right
    told: list[tuple[Key, Mark]] = []
    for i, unit in enumerate(left.all):
        if i not in pairing.forth:
            told.append(((id(left.graph), unit.key), Mark("-")))
        elif pairing.forth[i] in pairing.touched:
            told.append(((id(left.graph), unit.key), Mark("~")))
    for j, unit in enumerate(right.all):
        if j not in pairing.back:
            told.append(((id(right.graph), unit.key), Mark("+")))
        elif j in pairing.touched:
            notes = [line for text in pairing.touched[j] for line in textwrap.wrap(text.replace("->", "→"), WIDTH)]
            told.append(((id(right.graph), unit.key), Mark("~", tuple(notes))))
    return told
