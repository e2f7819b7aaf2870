"""A real YAML language server, as editors run it, reads the committed schema: completion, hover texts, red lines.

The server is a package of Node.js; npm fetches it once into pytest's cache. Where there is no npm, or nothing to
fetch it from, these tests are skipped and say so.
"""

from __future__ import annotations

import json
import queue
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, NoReturn

import pytest

PACKAGE = "yaml-language-server"
VERSION = "1.25.0"
PATIENCE = 60  # seconds; an answer takes a few milliseconds
FETCH = ["install", "--no-audit", "--no-fund", "--no-save", "--ignore-scripts", "--fetch-retries=0"]
ROOT = Path(__file__).parent.parent
FIRST = f"# yaml-language-server: $schema={(ROOT / 'blockgraph' / 'schema.json').as_uri()}\n"
CURSOR = "^"

SETTINGS = {"validate": True, "hover": True, "completion": True, "schemaStore": {"enable": False}}
ABILITIES = {
    "textDocument": {
        "completion": {"completionItem": {"documentationFormat": ["markdown"]}},
        "hover": {"contentFormat": ["markdown"]},
    },
    "workspace": {"configuration": True},
}


class Server:
    """A language server at the other end of two pipes."""

    def __init__(self, program: Path) -> None:
        command = ["node", str(program), "--stdio"]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.out: IO[bytes] = self.process.stdin
        self.received: queue.Queue[dict[str, Any]] = queue.Queue()
        self.faults: dict[str, list[dict[str, Any]]] = {}
        self.count = 0
        threading.Thread(target=self.listen, args=(self.process.stdout,), daemon=True).start()

    def listen(self, stream: IO[bytes]) -> None:
        length = 0
        while line := stream.readline():
            name, _, value = line.decode("ascii").partition(":")
            if name.casefold() == "content-length":
                length = int(value)
            elif not line.strip():
                self.received.put(json.loads(stream.read(length)))

    def send(self, **message: Any) -> None:
        content = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.out.write(b"Content-Length: %d\r\n\r\n%b" % (len(content), content))
        self.out.flush()

    def take(self) -> dict[str, Any]:
        """The next message; what the server asks is answered, and the faults it tells are kept."""
        message = self.received.get(timeout=PATIENCE)
        method = message.get("method")
        if method == "textDocument/publishDiagnostics":
            self.faults[message["params"]["uri"]] = message["params"]["diagnostics"]
        elif method is not None and "id" in message:
            asked = message["params"].get("items", []) if method == "workspace/configuration" else []
            answer = [SETTINGS if one.get("section") == "yaml" else {} for one in asked]
            self.send(id=message["id"], result=answer or None)
        return message

    def ask(self, method: str, **params: Any) -> Any:
        self.count += 1
        self.send(id=self.count, method=method, params=params)
        while True:
            message = self.take()
            if "method" not in message and message.get("id") == self.count:
                assert "error" not in message, message["error"]
                return message["result"]

    def open(self, text: str) -> tuple[str, dict[str, int]]:
        """Open a file with this text; its address, and the place where `^` stands in the text."""
        self.count += 1
        before, _, after = text.partition(CURSOR)
        uri = (ROOT / f"unsaved{self.count}.yaml").as_uri()
        document = {"uri": uri, "languageId": "yaml", "version": 1, "text": FIRST + before + after}
        self.send(method="textDocument/didOpen", params={"textDocument": document})
        return uri, {"line": 1 + before.count("\n"), "character": len(before.rpartition("\n")[2])}

    def completions(self, text: str) -> dict[str, str]:
        """What can stand at `^`, with its documentation."""
        uri, at = self.open(text)
        found = self.ask("textDocument/completion", textDocument={"uri": uri}, position=at)
        items = found["items"] if isinstance(found, dict) else found
        return {one["label"]: _plain(one.get("documentation")) for one in items}

    def hover(self, text: str) -> str:
        """The text shown for what stands at `^`, without the signs that Markdown needs."""
        uri, at = self.open(text)
        found = self.ask("textDocument/hover", textDocument={"uri": uri}, position=at)
        return _plain(found["contents"]).replace("\\", "") if found else ""

    def red_lines(self, text: str) -> list[tuple[str, str]]:
        """The words that are underlined, each with what is said about it."""
        uri, _ = self.open(text)
        while uri not in self.faults:
            self.take()
        lines = (FIRST + text).split("\n")
        found = []
        for fault in self.faults[uri]:
            start, end = fault["range"]["start"], fault["range"]["end"]
            found.append((lines[start["line"]][start["character"] : end["character"]], fault["message"]))
        return found


def _plain(text: Any) -> str:
    return str(text.get("value", "")) if isinstance(text, dict) else str(text or "")


def skip(reason: str) -> NoReturn:
    print(f"the language server is not tested: {reason}")
    pytest.skip(reason)


@pytest.fixture(scope="module")
def program(request: pytest.FixtureRequest) -> Path:
    """The server's program, fetched if it is not there yet."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        skip("there is no node and npm")
    assert request.config.cache is not None
    folder = request.config.cache.mkdir(f"{PACKAGE}-{VERSION}")
    found = folder / "node_modules" / PACKAGE / "bin" / PACKAGE
    if not found.exists():
        npm = [shutil.which("npm") or "npm", *FETCH, "--prefix", str(folder), f"{PACKAGE}@{VERSION}"]
        try:
            done = subprocess.run(npm, capture_output=True, text=True, timeout=120, check=False)
        except subprocess.TimeoutExpired:
            skip("npm took more than two minutes")
        if done.returncode:
            skip(f"npm could not fetch it: {done.stderr.strip().splitlines()[-1:]}")
    return found


@pytest.fixture(scope="module")
def server(program: Path) -> Iterator[Server]:
    server = Server(program)
    server.ask("initialize", processId=None, rootUri=ROOT.as_uri(), capabilities=ABILITIES)
    server.send(method="initialized", params={})
    yield server
    server.ask("shutdown")
    server.send(method="exit")
    server.out.close()
    server.process.wait(PATIENCE)
    assert server.process.stdout is not None
    server.process.stdout.close()


# Completion


def test_the_keys_of_a_file_are_offered_with_their_meaning(server: Server) -> None:
    found = server.completions("bl^")
    assert {"name", "dims", "block", "blocks", "model"} <= set(found)
    assert found["dims"].startswith("symbols for sizes")


@pytest.mark.parametrize(
    "text",
    [
        "block:\n  sublayers:\n    - kind: ^",
        "block:\n  sublayers:\n    - ^",
        "block:\n  norm: ^",
        "block:\n  parts:\n    a:\n      kind: ^",
        "block:\n  sublayers:\n    - kind: feed_forward\n      activation: ^",
        "model:\n  parts:\n    layers:\n      kind: stack\n      of: ^",
    ],
)
def test_wherever_a_kind_may_stand_the_kinds_are_offered_with_their_formulas(server: Server, text: str) -> None:
    found = server.completions(text)
    assert {"attention", "feed_forward", "layer_norm", "rms_norm", "stack", "silu"} <= set(found)
    assert found["silu"].startswith("y = x * sigmoid(x)")
    assert found["layer_norm"].startswith("(x - mean) / sqrt(var + eps) * gamma + beta")


def test_after_its_kind_the_options_of_that_kind_are_offered(server: Server) -> None:
    attention = server.completions("block:\n  parts:\n    a:\n      kind: attention\n      ^")
    norm = server.completions("block:\n  parts:\n    a:\n      kind: layer_norm\n      ^")
    assert {"heads", "kv_heads", "mask", "rotary"} <= set(attention)
    assert attention["heads"] == "number of query heads"
    assert {"eps", "affine"} <= set(norm)
    assert not {"heads", "mask"} & set(norm)
    assert not {"eps", "placement"} & set(attention)


def test_a_sublayer_is_offered_the_wiring_beside_the_options_of_its_kind(server: Server) -> None:
    found = server.completions("block:\n  sublayers:\n    - kind: attention\n      ^")
    assert {"heads", "mask", "placement", "norm", "with", "residual"} <= set(found)


def test_the_words_of_an_option_are_offered(server: Server) -> None:
    assert {"full", "causal"} <= set(
        server.completions("block:\n  parts:\n    a:\n      kind: attention\n      mask: ^")
    )
    assert {"pre", "post", "sandwich"} <= set(server.completions("block:\n  placement: ^"))


# Hover


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("block:\n  sublayers:\n    - kind: att^ention\n      heads: 4\n", "cut into heads"),
        ("block:\n  sublayers:\n    - kind: attention\n      he^ads: 4\n", "number of query heads"),
        (
            "block:\n  sublayers:\n    - kind: attention\n      heads: 4\n      resi^dual: none\n",
            "what the skip path carries",
        ),
        ("block:\n  parts: {a: {kind: rms_norm, ep^s: 1e-5}}\n", "added to the mean square"),
        ("di^ms: {C: 64}\n", "symbols for sizes"),
        ("block:\n  pla^cement: pre\n", "pre, post, sandwich"),
        ("checkpoint:\n  lay^out: out_in\n", "how weights of linear maps are stored"),
    ],
)
def test_hovering_shows_what_a_key_or_a_kind_means(server: Server, text: str, said: str) -> None:
    assert said in server.hover(text)


# Red lines

PLANTED = """\
dims: {C: 64, H: 4}
block:
  norm: layer_norm
  placment: pre
  sublayers:
    - {kind: attention, headz: H, heads: H}
    - {kind: feed_forward, hidden: -4, activation: silu}
"""


def test_three_planted_faults_are_underlined_and_nothing_else(server: Server) -> None:
    found = dict(server.red_lines(PLANTED))
    assert set(found) == {"placment", "headz", "-4"}
    assert found["placment"] == "Property placment is not allowed."
    assert found["headz"].startswith("no option of attention; it has share, init, heads, ")
    assert found["-4"] == "Value is below the minimum of 1."


def test_the_same_text_without_the_faults_has_no_red_line(server: Server) -> None:
    text = PLANTED.replace("placment", "placement").replace("headz: H, ", "").replace("-4", "4*C")
    assert server.red_lines(text) == []


def test_a_block_of_the_file_may_be_a_kind_with_any_options(server: Server) -> None:
    assert server.red_lines("block:\n  sublayers: [mine, {kind: mine, set: {C: 3}, placement: post}]\n") == []


@pytest.mark.parametrize("path", sorted((ROOT / "specs").rglob("*.yaml")), ids=lambda path: path.stem)
def test_no_spec_has_a_red_line(server: Server, path: Path) -> None:
    server.faults.pop(path.as_uri(), None)
    document = {"uri": path.as_uri(), "languageId": "yaml", "version": 1, "text": path.read_text(encoding="utf-8")}
    server.send(method="textDocument/didOpen", params={"textDocument": document})
    while path.as_uri() not in server.faults:
        server.take()
    assert server.faults[path.as_uri()] == []
