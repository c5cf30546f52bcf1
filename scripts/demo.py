"""The main job on a machine with no key and no network: a question, its thinking and its answer, over a real socket.

Run by try.py inside its environment. The offline stage answers, which is a small program and not a model; it says so
itself when it is asked for more than a sum. Everything between it and the terminal is what a real provider gets.
"""

from __future__ import annotations

import subprocess
import sys

from asides.stage import MODEL, Stage


def main(question: str) -> int:
    """Open a stage on a free port and let the command line ask it, with the thinking shown."""
    print(f"· no model here yet: the offline stage answers. You ask: {question}", file=sys.stderr, flush=True)
    with Stage() as stage:
        command = ["ask", "--model", f"openai-compatible:{MODEL}", "--base-url", stage.url, "--show-thinking", question]
        return subprocess.run(
            [sys.executable, "-I", "-m", "asides", *command], stdin=subprocess.DEVNULL, check=False
        ).returncode


if __name__ == "__main__":
    sys.exit(main(" ".join(sys.argv[1:])))
