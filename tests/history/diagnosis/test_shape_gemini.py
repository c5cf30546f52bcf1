"""Gemini's contents, in both spellings."""

from __future__ import annotations

from asides.history.diagnosis.diagnose import diagnose

ASK = {"role": "user", "parts": [{"text": "q"}]}


def test_both_spellings_are_read() -> None:
    called = {"role": "model", "parts": [{"function_call": {"name": "f", "args": {}}, "thought_signature": "c2ln"}]}
    returned = {"role": "user", "parts": [{"function_response": {"name": "f", "response": {}}}]}
    assert diagnose([ASK, called, returned], "google:gemini-3.5-flash").sound
    found = diagnose([ASK, called, ASK], "google:gemini-3.5-flash")
    assert [finding.kind for finding in found.refused] == ["tool_result_missing"]


def test_calls_without_ids_are_paired_by_name_and_order() -> None:
    called = {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {"n": n}}} for n in (1, 2)]}
    one = {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"output": "1"}}}]}
    found = diagnose([ASK, called, one, ASK], "google:gemini-2.5-pro")
    assert [finding.path for finding in found.refused] == ["contents[1].parts[1]"]
    assert len(found.repaired[2]["parts"]) == 2


def test_a_stream_in_pieces_is_one_turn() -> None:
    pieces = [{"role": "model", "parts": [{"functionCall": {"name": name, "args": {}}}]} for name in ("a", "b")]
    results = {"role": "user", "parts": [{"functionResponse": {"name": n, "response": {}}} for n in ("a", "b")]}
    assert diagnose([ASK, *pieces, results], "google:gemini-2.5-pro").sound
