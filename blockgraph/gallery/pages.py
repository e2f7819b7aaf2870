"""The pages of a gallery as HTML: text is escaped, and a policy lets nothing run or load."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib.resources import files
from itertools import groupby

from blockgraph.drawing import dark_rules
from blockgraph.gallery.exhibit import Exhibit
from blockgraph.gallery.pictures import Picture
from blockgraph.gallery.sheet import Fact, Sheet
from blockgraph.page.document import digest, escaped
from blockgraph.page.still import heading
from blockgraph.report import formatted, summary


def index_page(exhibits: Sequence[Exhibit], sheets: Sequence[Sheet], pictures: Sequence[Picture]) -> str:
    """All specs by folder: picture, name and the most important facts, each leading to its page."""
    rows = list(zip(exhibits, sheets, pictures, strict=True))
    says = f"{len(exhibits)} specs. Each has a page with its facts and its differences from all others."
    body = [f"<header><h1>Gallery</h1><p>{says}</p></header>"]
    for group, members in groupby(rows, key=lambda row: row[0].group):
        cards = "\n".join(_card(*row) for row in members)
        title = f"<h2>{heading(group)}</h2>\n" if group else ""
        body.append(f'<section>\n{title}<div class="cards">\n{cards}\n</div>\n</section>')
    return _page("Gallery", body)


def spec_page(
    own: Exhibit,
    known: Sheet,
    picture: Picture,
    differences: Sequence[tuple[int, list[str]]],
    exhibits: Sequence[Exhibit],
) -> str:
    """One spec: picture, facts, findings, and what must be done to it to get each other spec, the most alike first."""
    body = [f'<header><p><a href="index.html">Gallery</a></p>\n<h1>{heading(own.name)}</h1>\n{_source(own)}</header>']
    body.append(f'<div class="sides">\n{_figure(own, picture)}\n{_facts(own, known.facts)}\n</div>')
    body += [_findings(own)] if own.findings else []
    body.append(_differences(own, differences, exhibits))
    return _page(own.name, body)


def _page(title: str, body: Iterable[str]) -> str:
    own = (files("blockgraph.gallery") / "gallery.css").read_text(encoding="utf-8")
    style = f"{own}@media (prefers-color-scheme: dark) {{\n{dark_rules()}\n}}\n"
    policy = f"default-src 'none'; style-src {digest(style)}; base-uri 'none'; form-action 'none'"
    joined = "\n".join(body)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{escaped(title)}</title>
<style>{style}</style>
</head>
<body>
{joined}
</body>
</html>
"""


def _source(own: Exhibit) -> str:
    source = own.checked.spec.source if own.checked is not None else ""
    told = [*([heading(source)] if source else []), f"<code>{heading(own.path)}</code>"]
    return f"<p>{'<br>'.join(told)}</p>"


def _card(own: Exhibit, known: Sheet, picture: Picture) -> str:
    facts = _listed(known.brief) if known.brief else f'<p class="fault">{summary(own.findings)}</p>'
    thumb = picture.svg or "no picture"
    return (
        f'<article>\n<a class="thumb" href="{own.file}" aria-label="{escaped(own.name)}">{thumb}</a>\n'
        f'<h3><a href="{own.file}">{heading(own.name)}</a></h3>\n{facts}\n</article>'
    )


def _listed(facts: Sequence[Fact]) -> str:
    rows = "".join(
        f"<div><dt>{label}</dt>{''.join(f'<dd>{heading(text)}</dd>' for _, text in texts)}</div>"
        for label, texts in groupby(facts, key=lambda fact: fact[0])
    )
    return f"<dl>{rows}</dl>"


def _figure(own: Exhibit, picture: Picture) -> str:
    if picture.svg:
        return f'<figure role="img" aria-label="{escaped(own.name)}">{picture.svg}</figure>'
    if picture.dot:
        text = f"<details><summary>DOT text</summary><pre>{escaped(picture.dot)}</pre></details>"
        return f"<figure><p>It could not be drawn.</p>{text}</figure>"
    return "<figure><p>There is nothing to draw.</p></figure>"


def _facts(own: Exhibit, facts: Sequence[Fact]) -> str:
    told = _listed(facts) if facts else ""
    fault = "" if own.ok else f'<p class="fault">{summary(own.findings)}: it is neither counted nor compared.</p>'
    return f'<section class="sheet">\n<h2>Facts</h2>\n{told}{fault}\n</section>'


def _findings(own: Exhibit) -> str:
    return f"<section>\n<h2>Findings</h2>\n<pre>{escaped(formatted(own.findings, own.lines))}</pre>\n</section>"


def _differences(own: Exhibit, differences: Sequence[tuple[int, list[str]]], exhibits: Sequence[Exhibit]) -> str:
    if not differences:
        return ""
    rows = "\n".join(_difference(exhibits[number], lines) for number, lines in differences)
    says = f"What must be done to {heading(own.name)} to get another spec; those that are most alike come first."
    return f'<section class="others">\n<h2>Differences</h2>\n<p>{says}</p>\n{rows}\n</section>'


def _difference(other: Exhibit, lines: Sequence[str]) -> str:
    items = "".join(f"<li>{heading(line)}</li>" for line in lines)
    return f'<div class="other"><h3><a href="{other.file}">{heading(other.name)}</a></h3><ul>{items}</ul></div>'
