"""Graph in, graph out: the gradients of a graph, as more nodes of the same kind.

What the backward of the plain interpreter computes op by op is written down as a graph here: with nodes for what the
forward saves, and a node for every gradient. So everything that is known of graphs (which rows stay apart, how long a
value lives, what runs together) holds for gradients too.
"""

from __future__ import annotations

from blockgraph.adjoint.reverse import Adjoint, adjoint

__all__ = ["Adjoint", "adjoint"]
