"""The first command: install asides into its own environment and ask the model that comes with it.

    python3 scripts/try.py
    python3 scripts/try.py "What is 23 * 47?"

No key, no account, no network but the package index. The thinking is shown dim on standard error, the answer stands
alone on standard output.
"""

from __future__ import annotations

import sys

from environment import CONSTRAINTS, PROJECT, ROOT, ensure, run

QUESTION = "What is 23 * 47?"


def main() -> int:
    """Make the environment where needed, then ask in it."""
    sources = [path for path in (ROOT / "src").rglob("*") if path.is_file() and path.suffix != ".pyc"]
    # Not editable: what answers here is the wheel that a user would get, without a single development tool beside it.
    python = ensure(".venv-try", [".[local]"], [PROJECT, CONSTRAINTS, *sources])
    # The model is named, since whoever tries this may have the keys of others in the environment.
    command = ["ask", "-m", "local:tiny", "-t", "--usage", "--no-stdin", " ".join(sys.argv[1:]) or QUESTION]
    # -I: neither this folder's sources nor a PYTHONPATH may stand in for the installed package.
    return run([python, "-I", "-m", "asides", *command])


if __name__ == "__main__":
    sys.exit(main())
