"""Free text of a spec that other drawing tools stumble over: it must stay text, character for character."""

from __future__ import annotations

TEXTS = {
    "backslashes": '\\N \\G \\l \\n \\\\ \\" C:\\new',
    "quotes": "\"double\" 'single' `back` \u201ccurly\u201d",
    "markup": '<b>bold</b> <i/> <a href="http://x.y/">link</a> <script>alert(1)</script>',
    "records": "{a|b} <f0> | {c|{d|e}}",
    "colons": "blk:0 attn::q http://x:1/ a:n:ne",
    "breaks": "first\nsecond\r\nthird\rfourth\n\nsixth",
    "right to left": "\u05e9\u05dc\u05d5\u05dd abc 123 \u0645\u0631\u062d\u0628\u0627",
    "override": "\u202eevil\u202c \u2066isolate\u2069",
    "emoji": "smile \N{GRINNING FACE}\u200d\N{FIRE} \U0001f1e9\U0001f1ea",
    "scripts": "ключ 漢字 e\u0301 \u0e01\u0e33",
    "long": "x" * 10_000,
    "long words": "ab cde " * 1_500,
    "entities": "&amp; &#65; &lt; &nbsp; &bogus; &",
    "closings": "]]> <![CDATA[x]]> <!-- c --> --> </TABLE>> ?>",
    "percents": "100% %s %(x)d %% ${x} $x #{x} {{x}}",
    "blanks": "  leading, run   inside, trailing  ",
    "dot": '</TABLE>>];n99 [URL="x"]; } digraph { // /* */ # ->',
    "mermaid": "end; %% no\tend subgraph --> ((x)) #35; click n0",
    "controls": "\x01\x1b[31mred\x1b[0m \x07",
    "invisible": "\ufeffa\u200bb\u00adc\u00a0d",
}


def shown_as(text: str) -> str:
    """The text on one line: an empty one is a blank, blanks are all alike, control characters are their symbols."""
    line = "".join(line or " " for line in text.splitlines()).replace("\N{NO-BREAK SPACE}", " ")
    return "".join(chr(0x2400 + ord(char)) if ord(char) < 0x20 else char for char in line)
