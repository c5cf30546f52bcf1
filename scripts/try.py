"""The first command: install asides into its own environment and ask a question, with no key and no account.

    python3 scripts/try.py
    python3 scripts/try.py "What is 23 * 47?"

Until the embedded model comes, the question goes to the offline stage (demo.py), which recites and does not think.
"""

from __future__ import annotations

import sys

from environment import CONSTRAINTS, PROJECT, ROOT, ensure, run

QUESTION = "What is 23 * 47?"


def main() -> int:
    """Make the environment where needed, then ask in it."""
    sources = [path for path in (ROOT / "src").rglob("*") if path.is_file() and path.suffix != ".pyc"]
    # Not editable: what answers here is the wheel that a user would get, without a single development tool beside it.
    python = ensure(".venv-try", [".[terminal]"], [PROJECT, CONSTRAINTS, *sources])
    # -I: neither this folder's sources nor a PYTHONPATH may stand in for the installed package.
    return run([python, "-I", ROOT / "scripts" / "demo.py", " ".join(sys.argv[1:]) or QUESTION])


if __name__ == "__main__":
    sys.exit(main())
