"""The map from requirement to test: read right, complete, and written down."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

_SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "requirements_map.py"


@pytest.fixture(scope="module")
def mapping() -> ModuleType:
    spec = importlib.util.spec_from_file_location("requirements_map", _SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("name", "ids"),
    [
        ("test_S0_25_the_first_field_wins", ["S0-25"]),
        ("test_S0_25_S0_26_and_S1_37_fields", ["S0-25", "S0-26", "S1-37"]),
        ("test_S4_REQ_009_1_chat_is_as_it_was", ["S4-REQ-009.1"]),
        ("test_S4_REQ_010_logs", ["S4-REQ-010"]),
        ("test_S4_P2_two_milliseconds", ["S4-P2"]),
        ("test_S4_EC1_S4_A7_empty", ["S4-EC1", "S4-A7"]),
        ("test_F_23_FT_07_limits", ["F-23", "FT-07"]),
        ("test_FT_07_reader", ["FT-07"]),
        ("test_A1", ["A1"]),
        ("test_pain_A1_nothing_disappears", ["pain A1"]),
        ("test_B1_pain_no_variant_leaks", ["pain B1"]),
        ("test_B12_pain_B7_x", ["B12", "pain B7"]),
        ("test_a_sentence_that_ends_in_A1", []),
        ("test_UTF_8", []),
        ("test_A100_is_no_case", []),
    ],
)
def test_ids_are_read_from_names(mapping: ModuleType, name: str, ids: list[str]) -> None:
    assert mapping.ids_in_name(name) == ids


def test_ids_are_read_from_marks_of_tests_and_of_their_classes(mapping: ModuleType, tmp_path: Path) -> None:
    tests = tmp_path / "tests"
    tests.mkdir()
    (tests / "test_it.py").write_text(
        "import pytest\n"
        "@pytest.mark.requirement('S0-01', 'S0-02')\n"
        "async def test_one(): ...\n"
        "@pytest.mark.requirement('FT-01')\n"
        "class TestTwo:\n"
        "    def test_A3_three(self): ...\n"
        "def not_a_test_A4(): ...\n"
    )
    assert mapping.collect(tmp_path) == {
        "S0-01": ["tests/test_it.py::test_one"],
        "S0-02": ["tests/test_it.py::test_one"],
        "A3": ["tests/test_it.py::TestTwo::test_A3_three"],
        "FT-01": ["tests/test_it.py::TestTwo::test_A3_three"],
    }


PAGE = """
## S0: a plan

| id | requirement | without a test because |
|---|---|---|
| S0-01 | The first. | |
| S0-02 | One \\| two. | context: it demands nothing |

### A. Cases

| id | case | without a test because |
|---|---|---|
| A1 | In → out. | |
| S4-REQ-008 | Tested. | |

## Facts

| fact | said | right |
|---|---|---|
| F-01 | No. | Yes. |
"""


def test_a_page_is_read_with_sections_and_reasons(mapping: ModuleType) -> None:
    known = mapping.read_requirements(PAGE)
    assert [(one.id, one.section, one.owed, one.reason) for one in known.values()] == [
        ("S0-01", "S0: a plan", True, ""),
        ("S0-02", "S0: a plan", True, "context: it demands nothing"),
        ("A1", "A. Cases", True, ""),
        ("S4-REQ-008", "A. Cases", True, ""),
        ("F-01", "Facts", False, ""),
    ]
    with pytest.raises(ValueError, match="A1 is there twice"):
        mapping.read_requirements(PAGE + "| A1 | Again. | |\n")


def test_a_part_counts_for_the_whole_and_a_fact_may_be_cited(mapping: ModuleType) -> None:
    found = {one: ["tests/test_it.py::test_it"] for one in ("S0-01", "A1", "S4-REQ-008.1", "F-01")}
    page = PAGE + "\n## More\n\n| id | case | without a test because |\n|---|---|---|\n| S4-REQ-008.1 | A part. | |\n"
    assert mapping.find_problems(mapping.read_requirements(page), found) == []


@pytest.mark.parametrize(
    ("carried", "old", "new", "problem"),
    [
        (["S0-01", "S4-REQ-008"], "", "", "A1: no test carries it, and the page does not say why"),
        (
            ["S0-01", "A1", "S4-REQ-008", "S0-02"],
            "",
            "",
            "S0-02: the page says why no test carries it, but tests/test_it.py::test_it does",
        ),
        (
            ["S0-01", "A1", "S4-REQ-008", "B9"],
            "",
            "",
            "B9: docs/requirements.md does not know it; tests/test_it.py::test_it carries it",
        ),
        (["S0-01", "A1", "S4-REQ-008"], "context: it", "it", "S0-02: the reason begins with none of 'context: '"),
    ],
    ids=["nothing", "both", "unknown", "no kind of reason"],
)
def test_what_does_not_fit_is_found(mapping: ModuleType, carried: list[str], old: str, new: str, problem: str) -> None:
    known = mapping.read_requirements(PAGE.replace(old, new) if old else PAGE)
    problems = mapping.find_problems(known, {one: ["tests/test_it.py::test_it"] for one in carried})
    assert len(problems) == 1
    assert problems[0].startswith(problem)


@pytest.mark.requirement("S4-REQ-008.1")
def test_FT_34_S4_REQ_008_every_requirement_has_a_test_that_carries_its_id_or_a_reason(mapping: ModuleType) -> None:
    known = mapping.read_requirements(mapping.REQUIREMENTS.read_text(encoding="utf-8"))
    assert len(known) > 500
    assert mapping.find_problems(known, mapping.collect(_SCRIPT.parent.parent)) == []


def test_every_id_of_the_map_leads_to_its_statement(mapping: ModuleType) -> None:
    known = mapping.read_requirements(PAGE)
    written = mapping.write_map(known, {"A1": ["tests/test_it.py::test_it"]})
    assert "| [A1](requirements.md#a-cases) | `test_it.py::test_it` |" in written
    assert "| [S0-02](requirements.md#s0-a-plan) | context: it demands nothing |" in written
    assert "| [S0-01](requirements.md#s0-a-plan) | **nothing yet** |" in written


def test_the_page_is_current(mapping: ModuleType) -> None:
    assert mapping.main(["--check"]) == 0
