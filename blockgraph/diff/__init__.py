"""What differs between two graphs, matched by structure and not by name; and the fingerprint of one.

`diff(a, b)` says in a few words what is added, removed and changed. Equal fingerprints mean equal architectures; the
numbers of dims are sizes, told apart from it, and inits are not looked at.
"""

from __future__ import annotations

from blockgraph.diff.canonical import canonical, fingerprint
from blockgraph.diff.changes import Change
from blockgraph.diff.report import Difference, diff
from blockgraph.diff.structure import Structure

__all__ = ["Change", "Difference", "Structure", "canonical", "diff", "fingerprint"]
