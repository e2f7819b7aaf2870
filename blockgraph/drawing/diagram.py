"""What a drawing shows, before anything is placed: boxes, the plates around them and the wires between."""

from __future__ import annotations

from dataclasses import field
from typing import Literal

from blockgraph.dims import Shape
from blockgraph.drawing.marking import SHOWN, Key, Mark
from blockgraph.records import dataclass

Look = Literal["box", "circle", "pill", "port", "input", "output"]
FIGURE = 0


@dataclass(frozen=True, slots=True)
class Wire:
    """A value on its way: the box that makes it, its shape there, and its shape in the words of who reads it.

    The two differ where a block names an axis anew: it reads as (B, T, C) what was made as (B, S, C). `note` is what
    stands beside it in place of the shape, `name` what it is called where it enters, `called` what it is
    called where it begins.
    """

    box: int
    shape: Shape | None = None
    seen: Shape | None = None
    note: str = ""
    name: str = ""
    called: str = ""


@dataclass(frozen=True, slots=True)
class Box:
    """One thing that is drawn: a part, an op written in an equation, an input or an output.

    `direct` marks an op that stands in an equation itself; only such ops may sit on a residual rail. `toll` marks what
    stands on the residual highway. `key` says what in the graph it is drawn for; an output by what makes it. `trunk` is
    the operand that comes from below where the order of operands matters.
    """

    title: str
    look: Look = "box"
    family: str = "other"
    details: tuple[str, ...] = ()
    inputs: tuple[Wire, ...] = ()
    plate: int = FIGURE
    direct: bool = False
    mark: Mark | None = None
    toll: bool = False
    key: Key | None = None
    trunk: int | None = None

    @property
    def is_plus(self) -> bool:
        """Whether it is a circled plus."""
        return self.look == "circle" and self.title == "+"

    @property
    def text(self) -> tuple[str, tuple[str, ...]]:
        """The title with the sign of its mark, and the small lines under it."""
        details = (*self.details, "on the highway") if self.toll and self.look == "box" else self.details
        if self.mark is None:
            return self.title, details
        return f"{SHOWN[self.mark.sign]} {self.title}", (*details, *self.mark.notes)


@dataclass(frozen=True, slots=True)
class Plate:
    """A frame around boxes: a block, a part that is opened, or a stack with its number of layers.

    Plate 0 is the figure itself. `key` says what is inside: the scope of a block or a part, or the body of a stack.
    """

    parent: int | None
    title: str = ""
    details: tuple[str, ...] = ()
    kind: Literal["figure", "block", "part", "stack"] = "block"
    key: Key | None = None
    family: str = ""
    mark: Mark | None = None
    toll: bool = False

    @property
    def text(self) -> tuple[str, tuple[str, ...]]:
        """The title with the sign of its mark, and the small lines under it."""
        details = (*self.details, "on the highway") if self.toll else self.details
        if self.mark is None:
            return self.title, details
        return f"{SHOWN[self.mark.sign]} {self.title}", (*details, *self.mark.notes)


@dataclass(slots=True)
class Diagram:
    """The boxes of one graph in an order in which they can run, and the plates.

    `layered`: it has stacks. `fine`: every op is drawn.
    """

    boxes: list[Box] = field(default_factory=list)
    plates: list[Plate] = field(default_factory=list)
    layered: bool = False
    fine: bool = False

    def add(self, box: Box) -> int:
        """Append a box and return its number."""
        self.boxes.append(box)
        return len(self.boxes) - 1

    def frame(self, plate: Plate) -> int:
        """Append a plate and return its number."""
        self.plates.append(plate)
        return len(self.plates) - 1

    def around(self, plate: int) -> list[int]:
        """The plate and all plates around it, innermost first."""
        found: list[int] = []
        step: int | None = plate
        while step is not None:
            found.append(step)
            step = self.plates[step].parent
        return found

    def depth(self, plate: int) -> int:
        """The number of plates around a plate, itself included."""
        return len(self.around(plate))

    def common(self, left: int, right: int) -> int:
        """The innermost plate that holds both plates."""
        outer = set(self.around(left))
        return next(plate for plate in self.around(right) if plate in outer)
