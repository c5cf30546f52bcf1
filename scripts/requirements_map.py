"""Writes docs/requirements-map.md: which tests show which requirement of docs/requirements.md.

    python scripts/requirements_map.py             write the map
    python scripts/requirements_map.py --check     fail when the map is not current
    python scripts/requirements_map.py --missing   list contradictions between the page and the tests; fail if any

A test carries ids at the start of its name (`test_S0_25_…`, `test_S4_REQ_009_1_…`, `test_FT_07_…`, `test_B3_…`,
`test_pain_A1_…` or `test_A1_pain_…`, several in a row), or by `@pytest.mark.requirement("S0-25", "S0-26")` on it or on
its class.
The page gives each id in a table row: id, statement, and the reason why no test carries it (blank: a test must).
Not checked: whether a test fails when the behaviour is broken.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
REQUIREMENTS = ROOT / "docs" / "requirements.md"
PAGE = ROOT / "docs" / "requirements-map.md"

REASONS = ("context: ", "not built yet: ", "left out: ", "superseded by ")
_OWED = "without a test because"
_ID = re.compile(r"S[0-3]-\d\d|S4-[A-Z]+\d|S4-REQ-\d{3}(?:\.\d)?|FT-\d\d|F-\d\d|[A-P]\d{1,2}|pain [A-G]\d{1,2}")


class Requirement(NamedTuple):
    """One row of the page."""

    id: str
    statement: str
    section: str
    """The heading above it."""
    owed: bool = True
    """A test must carry it unless there is a reason. False for facts that a document got wrong: tests may cite them."""
    reason: str = ""


def read_requirements(page: str) -> dict[str, Requirement]:
    """The requirements of the page by id, in its order. Raises ValueError for an id that is there twice."""
    found: dict[str, Requirement] = {}
    section, owed = "", False
    for line in page.splitlines():
        if heading := re.match(r"#+ (.+)", line):
            section = heading[1]
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if len(cells) != 3:
            continue
        if not _ID.fullmatch(cells[0]):
            owed = cells[2] == _OWED if set(cells[2]) != {"-"} else owed
            continue
        if cells[0] in found:
            raise ValueError(f"{cells[0]} is there twice")
        found[cells[0]] = Requirement(cells[0], cells[1], section, owed, cells[2] if owed else "")
    return found


# At the start of a name, each followed by the rest of the name or by its end.
_CARRIED = re.compile(
    r"(?:and_)?(?:(?P<document>S[0-3])_(?P<number>\d\d)"
    r"|S4_REQ_(?P<s4>\d{3})(?:_(?P<part>\d))?"
    r"|S4_(?P<other>[A-Z]+\d)"
    r"|FT_(?P<feature>\d\d)"
    r"|F_(?P<fact>\d\d)"
    r"|pain_(?P<pain>[A-Z]\d+)"
    r"|(?P<felt>[A-Z]\d+)_pain(?!_[A-Z]\d)"
    r"|(?P<case>[A-P]\d{1,2}))(?=_|$)_?"
)


def ids_in_name(name: str) -> list[str]:
    """The ids at the start of a test's name."""
    found: list[str] = []
    rest = name.removeprefix("test_")
    while match := _CARRIED.match(rest):
        rest = rest[match.end() :]
        group = match.groupdict()
        if group["document"]:
            found.append(f"{group['document']}-{group['number']}")
        elif group["s4"]:
            found.append(f"S4-REQ-{group['s4']}" + (f".{group['part']}" if group["part"] else ""))
        elif group["other"]:
            found.append(f"S4-{group['other']}")
        elif group["feature"]:
            found.append(f"FT-{group['feature']}")
        elif group["fact"]:
            found.append(f"F-{group['fact']}")
        elif pain := group["pain"] or group["felt"]:
            found.append(f"pain {pain}")
        else:
            found.append(group["case"])
    return found


def ids_in_marks(decorators: Iterable[ast.expr]) -> list[str]:
    """The ids of `@pytest.mark.requirement(...)`."""
    return [
        argument.value
        for decorator in decorators
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "pytest.mark.requirement"
        for argument in decorator.args
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
    ]


@cache
def collect(root: Path) -> dict[str, list[str]]:
    """Id → the tests that carry it, each as `tests/file.py::name` or `packages/asides-stage/tests/file.py::name`."""
    found: dict[str, list[str]] = {}
    for path in sorted([*root.glob("tests/**/test_*.py"), *root.glob("packages/*/tests/**/test_*.py")]):
        where = path.relative_to(root).as_posix()
        for name, ids in _tests(ast.parse(path.read_text(encoding="utf-8")).body, "", []):
            for one in dict.fromkeys(ids):
                found.setdefault(one, []).append(f"{where}::{name}")
    return found


def _tests(body: Iterable[ast.stmt], inside: str, inherited: list[str]) -> Iterator[tuple[str, list[str]]]:
    for node in body:
        if isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            yield from _tests(node.body, f"{node.name}::", [*inherited, *ids_in_marks(node.decorator_list)])
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            yield inside + node.name, [*ids_in_name(node.name), *ids_in_marks(node.decorator_list), *inherited]


def find_problems(known: Mapping[str, Requirement], found: Mapping[str, list[str]]) -> list[str]:
    """The contradictions between the page and the tests, one line each.

    A part of a requirement (008.1) counts for the whole of it (008).
    """
    carried = set(found) | {one.rpartition(".")[0] for one in found if "." in one}
    problems: list[str] = []
    for one in known.values():
        if not one.owed:
            continue
        if one.reason and not one.reason.startswith(REASONS):
            problems.append(f"{one.id}: the reason begins with none of {', '.join(map(repr, REASONS))}")
        if one.reason and one.id in carried:
            problems.append(f"{one.id}: the page says why no test carries it, but {found[one.id][0]} does")
        if not one.reason and one.id not in carried:
            problems.append(f"{one.id}: no test carries it, and the page does not say why")
    return problems + [
        f"{one}: docs/requirements.md does not know it; {tests[0]} carries it"
        for one, tests in found.items()
        if one not in known
    ]


def write_map(known: Mapping[str, Requirement], found: Mapping[str, list[str]]) -> str:
    """The whole map, as Markdown."""
    tested = sum(one.owed and not one.reason for one in known.values())
    reasoned = sum(bool(one.reason) for one in known.values())
    lines = [
        "# Which test shows which requirement",
        "",
        "Written by `scripts/requirements_map.py`; `python3 scripts/dev.py docs` writes it again.",
        f"[Requirements](requirements.md) states each id: {tested} are shown by tests, {reasoned} have a reason.",
    ]
    section = ""
    for one in known.values():
        if not one.owed and one.id not in found:
            continue
        if one.section != section:
            section = one.section
            lines += ["", f"## {section}", "", "| id | shown by |", "|---|---|"]
        shown = "<br>".join(f"`{test.removeprefix('tests/')}`" for test in found.get(one.id, []))
        if not shown:
            parts = [other for other in found if other.startswith(f"{one.id}.")]
            shown = one.reason or (f"its parts: {', '.join(sorted(parts))}" if parts else "**nothing yet**")
        lines.append(f"| [{one.id}](requirements.md#{_anchor(section)}) | {shown} |")
    return "\n".join(lines) + "\n"


def _anchor(heading: str) -> str:
    """The anchor of a heading, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def main(words: list[str]) -> int:
    """Write, check or list; 0 on success."""
    known = read_requirements(REQUIREMENTS.read_text(encoding="utf-8"))
    found = collect(ROOT)
    if words == ["--missing"]:
        problems = find_problems(known, found)
        print("\n".join(problems) if problems else "every id is carried by a test or has a reason")
        return 1 if problems else 0
    written = write_map(known, found)
    if words == ["--check"]:
        if PAGE.exists() and PAGE.read_text(encoding="utf-8") == written:
            return 0
        print(f"{PAGE.relative_to(ROOT).as_posix()} is not current: python3 scripts/dev.py docs")
        return 1
    PAGE.write_text(written, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
