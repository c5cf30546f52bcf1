"""Writes src/asides/__init__.pyi, the public names as type checkers see them, from the table in src/asides/__init__.py.

    python scripts/public_names.py            write it
    python scripts/public_names.py --check    fail when it is not current

Change the table, never the written file.
"""

from __future__ import annotations

import runpy
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "src" / "asides" / "__init__.py"
STUB = TABLE.with_suffix(".pyi")

_HEAD = "# Written by scripts/public_names.py from the table in __init__.py. Do not edit.\n\n"


def write_stub(names_by_module: Mapping[str, str], public: list[str]) -> str:
    """The text of the stub: one import for each name, then `__all__`."""
    imports = {("asides", name): name for name in ("aio", "ui")}
    imports |= {(module, name): name for module, names in names_by_module.items() for name in names.split()}
    lines = [
        f"from {module} import {name} as {imports[module, name]}\n" for module, name in sorted(imports, key=_order)
    ]
    exported = "".join(f'    "{name}",\n' for name in public)
    return f"{_HEAD}{''.join(lines)}\n__version__: str\n\n__all__ = [\n{exported}]\n"


def _order(imported: tuple[str, str]) -> tuple[str, int, str]:
    """Modules by name; inside one, classes before functions, as ruff sorts imports."""
    module, name = imported
    return module, int(name[0].islower()), name.lower()


def main(words: list[str]) -> int:
    """Write or check; 0 when the file is current."""
    table = runpy.run_path(str(TABLE))
    stub = write_stub(table["_NAMES_BY_MODULE"], table["__all__"])
    if words == ["--check"]:
        if STUB.exists() and STUB.read_text(encoding="utf-8") == stub:
            return 0
        print(f"{STUB.relative_to(ROOT).as_posix()} is not current; run python3 scripts/dev.py docs")
        return 1
    STUB.write_text(stub, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
