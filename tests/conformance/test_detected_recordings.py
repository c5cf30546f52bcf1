"""The dialect of every recording is recognised from its bytes, whole or cut in half."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest

from asides.dialects import find_dialect
from asides.intake.detect import detect_dialect
from asides.values.errors import ProtocolError
from tests.conformance.test_recordings import DIALECTS, FOLDER, manifest, target_of

pytestmark = [
    pytest.mark.recordings,
    pytest.mark.skipif(not manifest(), reason="no folder of recordings beside this checkout"),
]


def read(entry: dict[str, Any]) -> bytes:
    return (FOLDER / str(entry["file"])).read_bytes()


def test_every_reply_is_recognised() -> None:
    replies = [entry for entry in manifest() if entry["status"] < 400]
    wrong = {entry["id"]: detect_dialect(read(entry)) for entry in replies}
    assert {name: found for name, found in wrong.items() if found != _expected()[name]} == {}
    assert len(replies) > 500


def test_an_error_is_read_to_its_message_whichever_of_the_dialects_that_write_it_alike_is_chosen() -> None:
    failed = [entry for entry in manifest() if entry["status"] >= 400]
    for entry in failed:
        body, target = read(entry), target_of(entry)
        ours = find_dialect(detect_dialect(body)).error(entry["status"], {}, body, target)
        theirs = find_dialect(DIALECTS[entry["dialect"]]).error(entry["status"], {}, body, target)
        assert (type(ours), str(ours)) == (type(theirs), str(theirs)), entry["id"]
    assert failed


def test_half_of_a_body_is_recognised_or_is_none_but_never_another_dialect() -> None:
    missed, wrong = 0, dict[str, str]()
    for entry in manifest():
        body = read(entry)
        try:
            found = detect_dialect(body[: len(body) // 2])
        except ProtocolError:
            missed += 1
            continue
        if found != _expected()[entry["id"]] and entry["status"] < 400:
            wrong[entry["id"]] = found
    assert wrong == {}
    assert missed <= 15


def test_a_response_of_another_interface_is_recognised_as_none() -> None:
    lines = (FOLDER / "manifest.jsonl").read_text().splitlines()
    others = [entry for entry in map(json.loads, lines) if entry["dialect"] == "other" and entry["status"] < 400]
    for entry in others:
        if entry["sub"] == "gemini_interactions":
            assert detect_dialect(read(entry)) == entry["sub"]
            continue
        with pytest.raises(ProtocolError, match="in no dialect that asides knows"):
            detect_dialect(read(entry))
    assert others


@cache
def _expected() -> dict[str, str]:
    return {entry["id"]: DIALECTS[entry["dialect"]] for entry in manifest()}
