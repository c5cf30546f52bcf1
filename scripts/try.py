"""The first command to run: installs asides into its own environment and asks the small model of this repository.

    python3 scripts/try.py
    python3 scripts/try.py "What is 23 * 47?"

It needs no key, no account, and no network but the package index. The thinking goes to standard error, dim; only the
answer goes to standard output.
"""

from __future__ import annotations

import sys

from environment import ROOT, ensure, list_install_inputs, list_sources, run

QUESTION = "What is 23 * 47?"


def main() -> int:
    """Create the environment if needed, then ask."""
    # Not editable: this is the wheel that a user gets, without development tools. The model is in packages/.
    python = ensure(".venv-try", [".[local]"], [*list_install_inputs(), *list_sources(ROOT / "src")])
    # Name the model, since the environment may contain keys of other providers.
    command = ["ask", "-m", "local:tiny", "-t", "--usage", "--no-stdin", " ".join(sys.argv[1:]) or QUESTION]
    # -I: import the installed package, not the sources of this folder or of a PYTHONPATH.
    return run([python, "-I", "-m", "asides", *command])


if __name__ == "__main__":
    sys.exit(main())
