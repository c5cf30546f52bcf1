"""Bodies are split, taken apart and changed in every framing."""

from __future__ import annotations

from typing import Any

import pytest

from asides.wire.aws_frames import FrameReader, write_frame
from asides_stage.conformance.response_bodies import (
    add_unknown_fields,
    insert_event,
    list_chunkings,
    read_documents,
    rename_field,
    replace_documents,
    split_body,
    vary_values,
)

HEADERS = {":event-type": "a", ":content-type": "application/json", ":message-type": "event"}
DOCUMENTS: list[Any] = [{"a": 1}, {"b": [{"c": "x"}]}]
BODIES = {
    "sse": b'data: {"a":1}\n\ndata: {"b":[{"c":"x"}]}\n\ndata: [DONE]\n\n',
    "lines": b'{"a":1}\n{"b":[{"c":"x"}]}\n',
    "aws": write_frame(HEADERS, b'{"a":1}') + write_frame(HEADERS, b'{"b":[{"c":"x"}]}'),
}


@pytest.mark.parametrize("framing", BODIES)
def test_documents_are_read_and_replaced(framing: str) -> None:
    body = BODIES[framing]
    assert read_documents(body) == DOCUMENTS
    changed = replace_documents(body, [{"z": 1}, {"z": 2}])
    assert read_documents(changed) == [{"z": 1}, {"z": 2}]
    assert (b"[DONE]" in changed) == (framing == "sse")


@pytest.mark.parametrize("framing", BODIES)
def test_an_event_is_inserted_between_the_others(framing: str) -> None:
    documents = read_documents(insert_event(BODIES[framing], {"new": True}))
    assert documents is not None
    assert {"new": True} in documents
    assert [document for document in documents if document != {"new": True}] == DOCUMENTS


def test_an_unknown_framing_has_no_documents() -> None:
    assert read_documents(b"<html></html>") is None
    assert read_documents(b"{broken\n") is None


def test_a_body_is_split_into_pieces_that_join_to_it() -> None:
    assert split_body(b"abcdef", [1, 2]) == [b"a", b"bc", b"d", b"ef"]
    assert all(b"".join(pieces) == b"abcdef" for pieces in list_chunkings(b"abcdef"))
    assert len(FrameReader().feed(BODIES["aws"])) == len(DOCUMENTS)


def test_documents_are_changed_at_any_depth() -> None:
    added = add_unknown_fields({"a": [{"b": 1}]})
    assert "x_made_up" in added
    assert "x_made_up" in added["a"][0]
    assert rename_field({"a": [{"a": 1}]}, "a", "z") == {"z": [{"z": 1}]}
    variants = list(vary_values({"a": {"b": 1}}))
    assert {"a": None} in variants
    assert {"a": {"b": "made up"}} in variants
    assert {"a": {"b": 7}} not in variants, "that is no other type"
