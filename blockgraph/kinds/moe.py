"""A mixture of experts: a router sends each position to a few of many sublayers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Self

from pydantic import Field

from blockgraph.dims import Dim
from blockgraph.kind import Count, Flag, Kind, Size, Use, word
from blockgraph.op import Refusal

MAX_EXPERTS = 1024  # each is a part of its own


class Moe(Kind):
    """sum over the top_k experts e of w_e * expert_e(x), w from softmax(router(x)), plus the shared experts

    `softmax: before` takes the softmax over all experts and then the top_k, renormalised if `renormalise`; `after`
    takes it over the chosen logits alone. All experts are computed and weighted, those not chosen by zero.
    Source: Shazeer et al. 2017, arXiv:1701.06538; Jiang et al. 2024, arXiv:2401.04088 (renormalised);
    DeepSeek-AI 2024, arXiv:2412.19437 (shared experts).
    """

    name = "moe"
    family = "feed_forward"
    title = "Mixture of Experts"
    elsewhere = ("mixture_of_experts", "sparse_moe")
    sizes = {"E": "experts", "K": "top_k", "S": "shared"}

    experts: Size = Field(description="number of experts; a number, not a free dim")
    top_k: Size = Field(description="how many experts each position uses")
    expert: Use = Field(description="the kind of one expert")
    router: Use = Field("linear", description="what gives one logit per expert")
    softmax: word("before", "after") = Field("before", description="softmax before or after the top_k")  # type: ignore[valid-type]
    renormalise: Flag = Field(True, description="whether the chosen weights are divided by their sum (softmax: before)")
    shared: Count = Field(0, description="further experts that every position uses, with weight 1")
    shared_expert: Use = Field(None, description="the kind of a shared expert (default: that of `expert`)")

    @property
    def known(self) -> tuple[int, int] | None:
        """The numbers of experts and of shared ones, once they are numbers."""
        experts, shared = Dim(self.experts).as_int(), Dim(self.shared).as_int()
        return None if experts is None or shared is None else (experts, shared)

    def settle(self, numbers: Mapping[str, int]) -> Self:
        """The numbers of experts as numbers, since each expert is a part of its own."""
        shared = numbers.get("S")
        return self.model_copy(
            update={
                "experts": Dim(numbers["E"]) if "E" in numbers else self.experts,
                "shared": Dim(shared) if shared is not None else self.shared,
            }
        )

    def parts(self) -> dict[str, Any]:
        """The router, the experts and the shared experts."""
        experts, shared = self.known or (0, 0)
        router = {"kind": self.router} if isinstance(self.router, str) else dict(self.router)
        parts: dict[str, Any] = {"router": {"out": Dim(experts), **router} if router["kind"] == "linear" else router}
        parts.update({f"experts.{index}": self.expert for index in range(experts)})
        parts.update({f"shared.{index}": self.shared_expert or self.expert for index in range(shared)})
        return parts

    def option_of(self, part: str) -> str:
        """Where the part's options stand."""
        if part == "router":
            return "router"
        return "shared_expert" if part.startswith("shared") and self.shared_expert is not None else "expert"

    def refusals(self, numbers: Mapping[str, int]) -> Iterator[Refusal]:
        """More chosen than there are; an option without effect."""
        experts, chosen = numbers.get("E"), numbers.get("K")
        if experts is not None and chosen is not None and chosen > experts:
            yield Refusal("top_k", f"{chosen} experts are chosen of {experts}", "choose at most all of them", "BG103")
        if self.softmax == "after" and not self.renormalise:
            help = "the softmax over the chosen logits sums to one already; leave `renormalise` out"
            yield Refusal("renormalise", "`renormalise` has no effect beside `softmax: after`", help, "BG033")
        if self.known is not None and sum(self.known) > MAX_EXPERTS:
            help = f"at most {MAX_EXPERTS:,} experts can be told apart"
            yield Refusal("experts", f"{sum(self.known):,} experts are more than can be worked out", help, "BG018")
        if self.known is None:
            option, what = ("shared", "shared experts") if Dim(self.experts).as_int() is not None else ("experts",) * 2
            yield Refusal(option, f"the number of {what} must be a number", "give the dim a number", "BG038")

    def equations(self, given: frozenset[str]) -> str:
        """Route, weigh, add up."""
        experts, shared = self.known or (0, 0)
        if self.softmax == "after":
            lines = ["chosen, index = top_k(router(x), K)", "weight = softmax(chosen)"]
        else:
            lines = ["weight, index = top_k(softmax(router(x)), K)"]
            lines += ['weight = weight / sum(weight, "... k -> ... 1")'] if self.renormalise else []
        lines.append(f"gate = put(weight, index, {experts})")
        terms = [f"gate[..., {index}:{index + 1}]*experts_{index}(x)" for index in range(experts)]
        lines += [f"y = {terms[0]}", *(f"y = y + {term}" for term in terms[1:])]
        lines += [f"y = y + shared_{index}(x)" for index in range(shared)]
        return "\n".join(lines)

    def detail(self) -> str:
        """How many of how many."""
        shared = f" + {self.shared} shared" if self.known and self.known[1] else ""
        return f"{self.top_k} of {self.experts} experts{shared}"
