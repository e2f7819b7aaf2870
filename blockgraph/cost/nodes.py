"""What one node of a body costs, for whoever adds nodes up: by parts, or by the boxes of a drawing."""

from __future__ import annotations

from functools import cached_property

from blockgraph.cost.bodies import Body
from blockgraph.cost.demand import density
from blockgraph.cost.parameters import tables, weights_of
from blockgraph.cost.tally import Counting, Tally, types_of
from blockgraph.graph import Node, Repeat
from blockgraph.ops.leaf import Param
from blockgraph.records import dataclass


@dataclass(frozen=True)
class NodeCosts:
    """The costs of the nodes of one layer of a body; `numbers` are those of its symbols as far as they are known."""

    body: Body
    counting: Counting
    numbers: dict[str, int]

    def tally(self, node: Node, name: str) -> Tally:
        """The costs of a node that is no stack, in the part called `name`; its work counts where it matters."""
        graph = self.body.graph
        assert not isinstance(node.op, Repeat)
        if isinstance(node.op, Param):
            weights = weights_of(self.body, node, node.op, self._tables, self.numbers)
            return Tally(once=weights) if node.op.shared else Tally(own=weights)
        work = self.counting.work(node, node.op, types_of(graph), self.body.prefix + name)
        share = self.body.share * density(graph, self.body.demands, node.outputs, self.numbers)
        return work if share == 1 else work.for_share(share)

    @cached_property
    def _tables(self) -> set[int]:
        return tables(self.body.graph)
