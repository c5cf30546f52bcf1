"""No regular expression of the parsers and of the page takes more than linear time, whatever a model writes."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tests.pattern_growth import find_slow

_PARSERS = ("asides.agents.react", "asides.wire", "asides.dialects", "asides.relay", "asides.values")
_PAGE = Path(__file__).parents[1] / "packages/asides-gateway/src/asides_gateway/page"
_SEARCHES = r"\.(?:search|sub|subn|split|finditer|findall)\b"
# A literal of JavaScript: it stands behind a sign that no operand ends with.
_LITERAL = re.compile(r"(?<=[=(,:!&|?]) ?/((?:[^/\\\n\[]|\\.|\[(?:[^\]\\\n]|\\.)*\])+)/([dgimsuvy]*)(?=[\s;,.)\]])")


_SPELLINGS = ((r"\/", "/"), (r"[^]", r"[\s\S]"), (r"\p{L}\p{N}", r"\w"), (r"\p{L}", "[A-Za-z]"), (r"\p{N}", r"\d"))
"""What JavaScript spells otherwise than Python."""


def _list_modules() -> Iterator[ModuleType]:
    for name in _PARSERS:
        package = importlib.import_module(name)
        yield package
        for found in pkgutil.walk_packages(package.__path__, f"{name}."):
            yield importlib.import_module(found.name)


def _list_parser_patterns() -> dict[str, tuple[re.Pattern[str], bool]]:
    found: dict[str, tuple[re.Pattern[str], bool]] = {}
    for module in _list_modules():
        source = Path(str(module.__file__)).read_text(encoding="utf-8")
        for name, value in vars(module).items():
            if isinstance(value, re.Pattern) and isinstance(value.pattern, str) and f"{name} = re." in source:
                searches = re.search(rf"\b{name}{_SEARCHES}", source) is not None
                found[f"{module.__name__}.{name}"] = value, searches
    return found


def _list_page_patterns() -> dict[str, tuple[re.Pattern[str], bool]]:
    found: dict[str, tuple[re.Pattern[str], bool]] = {}
    for path in sorted(_PAGE.glob("*.js")):
        source = re.sub(r"^\s*//.*$|/\*\*?.*?\*/", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
        for place, literal in enumerate(_LITERAL.finditer(source)):
            text, flags = literal[1], literal[2]
            for ours, python in _SPELLINGS:
                text = text.replace(ours, python)
            pattern = re.compile(text, re.IGNORECASE if "i" in flags else 0)
            found[f"{path.name} {place} {literal[1][:30]}"] = pattern, "y" not in flags
    return found


_PATTERNS = {**_list_parser_patterns(), **_list_page_patterns()}


def test_the_patterns_are_found() -> None:
    names = "\n".join(_PATTERNS)
    for name in ("react.markers._TAIL", "markdown.js 0 ^(?:[-*+#>", "inline.js", "announcer.js"):
        assert name in names


@pytest.mark.parametrize("name", _PATTERNS)
def test_time_grows_with_the_text_and_not_faster(name: str) -> None:
    pattern, searches = _PATTERNS[name]
    assert find_slow(pattern, searches=searches) is None


@pytest.mark.parametrize(
    ("pattern", "searches"),
    [
        (r"^\s*(?:[-*+#>|`~_=:\s]+|\d{1,9}[.)]?)\s*$", True),
        (r"[ \t]*\#?\d{0,3}[ \t]*(?:\([^()\n]*\)?)?[ \t]*[*_]{0,3}[ \t]*(?:[:\uff1a][*_]{0,3})?\r?$", False),
        (r"\s+$", True),
        (r"^ {0,3}(#{1,6})(?:[ \t]+(.*))?$", False),
    ],
)
def test_a_slow_pattern_is_found(pattern: str, searches: bool) -> None:
    assert find_slow(re.compile(pattern), searches=searches) is not None
