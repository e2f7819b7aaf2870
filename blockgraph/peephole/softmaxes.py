"""The rule for softmax: exponentials of rows less their largest element, divided by their sum."""

from __future__ import annotations

from blockgraph.graph import Node
from blockgraph.ops.arithmetic import Divide, Subtract
from blockgraph.ops.elementwise import Exp
from blockgraph.ops.reduce import Max, Sum
from blockgraph.ops.softmax import Softmax
from blockgraph.peephole.norms import keeps_rows
from blockgraph.peephole.sketch import Rule, Sketch, Step


def softmax(sketch: Sketch, node: Node) -> bool:
    """exp(x - max(x)) / sum(exp(x - max(x)))"""
    if not isinstance(node.op, Divide):
        return False
    above, below = node.inputs
    total, exponentials = sketch.op(below), sketch.op(above)
    if not isinstance(total, Sum) or not isinstance(exponentials, Exp) or sketch.inputs(below) != (above,):
        return False
    (difference,) = sketch.inputs(above)
    if not isinstance(sketch.op(difference), Subtract):
        return False
    x, largest = sketch.inputs(difference)
    top = sketch.op(largest)
    if not isinstance(top, Max) or sketch.inputs(largest) != (x,):
        return False
    if not (keeps_rows(sketch, below, total.axes) and keeps_rows(sketch, largest, top.axes)):
        return False
    return sketch.replaces(node.outputs[0], {above, below, difference, largest}, Step(Softmax(), (x,)))


RULES: tuple[Rule, ...] = (softmax,)
