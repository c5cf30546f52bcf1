"""The comparison: `python -m bench.compare [TABLE …] [--rounds N] [--quick] [--json FILE] [--markdown FILE]`.

`README.md` describes the tables.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench import agent_steps, concurrency, conversations, environments, imports, relay, streams, targets, whole
from bench.payloads import DIALECTS
from bench.server import replay_server
from bench.tables import Table

TABLES = (
    *DIALECTS,
    "trickle",
    "whole",
    "ask",
    "conversations",
    "agents",
    "concurrency",
    "imports",
    "tags",
    "growth",
    "memory",
    "relay",
)


def run(name: str, base_url: str, options: argparse.Namespace) -> Iterator[Table]:
    quick: bool = options.quick

    def rounds(usual: int, quickly: int = 2) -> int:
        return options.rounds or (quickly if quick else usual)

    def stream(table: str, dialects: tuple[str, ...], pace: str) -> Table:
        count = rounds(5 if pace == "burst" else 3)
        return streams.single_streams(base_url, table, dialects, pace, rounds=count, quick=quick, only=options.only)

    def trickle() -> Iterator[Table]:
        yield stream("trickle", ("chat",), "trickle")
        if not quick:
            yield stream("trickle_others", DIALECTS[1:], "trickle")

    def talk() -> Iterator[Table]:
        spoken = DIALECTS[:1] if quick else DIALECTS
        yield conversations.conversations(base_url, spoken, rounds=rounds(2, 1), quick=quick)
        yield conversations.trimming(base_url, spoken, rounds=rounds(2, 1), quick=quick)

    def many() -> Iterator[Table]:
        for count in (200,) if quick else (200, 1000):
            yield concurrency.concurrency(base_url, count, rounds=rounds(3, 1), quick=quick, only=options.only)

    def ask() -> Table:
        spoken = DIALECTS[:1] if quick else DIALECTS
        return streams.ask(base_url, spoken, rounds=rounds(7), quick=quick, only=options.only)

    def relayed() -> Iterator[Table]:
        yield relay.relay(base_url, rounds=rounds(5), quick=quick)
        yield relay.doors(base_url, rounds=rounds(5), quick=quick)

    makers: dict[str, Callable[[], Any]] = {
        **{dialect: lambda: [stream(name, (name,), "burst")] for dialect in DIALECTS},
        "trickle": trickle,
        "whole": lambda: [whole.whole(rounds=rounds(5, 1), quick=quick)],
        "ask": lambda: [ask()],
        "conversations": talk,
        "agents": lambda: [agent_steps.agents(base_url, rounds=rounds(3, 1), quick=quick)],
        "concurrency": many,
        "imports": lambda: [imports.imports(base_url, rounds=rounds(5, 1), quick=quick)],
        "tags": lambda: streams.tags(base_url, rounds=rounds(5), quick=quick),
        "growth": lambda: [streams.growth(base_url, rounds=rounds(3), quick=quick)],
        "memory": lambda: [streams.memory(base_url, quick=quick)],
        "relay": relayed,
    }
    yield from makers[name]()


def versions() -> Table:
    rows = [
        {"environment": name, "packages": ", ".join(found) or "not installed"}
        for name, found in environments.versions().items()
    ]
    title = f"versions: Python {platform.python_version()}, {platform.system()} {platform.machine()}"
    return Table("versions", title, {"environment": "environment", "packages": "packages"}, rows)


def read_options(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.compare", description=__doc__.splitlines()[0])
    parser.add_argument(
        "tables",
        nargs="*",
        metavar="TABLE",
        default=["all"],
        help=f"{', '.join(TABLES)}, or all; default: all",
    )
    parser.add_argument("--rounds", type=int, help="rounds per table (default: 2 to 7, by table)")
    parser.add_argument("--quick", action="store_true", help="floors and asides only, short streams, some 90 seconds")
    parser.add_argument(
        "--only",
        nargs="+",
        metavar="PART",
        help="in the tables of streams, ask and concurrency: contestants with PART in their name",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows of every table")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the tables as Markdown")
    options = parser.parse_args(arguments)
    unknown = set(options.tables) - {*TABLES, "all"}
    if unknown:
        parser.error(f"no table {', '.join(sorted(unknown))}")
    if "all" in options.tables:
        options.tables = list(TABLES)
    return options


def main() -> int:
    options = read_options()
    began = time.monotonic()
    done = [versions()]
    print(done[0].text(), flush=True)
    with replay_server() as base_url:
        for name in options.tables:
            streams.progress(f"{name} … after {time.monotonic() - began:.0f} s")
            for table in run(name, base_url, options):
                done.append(table)
                print(table.text(), flush=True)
    results = {table.name: table.rows for table in done}
    judged = targets.targets(results)
    if judged is not None:
        done.append(judged)
        results["targets"] = judged.rows
        print(judged.text())
    if options.json:
        options.json.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")
    if options.markdown:
        options.markdown.write_text("\n".join(table.markdown() for table in done))
    streams.progress(f"{time.monotonic() - began:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
