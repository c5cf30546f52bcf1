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
    assert mapping.collect(tests) == {
        "S0-01": ["tests/test_it.py::test_one"],
        "S0-02": ["tests/test_it.py::test_one"],
        "A3": ["tests/test_it.py::TestTwo::test_A3_three"],
        "FT-01": ["tests/test_it.py::TestTwo::test_A3_three"],
    }


def test_an_id_that_no_test_carries_is_missed_and_a_part_counts_for_the_whole(mapping: ModuleType) -> None:
    carried = set(mapping.EXPECTED) - {"S0-25", "S4-REQ-008"} | {"S4-REQ-008.1"}
    assert mapping.missing(carried) == ["S0-25"]


def test_FT_34_S4_REQ_008_every_requirement_has_a_test_that_carries_its_id(mapping: ModuleType) -> None:
    assert mapping.missing(mapping.collect(_SCRIPT.parent.parent / "tests")) == []


def test_the_page_is_current(mapping: ModuleType) -> None:
    assert mapping.main(["--check"]) == 0
