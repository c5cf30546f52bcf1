"""Which test shows which requirement: reads the ids that tests carry and writes docs/requirements-map.md.

    python scripts/requirements_map.py             write the page
    python scripts/requirements_map.py --check     fail when the page is not what would be written
    python scripts/requirements_map.py --missing   list the expected ids that no test carries; fail when there are any

A test carries ids at the start of its name (`test_S0_25_…`, `test_S4_REQ_009_1_…`, `test_FT_07_…`, `test_B3_…`,
`test_pain_A1_…` or `test_A1_pain_…`, several in a row), or by `@pytest.mark.requirement("S0-25", "S0-26")` on it or on
its class.
Not here: whether the test is any good; it has to fail when the behaviour is broken.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "requirements-map.md"


def _span(prefix: str, *numbers: int | tuple[int, int], digits: int = 2) -> Iterator[str]:
    for number in numbers:
        first, last = number if isinstance(number, tuple) else (number, number)
        yield from (f"{prefix}{value:0{digits}}" for value in range(first, last + 1))


EXPECTED: tuple[str, ...] = (
    *_span("S0-", (1, 76)),
    *_span("S1-", (1, 41)),
    *_span("S2-", (1, 4), (8, 24)),
    *_span("S3-", (1, 12), (15, 16), (18, 58)),
    *_span("S4-REQ-", (1, 10), digits=3),
    "S4-REQ-009.1",
    *_span("S4-S", (1, 3), digits=1),
    *_span("S4-EC", (1, 8), digits=1),
    *_span("S4-ES", (1, 3), digits=1),
    *_span("S4-P", (1, 3), digits=1),
    *_span("FT-", (1, 34), (36, 42), (44, 46), 48, 49, 53, 54, 59, 60, 62),
    *_span("A", (1, 18), digits=1),
    *_span("B", (1, 12), digits=1),
    *_span("C", (1, 12), digits=1),
    *_span("D", (1, 17), digits=1),
    *_span("E", (1, 20), digits=1),
    *_span("F", (1, 15), digits=1),
    *_span("G", (1, 5), digits=1),
    *_span("H", (1, 11), digits=1),
    *_span("I", (1, 10), digits=1),
    *_span("J", (1, 7), digits=1),
    *_span("K", (1, 10), digits=1),
    *_span("L", (1, 5), digits=1),
    *_span("M", (1, 5), digits=1),
    *_span("N", (1, 4), digits=1),
    *_span("O", (1, 6), digits=1),
    *_span("P", (1, 4), digits=1),
    *(
        f"pain {pain}"
        for pain in (
            "A1",
            "A2",
            "A3",
            "A4",
            "A5",
            "B1",
            "B2",
            "B3",
            "B4",
            "B5",
            "B6",
            "B7",
            "C1",
            "C2",
            "C3",
            "C4",
            "C5",
            "C6",
            "C7",
            "C8",
            "C9",
            "C10",
            "D1",
            "D2",
            "D3",
            "D4",
            "D5",
            "E1",
            "F1",
            "G1",
            "G2",
            "G3",
            "G4",
        )
    ),
)

_GROUPS = (
    (r"S0-\d+", "S0 · a provider SDK"),
    (r"S1-\d+", "S1 · the research behind it"),
    (r"S2-\d+", "S2 · how reasoning arrives"),
    (r"S3-\d+", "S3 · thinking across providers"),
    (r"S4-.+", "S4 · improvements and limits"),
    (r"FT-\d+", "FT · features"),
    (r"[A-P]\d+", "Test cases"),
    (r"pain .+", "Pains of users of other libraries"),
)

# At the start of a name, each followed by the rest of the name or by its end.
_CARRIED = re.compile(
    r"(?:and_)?(?:(?P<document>S[0-3])_(?P<number>\d\d)"
    r"|S4_REQ_(?P<s4>\d{3})(?:_(?P<part>\d))?"
    r"|S4_P(?P<speed>\d)"
    r"|FT_(?P<feature>\d\d)"
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
        elif group["speed"]:
            found.append(f"S4-P{group['speed']}")
        elif group["feature"]:
            found.append(f"FT-{group['feature']}")
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


def collect(tests: Path) -> dict[str, list[str]]:
    """Id → the tests that carry it, each as `tests/file.py::name`."""
    found: dict[str, list[str]] = {}
    for path in sorted(tests.rglob("test_*.py")):
        where = path.relative_to(tests.parent).as_posix()
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


def missing(found: Iterable[str]) -> list[str]:
    """The expected ids that no test carries. A part of a requirement (008.1) counts for the whole of it (008)."""
    carried = set(found)
    carried |= {one.rpartition(".")[0] for one in carried if "." in one}
    return [one for one in EXPECTED if one not in carried]


def _order(one: str) -> list[tuple[int, str]]:
    return [(int(piece), "") if piece.isdecimal() else (-1, piece) for piece in re.split(r"(\d+)", one)]


def page(found: dict[str, list[str]]) -> str:
    """The whole page, as Markdown."""
    lines = [
        "# Which test shows which requirement",
        "",
        "Written by `scripts/requirements_map.py`; `python3 scripts/dev.py docs` writes it again. S0 to S4 are the",
        "documents that the requirements come from, FT their feature table, single letters their test cases.",
    ]
    gaps = set(missing(found))
    for pattern, title in _GROUPS:
        ids = sorted({one for one in (*found, *gaps) if re.fullmatch(pattern, one)}, key=_order)
        if not ids:
            continue
        lines += ["", f"## {title}", "", "| id | shown by |", "|---|---|"]
        for one in ids:
            shown = "<br>".join(f"`{test.removeprefix('tests/')}`" for test in found.get(one, []))
            lines.append(f"| {one} | {shown or '**nothing yet**'} |")
    return "\n".join(lines) + "\n"


def main(words: list[str]) -> int:
    """Do what the words say; 0 when all is well."""
    found = collect(ROOT / "tests")
    if words == ["--missing"]:
        gaps = missing(found)
        print("\n".join(gaps) if gaps else "every expected id is carried by a test")
        return 1 if gaps else 0
    written = page(found)
    if words == ["--check"]:
        if PAGE.exists() and PAGE.read_text(encoding="utf-8") == written:
            return 0
        print(f"{PAGE.relative_to(ROOT).as_posix()} is not current: python3 scripts/dev.py docs")
        return 1
    PAGE.write_text(written, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
