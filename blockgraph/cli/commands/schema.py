"""`schema`: the JSON Schema of spec files, for editors."""

from __future__ import annotations

from argparse import Namespace

from blockgraph.cli.arguments import Parser
from blockgraph.cli.terminal import Terminal

SUMMARY = "print the JSON Schema of spec files, for completion and hover texts in an editor"
EXAMPLES = """\
  blockgraph schema > blockgraph.schema.json
  (then let a spec begin with: # yaml-language-server: $schema=blockgraph.schema.json)
"""


def arguments(parser: Parser) -> None:
    """None of its own."""


def main(options: Namespace, terminal: Terminal) -> int:
    """Print the schema, the same with every --format, for it is a document for programs."""
    from blockgraph.jsonschema import json_schema_text

    terminal.data(json_schema_text())
    return 0
