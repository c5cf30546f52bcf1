"""The suite as authors use it: reports, test classes for pytest and unittest, examples, other dialects."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import unittest
from pathlib import Path
from typing import cast

import msgspec
import pytest

import asides
from asides.dialects import list_third_party
from asides.dialects.dialect import Dialect
from asides.providers.provider import ModelRule, Provider, Quirks
from asides_stage import (
    CHECKS,
    NETWORK,
    Example,
    Finding,
    Nonconformance,
    ProviderSuite,
    checks,
    describe,
    examine,
)
from tests.stores import list_import_folders
from tests.testing.conformance.broken_toys import LosesTheMark, with_decoder
from tests.testing.conformance.test_toy import RECORDED, ROW_ONLY
from tests.testing.conformance.toy import TOY, ToyDialect, ToyWriter, dialect

PURE = tuple(name for name in CHECKS if name not in NETWORK)


def test_a_report_says_what_was_expected_what_came_and_what_to_do() -> None:
    report = examine(TOY, dialect=with_decoder(LosesTheMark), quick=True)
    assert not report.passed
    assert {finding.check for finding in report.failures} == {"seals_return", "a_server_accepts_the_next_turn"}
    finding = report.of("seals_return")
    text = str(report)
    assert text.startswith("toy:pondering-1 (toy): 2 of 31 checks failed, 1 skipped")
    for words in (finding.expected, finding.actual, finding.to_do):
        assert words in text
    with pytest.raises(Nonconformance, match=r"toy:pondering-1 \(toy\) does not conform") as caught:
        report.raise_on_failure()
    assert isinstance(caught.value, AssertionError)
    assert "ThoughtSealed" in str(caught.value)
    with pytest.raises(KeyError, match="nothing_there was not run"):
        report.of("nothing_there")


def test_a_request_that_the_host_refuses_is_found_before_it_is_sent() -> None:
    thinks = ModelRule(thinking="optional", default="off", efforts=("minimal", "low"), forms=("adaptive", "disabled"))
    quirks = Quirks(enforces=("claude_rules",))
    row = Provider(
        name="mine", dialect="anthropic", base_url="https://mine.example/v1", quirks=quirks, models=(thinks,)
    )
    finding = examine(row, model="small-1", quick=True).of("an_amount_is_sent_or_reported")
    assert finding.verdict == "failed"
    assert "output_config.effort: Input should be 'low', 'medium'" in finding.actual


def test_a_good_report_is_given_back() -> None:
    report = examine(TOY, dialect=dialect, quick=True)
    assert report.raise_on_failure() is report
    assert (report.provider, report.model, report.dialect) == ("toy", "pondering-1", "toy")
    assert str(report.of("nothing_leaks")) == "passed   nothing_leaks"
    assert str(report.of("examples_are_read")).startswith("skipped  examples_are_read: no examples were given")


def test_every_check_says_what_has_to_hold() -> None:
    assert len(CHECKS) == len(set(CHECKS)) == 31
    for name in CHECKS:
        assert describe(name).endswith(".")
        assert hasattr(ProviderSuite, f"test_{name}")


def test_an_exception_of_the_authors_code_is_reported_with_its_place() -> None:
    class Raising(ToyDialect):
        def writer(self, *, model: str, stream: bool, include_usage: bool = True) -> ToyWriter:
            raise LookupError("not here")

    (check,) = (one for one in checks(TOY, dialect=Raising()) if one.name == "deltas_add_up")
    finding = check.find()
    assert finding.actual.startswith("LookupError was raised, at test_suite.py:")
    with pytest.raises(Nonconformance) as caught:
        check()
    assert isinstance(caught.value.__cause__, LookupError)


def test_a_report_names_the_methods_that_a_dialect_lacks() -> None:
    class Unfinished:
        name = "toy"
        encode = staticmethod(ToyDialect().encode)
        decoder = staticmethod(ToyDialect().decoder)

    report = examine(TOY, dialect=cast("Dialect", Unfinished()), quick=True)
    assert len(report.failures) == len(CHECKS)
    missing = "error, models_request, read_models, read, writer, write_error, write_models"
    assert report.findings[0].actual == f"ConfigError was raised: the dialect 'toy' lacks {missing}."
    assert report.findings[0].to_do.startswith("Have every method of")


def test_sockets_can_be_left_out_and_so_can_checks() -> None:
    assert tuple(check.name for check in checks(TOY, dialect=dialect, network=False)) == PURE
    left = examine(TOY, dialect=dialect, network=False, skip=PURE[1:], quick=True)
    assert [finding.check for finding in left.findings] == [PURE[0]]
    with pytest.raises(ValueError, match="unknown check 'nothing_leeks'; the checks are"):
        checks(TOY, skip=["nothing_leeks"])


def test_a_dialect_is_known_only_while_it_is_examined() -> None:
    assert "toy" not in list_third_party()
    examine(TOY, dialect=dialect, network=False, quick=True).raise_on_failure()
    assert "toy" not in list_third_party()
    with pytest.raises(asides.Unsupported, match="'toy' is neither a dialect nor a provider"):
        asides.decode("toy", b"{}", provider=TOY)


def test_a_row_is_examined_in_each_dialect_that_it_speaks() -> None:
    row = asides.find_provider("openai")
    names = {
        examine(row, dialect=name, network=False, quick=True).dialect for name in ("openai_chat", "openai_responses")
    }
    assert names == {"openai_chat", "openai_responses"}
    wrong = examine(row, dialect="cohere", network=False, quick=True, skip=CHECKS[1:])
    assert wrong.failures[0].actual.startswith("Unsupported was raised")


async def test_it_runs_inside_a_loop_too() -> None:
    await asyncio.sleep(0)
    report = examine(TOY, dialect=dialect, quick=True, skip=PURE)
    assert [finding.verdict for finding in report.findings] == ["passed"] * len(NETWORK)


def test_a_turn_that_only_the_models_maker_would_refuse_is_skipped_with_the_reason() -> None:
    """The stage's chat rules go by model name; a row may know better what its host accepts."""
    row = asides.Provider(
        name="my-host",
        base_url="https://llm.example/v1",
        models=(asides.ModelRule(models="deepseek-v4*", thinking="optional", default="on"),),
    )
    report = examine(row, quick=True)
    assert report.passed
    assert "the maker of this model would refuse the turn" in report.of("seals_return").reason
    assert "must be passed back" in report.of("seals_return").reason
    # A call repairs the turn, and the conversation goes on.
    assert report.of("a_server_accepts_the_next_turn").verdict == "passed"
    knowing = msgspec.structs.replace(row, replay=(asides.ReplayRule(when="tool_turns"),))
    assert examine(knowing, quick=True).of("a_server_accepts_the_next_turn").verdict == "passed"


# --- examples ---------------------------------------------------------------------------------------------------------


def verdict(*examples: Example) -> Finding:
    return examine(ROW_ONLY, examples=examples, network=False, quick=True).of("examples_are_read")


def test_an_example_may_come_in_one_form_and_say_little() -> None:
    assert verdict(Example(whole=RECORDED.whole)).verdict == "passed"
    assert verdict(Example(stream=RECORDED.stream), RECORDED).verdict == "passed"
    whole = asides.decode("openai_chat", RECORDED.whole or b"", provider=ROW_ONLY)
    assert (whole.text, whole.thinking and whole.thinking.text) == ("42", "six times seven")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"text": "43"}, "text"),
        ({"thinking": ""}, "thinking"),
        ({"tool_calls": (("look", {}),)}, "tool_calls"),
        ({"seals": ("abc",)}, "seals"),
        ({"stop": "length"}, "stop"),
        ({"outcome": "starved"}, "outcome"),
        ({"reply": asides.Reply()}, "reply"),
    ],
)
def test_an_example_that_becomes_something_else_is_reported_by_field_and_not_by_content(
    change: dict[str, object], field: str
) -> None:
    finding = verdict(msgspec.structs.replace(RECORDED, **change))
    assert (finding.verdict, finding.actual) == ("failed", f"it differs in {field}")
    assert "six times seven" not in str(finding)


def test_whole_and_stream_that_differ_are_reported() -> None:
    stream = (RECORDED.stream or b"").replace(b'"content":"42"', b'"content":"43"')
    finding = verdict(msgspec.structs.replace(RECORDED, stream=stream))
    assert finding.actual == "they differ in parts"


def test_an_example_of_another_model_is_read_by_its_rule() -> None:
    tagged = b'{"model":"t","choices":[{"index":0,"message":{"content":"plan"},"finish_reason":"length"}]}'
    row = msgspec.structs.replace(
        ROW_ONLY,
        models=(asides.ModelRule(models="t", tags=("think",), starts_inside=True, thinking="always"), *ROW_ONLY.models),
    )
    for model, text in (("t", ""), (None, "plan")):
        report = examine(
            row, model="ponder-1", examples=[Example(whole=tagged, model=model, text=text)], network=False, quick=True
        )
        assert report.of("examples_are_read").verdict == "passed"


# --- as tests ---------------------------------------------------------------------------------------------------------

_FILE = """
import unittest
import asides
from asides_stage import ProviderSuite
from tests.testing.conformance.broken_toys import LosesTheMark, with_decoder
from tests.testing.conformance.toy import TOY, dialect

class TestToy(ProviderSuite{base}):
    provider = TOY
    dialect = {dialect}
    quick = True
    network = False
    skip = ("the_row_is_valid",)
"""


def run_tests(folder: Path, *command: str) -> str:
    """Return the output of a test runner."""
    done = subprocess.run(
        [sys.executable, "-m", *command],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=folder,
        env={"PYTHONPATH": list_import_folders(), "PATH": "/usr/bin:/bin"},
    )
    return done.stdout + done.stderr


def test_with_pytest_each_check_is_a_test(tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text(_FILE.format(base="", dialect="dialect"), encoding="utf-8")
    output = run_tests(tmp_path, "pytest", "-q", "-p", "no:cacheprovider", "test_mine.py")
    # Skipped: the checks with sockets, the one in `skip`, and the examples.
    assert f"{len(CHECKS) - len(NETWORK) - 2} passed, {len(NETWORK) + 2} skipped" in output


def test_with_pytest_a_failure_shows_the_message_and_no_code_of_the_suite(tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text(
        _FILE.format(base="", dialect="with_decoder(LosesTheMark)"), encoding="utf-8"
    )
    output = run_tests(tmp_path, "pytest", "-q", "-p", "no:cacheprovider", "test_mine.py")
    assert "1 failed" in output
    assert "to do:    emit ThoughtSealed" in output


def test_with_unittest_too(tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text(
        _FILE.format(base=", unittest.TestCase", dialect="dialect"), encoding="utf-8"
    )
    output = run_tests(tmp_path, "unittest", "test_mine")
    assert f"Ran {len(CHECKS)} tests" in output
    assert f"OK (skipped={len(NETWORK) + 2})" in output


def test_a_suite_without_a_provider_says_so() -> None:
    class TestNobody(ProviderSuite):
        pass

    with pytest.raises(TypeError, match="TestNobody names no provider"):
        TestNobody.run_check("the_row_is_valid")


def test_what_is_left_out_is_skipped_by_name() -> None:
    class TestMine(ProviderSuite):
        provider = TOY
        dialect = dialect
        skip = ("the_row_is_valid",)

    with pytest.raises(unittest.SkipTest, match="TestMine leaves the_row_is_valid out"):
        TestMine.run_check("the_row_is_valid")
