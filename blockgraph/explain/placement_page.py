"""A placement explained: where the norms stand, as the equations it writes."""

from __future__ import annotations

from blockgraph.explain.table import WIDTH, fenced, section, wrapped_words
from blockgraph.explain.written_out import wrapped
from blockgraph.placement import NAMED, PLACES, Group, Member, wire

LAW = "x = after( skip_scale * s + sum_i branch_scale_i * output_i( f_i( input_i(s) ) ) )"
WHERE = {"input": "before the sublayer", "output": "behind the sublayer", "after": "behind the sum with the skip path"}


def placement_text(name: str, width: int = WIDTH) -> str:
    """One of the named placements with the equations of two sublayers, and of two side by side."""
    places = NAMED[name]
    listed = [f"{place}: {WHERE[place]}" for place in PLACES if place in places]
    pair = (_member("f", 1, name), _member("g", 2, name))
    lines = [f"{name}: a placement, for the key `placement` of a block or a sublayer"]
    lines += ["", "It follows the law", *(f"  {line}" for line in wrapped(LAW, width - 2))]
    words = "where s is the stream; `residual: normed` makes it the normalised copy, `residual: none` leaves it out."
    lines += wrapped_words(words, width)
    lines += section("Its norms", listed or ["none"])
    lines += section("Sublayers f and g, one after the other", [wire(_group((one,))) for one in pair])
    lines += section("Sublayers f and g, in parallel", fenced(wire(_group(pair))))
    lines += section("Example", fenced(_example(name)))
    return "\n".join(lines) + "\n"


def _member(part: str, number: int, name: str) -> Member:
    return Member(part, number, NAMED[name])


def _group(members: tuple[Member, ...]) -> Group:
    return Group(members, "x", after="after" in members[0].places)


def _example(name: str) -> str:
    norm = "  norm: layer_norm\n" if NAMED[name] else ""
    return (
        f"dims: {{C: 64, H: 4}}\nblock:\n{norm}  placement: {name}\n  sublayers:\n"
        "    - {kind: attention, heads: H}\n    - {kind: feed_forward, hidden: 4*C, activation: gelu_tanh}\n"
    )
