"""Writes the sync modules of `src/asides` from their async versions. Change the async module, never the written one.

    python scripts/unasync.py            write them
    python scripts/unasync.py --check    fail if one is not current

`async` and `await` are removed and names and phrases are replaced (the tables below). A comment in the async module
says where the two differ:

    statement  # async only     the statement, with its body, is left out of the sync module
    # sync: statement           a line of the sync module

`await run_to_end(lambda: work)` becomes `work`, and the coroutine `drain` the property that `Twin.drain` names. ruff
removes unused imports and formats the result.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tokenize
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "asides"


class Twin(NamedTuple):
    """An async module and the sync module that is written from it."""

    source: str
    target: str
    drain: str


TWINS = (
    Twin("transports/async_.py", "transports/sync.py", drain="reply"),
    Twin("transports/run_async.py", "transports/run_sync.py", drain="result"),
    Twin("aio.py", "client.py", drain="reply"),
    Twin("agents/async_.py", "agents/sync.py", drain="result"),
    Twin("conversations/async_.py", "conversations/sync.py", drain="reply"),
)

# Phrases of docstrings and comments. Each is in use: an unused one is an error.
PHRASES = {
    "The async driver: carries out the steps of a flow. `sync` is generated from it; `flow_state` is shared.": (
        "The sync driver: carries out the steps of a flow. `flow_state` is shared with `async_`."
    ),
    """

        After the event loop of the stream was closed, this closes the socket and awaits nothing.
        """: "",
    "\n    One whose task is cancelled closes its connection and keeps `partial`.": "",
    " A cancelled task closes its connection.": "",
    " `ends_transport`: close the transport after the flow.": "",
    "        # First: a cancelled task may not be able to await again.\n": "",
    "or await `close`,": "or call `close`,",
    "Read the rest of the events. Returns the result of the run.": (
        "The result of the run. Reads the rest of the events first."
    ),
    "The async client: `AsyncClient`": "The sync client: `Client`",
    "`probe`, `stream` and `run`, each with a client for one call": "`probe` and `stream`, which share one client",
    "without blocking the event loop": "and waits for the answer",
    "Keeps connections for the next call, separately for each event loop.": (
        "Keeps connections for the next call; safe to use from many threads."
    ),
    "Close idle connections of this event loop.": "Close idle connections.",
    ", with a client that is closed afterwards": ", with the shared client",
    ", with a client that is closed with them. Use it in an `async with`.": ", with the shared client.",
    "`async with`": "`with`",
    "without one, each question opens a client and closes it": "the default is a shared client",
    """
    Turns are written in another thread. `AsyncConversation(…)`, `stream` and changes such as `edit` read the store in
    this one; if it is a server and the event loop must not wait for it, use `asyncio.to_thread`.
""": "",
    "If it raises or is cancelled,": "If it raises,",
    "when its task is cancelled": "on Ctrl-C",
    "Read the rest of the events. Returns the whole reply.": "The whole reply. Reads the rest of the events first.",
    "from any task": "from any thread",
    "Another task": "Another thread",
}

# Applied in this order, to code and text alike.
REPLACEMENTS = (
    (r"\basync (?=def|for|with)", ""),
    (r"\(await (\w[\w.]*\([^()]*\))\)", r"\1"),
    (r"\bawait ", ""),
    (r"\bAsyncGenerator\[((?:[^\[\]]|\[[^\[\]]*\])*), None\]", r"Generator[\1, None, None]"),
    (r"\b(\w+\[\w+\]) \| Async\1", r"\1"),
    (r"\bAsyncDriver\b", "SyncDriver"),
    (r"\bAsync(?=[A-Z])", ""),
    (r"\b__a(enter|exit|iter|next)__", r"__\1__"),
    (r"\ba(next|iter)(?=\()", r"\1"),
    (r"\.aclose\b", ".close"),
    (r"\baclosing\b", "closing"),
    (r"suppress\(RuntimeError\)", "suppress(ValueError)"),  # what a generator that is running raises when it is closed
    (r"\bAwaitable\[((?:[^\[\]]|\[[^\[\]]*\])*)\]", r"\1"),
    (r"\basyncio\.Event\b", "threading.Event"),
    (r"\b(fetch|run_jobs)_async\b", r"\1"),
    (r",\s*(?:\*,\s*)?ends_transport(?:: bool)?\s*=\s*[\w.]+", ""),
    (r"\bopen_client\b", "get_shared_client"),
    (r"\b_answer\b", "answer"),
    (r"\basides\.aio\b", "asides.client"),
    (r"(?<=\.)(http|run)_async\b", r"\1_sync"),
    (r"(?<=\.)async_\b", "sync"),
)

_ASYNC_ONLY = "# async only"
_SYNC_LINE = re.compile(r"# sync:(?: |$)")


class _Edit(NamedTuple):
    start: int
    end: int
    text: str


def write_sync(source: str, *, drain: str = "reply", made_from: str = "the async module") -> str:
    """The sync module of an async one, not formatted yet."""
    text = _apply(source, _list_edits(source, drain))
    for phrase, sync in PHRASES.items():
        text = text.replace(phrase, sync)
    for pattern, sync in REPLACEMENTS:
        text = re.sub(pattern, sync, text)
    return f"# Written by scripts/unasync.py from {made_from}. Do not edit.\n{text}"


def _list_edits(source: str, drain: str) -> list[_Edit]:
    """What the tables cannot do: leave statements out, add lines, and change the form of an expression."""
    tree = ast.parse(source)
    lines = source.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))

    def place(line: int, column: int) -> int:
        return starts[line - 1] + len(lines[line - 1].encode()[:column].decode())

    def start(node: ast.expr | ast.stmt) -> int:
        return place(node.lineno, node.col_offset)

    def end(node: ast.expr | ast.stmt) -> int:
        return place(node.end_lineno or node.lineno, node.end_col_offset or node.col_offset)

    edits: list[_Edit] = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        row, column = token.start
        if token.string == _ASYNC_ONLY:
            first, last = _find_statement(tree, row)
            edits.append(_Edit(starts[first - 1], starts[last], ""))
        elif begin := _SYNC_LINE.match(token.string):
            begins = starts[row - 1] + column
            edits.append(_Edit(begins, begins + begin.end(), ""))
    for node in ast.walk(tree):
        if isinstance(node, ast.AsyncFunctionDef) and node.name == "drain":
            indent = " " * node.col_offset
            edits.append(_Edit(start(node), start(node) + len("async def drain"), f"@property\n{indent}def {drain}"))
        elif isinstance(node, ast.Await) and isinstance(node.value, ast.Call):
            call = node.value
            if isinstance(call.func, ast.Attribute) and call.func.attr == "drain":
                edits.append(_Edit(end(call.func.value), end(call), f".{drain}"))
            elif isinstance(call.func, ast.Name) and call.func.id == "run_to_end":
                work = call.args[0]
                if not isinstance(work, ast.Lambda):
                    raise SystemExit(f"line {node.lineno}: run_to_end needs a lambda here")
                edits.append(_Edit(start(node), start(work.body), ""))
                edits.append(_Edit(end(work.body), end(node), ""))
    return edits


def _find_statement(tree: ast.Module, row: int) -> tuple[int, int]:
    """The first and last line of the innermost statement around a line."""
    around = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.stmt) and _find_first_line(node) <= row <= (node.end_lineno or row)
    ]
    found = min(around, key=lambda node: (node.end_lineno or row) - node.lineno)
    return _find_first_line(found), found.end_lineno or row


def _find_first_line(node: ast.stmt) -> int:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node.decorator_list:
        return node.decorator_list[0].lineno
    return node.lineno


def _apply(source: str, edits: list[_Edit]) -> str:
    pieces: list[str] = []
    done = 0
    for edit in sorted(edits):
        if edit.start < done:
            continue  # inside a statement that is left out
        pieces += source[done : edit.start], edit.text
        done = edit.end
    return "".join((*pieces, source[done:]))


def write_twin(twin: Twin) -> str:
    """The text of a sync module, formatted."""
    source = (SOURCE / twin.source).read_text(encoding="utf-8")
    text = write_sync(source, drain=twin.drain, made_from=Path(twin.source).name)
    target = str(SOURCE / twin.target)
    # Unused imports, the order of imports, and `yield from`, which async generators do not have.
    fixes = ("--fix-only", "--unsafe-fixes", "--select", "F401,I001,UP028")
    fixed = _run_ruff(text, "check", *fixes, "--quiet", "--stdin-filename", target)
    return _run_ruff(fixed, "format", "--quiet", "--stdin-filename", target)


def _run_ruff(text: str, *words: str) -> str:
    command = [sys.executable, "-m", "ruff", *words, "-"]
    done = subprocess.run(command, input=text, capture_output=True, encoding="utf-8", cwd=ROOT, check=True)
    return done.stdout


def find_unused_phrases() -> list[str]:
    """The phrases that no async module has."""
    texts = [(SOURCE / twin.source).read_text(encoding="utf-8") for twin in TWINS]
    return [phrase for phrase in PHRASES if not any(phrase in text for text in texts)]


def main(words: list[str]) -> int:
    """Write or check; 0 if the modules are current."""
    stale: list[str] = []
    for twin in TWINS:
        path = SOURCE / twin.target
        text = write_twin(twin)
        if words != ["--check"]:
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            stale.append(twin.target)
            print(f"{path.relative_to(ROOT).as_posix()} is not current; run python3 scripts/unasync.py")
    unused = find_unused_phrases()
    for phrase in unused:
        print(f"scripts/unasync.py: no async module has the phrase {phrase!r}")
    return 1 if stale or unused else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
