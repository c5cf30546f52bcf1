"""The provider-author kit, by requirement: the checklist for new providers is checks by name, and a toy passes them."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import msgspec
import pytest

import asides
from asides.values.events import ThinkingDelta
from asides_stage.conformance import CHECKS, examine
from asides_stage.stage import OpenStage, Raw
from tests.testing.conformance import test_toy
from tests.testing.conformance.broken_toys import BROKEN
from tests.testing.conformance.test_toy import RECORDED, ROW_ONLY
from tests.testing.conformance.toy import TOY, dialect

# S3-53: what an author of a provider has to do, and the check that finds it undone.
CHECKLIST = {
    "declare the capability": ("the_capability_is_declared",),
    "add the option": ("thinking_can_be_asked_for", "thinking_can_be_switched_off"),
    "extract from the stream": ("thinking_is_extracted",),
    "filter from the parts": ("thinking_is_filtered_from_the_answer", "nothing_leaks"),
    "put the accumulated text in the final metadata": ("thinking_is_in_the_metadata", "deltas_add_up"),
}
# S3-52: what the tests of a provider cover.
COVERAGE = {
    "options and defaults": ("thinking_can_be_asked_for", "thinking_can_be_switched_off"),
    "the mapper passes the config": ("an_amount_is_sent_or_reported", "a_request_is_read_by_the_server_half"),
    "the transformer extracts deltas": ("thinking_is_extracted",),
    "accumulation": ("deltas_add_up",),
    "filtered from parts": ("thinking_is_filtered_from_the_answer",),
    "metadata only": ("thinking_is_in_the_metadata", "nothing_leaks"),
    "end to end, streamed and whole": ("sync_is_async", "streamed_is_whole"),
    "with tools": ("a_call_and_its_result_go_back", "a_server_accepts_the_next_turn"),
    "capability declared": ("the_capability_is_declared",),
}


def test_FT_31_a_toy_provider_of_fifty_lines_passes_the_suite() -> None:
    source = Path(test_toy.__file__).read_text(encoding="utf-8")
    row = next(
        statement
        for statement in ast.parse(source).body
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "ROW_ONLY"
    )
    assert (row.end_lineno or 0) - row.lineno < 50
    report = examine(ROW_ONLY, examples=[RECORDED]).raise_on_failure()
    assert len(report.findings) == len(CHECKS)


def test_FT_31_S3_53_a_toy_with_a_language_of_its_own_passes_the_suite() -> None:
    report = examine(TOY, dialect=dialect).raise_on_failure()
    assert [finding.check for finding in report.skipped] == ["examples_are_read"]


@pytest.mark.parametrize("duty", CHECKLIST)
def test_S3_53_each_duty_of_a_new_provider_is_a_check_that_finds_it_undone(duty: str) -> None:
    for check in CHECKLIST[duty]:
        broken = [(row, spoken) for _, name, row, spoken, _ in BROKEN if name == check]
        assert broken
        for row, spoken in broken:
            others = [name for name in CHECKS if name != check]
            assert examine(row, dialect=spoken, skip=others, quick=True).of(check).verdict == "failed"


def test_S3_52_what_the_tests_of_a_provider_cover_is_run_for_a_row_alone() -> None:
    report = examine(ROW_ONLY, quick=True)
    for covered in COVERAGE.values():
        for check in covered:
            assert report.of(check).verdict == "passed", check


def streamed(*thoughts: str) -> bytes:
    deltas: list[dict[str, str]] = [*({"inner_voice": thought} for thought in thoughts), {"content": "42"}]
    choices: list[dict[str, Any]] = [{"index": 0, "delta": delta} for delta in deltas]
    choices[-1]["finish_reason"] = "stop"
    chunks = [{"id": "1", "choices": [choice]} for choice in choices]
    return b"".join(b"data: " + msgspec.json.encode(chunk) + b"\n\n" for chunk in chunks) + b"data: [DONE]\n\n"


def test_S3_54_thinking_is_metadata_under_one_key_accumulated_and_one_delta_per_chunk(stage: OpenStage) -> None:
    server = stage(Raw(streamed("six ", "times ", "seven")))
    with (
        asides.Client(providers=[ROW_ONLY]) as client,
        client.stream("ponder-host:ponder-1", "?", base_url=server.url, api_key="k") as events,
    ):
        thoughts = [event.text for event in events if isinstance(event, ThinkingDelta)]
        reply = events.reply
    assert thoughts == ["six ", "times ", "seven"]
    assert reply.metadata["thinking"] == "six times seven"
    assert [key for key, value in reply.metadata.items() if value == "six times seven"] == ["thinking"]
    assert reply.text == "42"


def test_S3_54_F_32_thinking_is_sent_back_only_where_the_row_says_that_it_has_to_be() -> None:
    reply = asides.decode("openai_chat", streamed("a thought"), provider=ROW_ONLY, model="ponder-1")
    history: list[asides.Message | asides.Reply] = [asides.user("?"), reply, asides.user("And?")]
    never = asides.explain("ponder-host:ponder-1", history, providers=[ROW_ONLY])
    assert "a thought" not in str(never.body)
    wanting = msgspec.structs.replace(ROW_ONLY, replay=(asides.ReplayRule(when="all"),))
    always = asides.explain("ponder-host:ponder-1", history, providers=[wanting])
    assert always.body["messages"][1]["inner_voice"] == "a thought"
