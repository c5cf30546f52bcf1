"""Instructions per chunk, counted by valgrind: without noise, so a change of one percent is visible. Slow, optional.

`python -m bench.instructions [PART …]` counts the contestants with a PART in their name; default: floors and asides.
Each runs twice, with few and with many streams after a warm-up; the difference is divided by the chunks between them.
Kernel work is not counted.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.contestant import Contestant
from bench.contestants import choose
from bench.environments import ROOT, build_environ, find_python
from bench.processes import ContestantFailed, start_process
from bench.server import replay_server
from bench.streams import QUICK_FLOORS
from bench.tables import Row, Table

CHUNKS_PER_STREAM = 1000
PROFILE = f"burst-{CHUNKS_PER_STREAM}"
FEW, MANY = 2, 12
VALGRIND = ("valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null")


def count(contestant: Contestant, base_url: str, streams: int) -> int:
    questions = [{"do": "stream", "profile": PROFILE}, {"do": "stream", "profile": PROFILE, "repeats": streams}]
    done = subprocess.run(
        [*VALGRIND, str(find_python(contestant.environment)), "-m", "bench.worker", contestant.key, "chat", base_url],
        input="".join(json.dumps(question) + "\n" for question in questions),
        cwd=ROOT,
        env={**build_environ(contestant.environment), "PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
        check=True,
        timeout=900,
    )
    found = re.search(r"I\s+refs:\s+([\d,]+)", done.stderr)
    if found is None or '"error"' in done.stdout:
        raise RuntimeError(done.stdout[-300:] or done.stderr[-300:])
    return int(found[1].replace(",", ""))


def main() -> int:
    if shutil.which("valgrind") is None:
        print("valgrind is not installed", file=sys.stderr)
        return 1
    parts = sys.argv[1:]
    chosen = [c for c in choose("chat") if any(part in c.key for part in parts)]
    if not parts:
        chosen = [c for c in choose("chat", peers=False) if c.kind == "ours" or c.key in QUICK_FLOORS]
    rows: list[Row] = []
    with replay_server() as base_url:
        for contestant in chosen:
            row: Row = {"name": contestant.name, "mode": contestant.mode}
            try:
                # A first run without counting, so that every module is compiled before.
                with start_process(contestant, "chat", base_url) as process:
                    process.ask("stream", profile=PROFILE)
                few, many = (count(contestant, base_url, streams) for streams in (FEW, MANY))
            except (ContestantFailed, RuntimeError, subprocess.SubprocessError) as error:
                row["note"] = f"failed: {str(error)[:100]}"
            else:
                row["instructions"] = round((many - few) / (MANY - FEW) / CHUNKS_PER_STREAM)
            rows.append(row)
    columns = {"name": "contestant", "mode": "mode", "instructions": "instructions/chunk", "note": ""}
    print(Table("instructions", "chat, burst: instructions per chunk", columns, rows).text())
    return 0


if __name__ == "__main__":
    sys.exit(main())
