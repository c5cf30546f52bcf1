"""Decode generateContent responses: parts, signatures, calls in pieces, lists, stop reasons, unknown content."""

from __future__ import annotations

import json
from typing import Any

import pytest

from asides.providers.find import find_provider
from asides.providers.provider import Target
from asides.providers.settle import settle
from asides.values.errors import (
    AuthError,
    ConnectionLost,
    ContentFiltered,
    ContextTooLong,
    Overloaded,
    ProtocolError,
    ProviderError,
    RateLimited,
    ReplayRejected,
)
from asides.values.events import Event, StopReason, TextDelta, ThinkingDelta
from asides.values.fold import fold, simulate
from asides.values.parts import File, Image, ServerTool, Text, ToolCall, UnknownPart
from asides.values.reply import Reply
from asides.values.thinking import Thought
from asides.values.usage import Usage
from tests.decoding import decoded, events_of, sse

ROW = find_provider("google")
MODEL = "gemini-3-pro-preview"
GEMINI = Target(ROW, MODEL, ROW.base_url, ROW.rule(MODEL))


def chunk(*parts: dict[str, Any], finish: str | None = None, **top: Any) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"parts": list(parts), "role": "model"}, "index": 0}
    if finish is not None:
        candidate["finishReason"] = finish
    return {"candidates": [candidate], "modelVersion": MODEL, "responseId": "r1", **top}


def stream(*parts: dict[str, Any], finish: str = "STOP") -> bytes:
    return sse(*[chunk(part) for part in parts], chunk({"text": ""}, finish=finish), done=False)


def whole(*parts: dict[str, Any], finish: str | None = "STOP", **top: Any) -> bytes:
    return json.dumps(chunk(*parts, finish=finish, **top), indent=2).encode()


def read(body: bytes) -> Reply:
    return decoded(body, GEMINI, "gemini")


def both(*parts: dict[str, Any]) -> Reply:
    """The reply of these parts, streamed a part a chunk and whole, which must be the same."""
    reply = read(whole(*parts))
    assert read(stream(*parts)) == reply
    return reply


def thought(text: str, **fields: Any) -> dict[str, Any]:
    return {"text": text, "thought": True, **fields}


def call(name: str, args: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"functionCall": {"name": name, "args": args}, **fields}


# --- text and thoughts ------------------------------------------------------------------------------------------------


def test_neighbouring_texts_of_one_kind_are_one_part() -> None:
    reply = both(thought("plan "), thought("more"), {"text": "forty-"}, {"text": "two"})
    assert [(type(part), part.text) for part in reply.parts if isinstance(part, (Text, Thought))] == [
        (Thought, "plan more"),
        (Text, "forty-two"),
    ]
    assert reply.thinking
    assert (reply.thinking.kind, reply.thinking.source) == ("summary", "block")


def test_every_delta_is_an_event() -> None:
    events, _ = events_of([stream(thought("a"), thought("b"), {"text": "c"}, {"text": "d"})], GEMINI, "gemini")
    texts = [event for event in events if isinstance(event, (ThinkingDelta, TextDelta))]
    assert [(type(event), event.text, event.block) for event in texts] == [
        (ThinkingDelta, "a", 0),
        (ThinkingDelta, "b", 0),
        (TextDelta, "c", 1),
        (TextDelta, "d", 1),
    ]


def test_a_signed_text_is_a_separate_part() -> None:
    reply = both({"text": "one "}, {"text": "two ", "thoughtSignature": "sig+A/1="}, {"text": "three"})
    texts = [part for part in reply.parts if isinstance(part, Text)]
    assert [(part.text, [seal.value for seal in part.seals]) for part in texts] == [
        ("one ", []),
        ("two ", ["sig+A/1="]),
        ("three", []),
    ]
    assert reply.text == "one two three"


def test_an_empty_text_with_a_signature_is_a_part() -> None:
    reply = both(thought("plan"), {"text": "42"}, {"text": "", "thoughtSignature": "c2ln"})
    assert [type(part) for part in reply.parts] == [Thought, Text, Text]
    last = reply.parts[-1]
    assert isinstance(last, Text)
    assert (last.text, last.seals[0].kind, last.seals[0].value) == ("", "thought_signature", "c2ln")
    assert reply.text == "42"
    assert fold(simulate(reply)) == reply


def test_a_signed_thought_without_text_is_hidden() -> None:
    reply = both(thought("", thoughtSignature="c2ln"), {"text": "42"})
    assert reply.thinking
    assert (reply.thinking.kind, reply.thinking.text, len(reply.thinking.seals)) == ("hidden", "", 1)


def test_seals_have_their_origin() -> None:
    seal = both({"text": "42", "thoughtSignature": "c2ln"}).seals[0]
    assert seal.origin == GEMINI.origin


# --- calls ------------------------------------------------------------------------------------------------------------


def test_of_parallel_calls_the_first_is_signed() -> None:
    reply = both(call("look", {"at": "x"}, thoughtSignature="c2ln"), call("look", {"at": "y"}))
    assert [(item.arguments, len(item.seals)) for item in reply.tool_calls] == [({"at": "x"}, 1), ({"at": "y"}, 0)]
    assert len({item.id for item in reply.tool_calls}) == 2
    assert reply.stop == StopReason("tool_calls", "STOP")
    assert reply.outcome == "tool_calls"


def test_an_id_of_the_server_is_used_and_a_missing_one_is_derived_the_same_each_time() -> None:
    part = {"functionCall": {"name": "look", "args": {"n": 1.5}, "id": "g5t5wv59"}}
    assert both(part).tool_calls[0].id == "g5t5wv59"
    assert both(call("look", {})).tool_calls[0].id.startswith("call_")


def test_a_call_in_pieces() -> None:
    pieces: list[dict[str, Any]] = [
        {"functionCall": {"name": "book", "id": "c1", "willContinue": True}, "thoughtSignature": "c2ln"},
        {
            "functionCall": {
                "partialArgs": [{"jsonPath": "$.city", "stringValue": "Bo", "willContinue": True}],
                "willContinue": True,
            }
        },
        {"functionCall": {"partialArgs": [{"jsonPath": "$.city", "stringValue": "ston"}], "willContinue": True}},
        {
            "functionCall": {
                "partialArgs": [
                    {"jsonPath": "$.rooms[0].beds", "numberValue": 2},
                    {"jsonPath": "$.rooms[1]['sea view']", "boolValue": True},
                ],
                "willContinue": True,
            }
        },
        {"functionCall": {"partialArgs": [{"jsonPath": "$.until", "nullValue": "NULL_VALUE"}], "willContinue": True}},
        {"functionCall": {}},
        {"functionCall": {"name": "next", "args": {}}},
    ]
    reply = read(stream(*pieces))
    assert reply.tool_calls[0] == ToolCall(
        "c1",
        "book",
        {"city": "Boston", "rooms": [{"beds": 2}, {"sea view": True}], "until": None},
        seals=reply.tool_calls[0].seals,
    )
    assert [seal.value for seal in reply.seals] == ["c2ln"]
    assert [item.name for item in reply.tool_calls] == ["book", "next"]


def test_a_call_that_broke_off_is_not_taken_for_whole() -> None:
    begun = {"functionCall": {"name": "delete", "id": "c1", "willContinue": True}}
    piece = {
        "functionCall": {
            "partialArgs": [{"jsonPath": "$.path", "stringValue": "/ho", "willContinue": True}],
            "willContinue": True,
        }
    }
    with pytest.raises(ConnectionLost) as lost:
        read(sse(chunk(begun), chunk(piece), done=False))
    assert lost.value.partial is not None
    (broken,) = lost.value.partial.tool_calls
    assert (broken.arguments, broken.raw_arguments) == ({}, '{"path":"/ho"')


def test_a_path_that_cannot_be_parsed_gives_a_warning() -> None:
    piece = {"functionCall": {"name": "f", "partialArgs": [{"jsonPath": "$..[?]", "stringValue": "x"}]}}
    assert [notice.code for notice in read(stream(piece)).warnings] == ["tool_argument_lost"]


# --- other parts ------------------------------------------------------------------------------------------------------


def test_pictures_and_sounds_are_parts_with_their_signature() -> None:
    reply = both(
        {"text": "Here:"},
        {"inlineData": {"mimeType": "image/png", "data": "aGk="}, "thoughtSignature": "c2ln"},
        {"inlineData": {"mimeType": "audio/wav", "data": "aGk="}},
        {"fileData": {"mimeType": "video/mp4", "fileUri": "gs://bucket/film"}},
    )
    picture = reply.parts[1]
    assert isinstance(picture, Image)
    assert (picture.data, picture.media_type, picture.seals[0].value) == (b"hi", "image/png", "c2ln")
    assert reply.parts[2] == File("audio.wav", b"hi", media_type="audio/wav")
    assert reply.parts[3] == File(url="gs://bucket/film", media_type="video/mp4")
    assert [seal.value for seal in reply.seals] == ["c2ln"]


def test_a_large_picture_in_one_event() -> None:
    from asides.dialects.gemini import dialect

    picture = {"inlineData": {"mimeType": "image/png", "data": "AAAA" * (3 << 20)}}
    decoder = dialect.decoder(GEMINI)
    reply = fold([*decoder.feed(stream(picture)), *decoder.finish()])
    assert isinstance(reply.parts[0], Image)
    assert reply.parts[0].data == bytes(9 << 20)


def test_a_picture_that_is_not_base64_is_stored_unchanged() -> None:
    reply = both({"inlineData": {"mimeType": "image/png", "data": "a"}})
    assert [type(part) for part in reply.parts] == [UnknownPart]


def test_the_end_of_a_call_that_is_over_is_no_call() -> None:
    assert both(call("look", {}), {"functionCall": {}}).tool_calls[1:] == ()


def test_arguments_that_come_whole_after_all() -> None:
    begun = {"functionCall": {"name": "look", "willContinue": True}}
    assert read(stream(begun, {"functionCall": {"args": {"at": "x"}}})).tool_calls[0].arguments == {"at": "x"}


def test_a_blocked_prompt_may_have_a_message() -> None:
    sent = {"promptFeedback": {"blockReason": "OTHER", "blockReasonMessage": "Not today."}}
    with pytest.raises(ContentFiltered, match="Not today"):
        read(json.dumps(sent).encode())


def test_a_picture_inside_a_thought_is_no_part_of_the_answer() -> None:
    reply = both({"inlineData": {"mimeType": "image/png", "data": "aGk="}, "thought": True}, {"text": "42"})
    assert [type(part) for part in reply.parts] == [Thought, Text]
    assert [notice.code for notice in reply.warnings] == []


def test_tools_that_the_provider_ran() -> None:
    code = {"executableCode": {"language": "PYTHON", "code": "print(6*7)"}, "thoughtSignature": "c2ln"}
    reply = both(code, {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "42\n"}}, {"text": "42"})
    tools = [part for part in reply.parts if isinstance(part, ServerTool)]
    assert [(tool.name, tool.status) for tool in tools] == [
        ("executableCode", None),
        ("codeExecutionResult", "OUTCOME_OK"),
    ]
    assert [seal.value for seal in reply.seals] == ["c2ln"]
    assert reply.tool_calls == ()
    assert not reply.warnings


def test_the_results_of_a_search_come_once_after_the_parts() -> None:
    first, last = chunk({"text": "4"}), chunk({"text": "2"}, finish="STOP")
    first["candidates"][0]["groundingMetadata"] = {"webSearchQueries": ["a"]}
    last["candidates"][0]["groundingMetadata"] = {"webSearchQueries": ["a", "b"]}
    reply = read(sse(first, last, done=False))
    tool = reply.parts[-1]
    assert isinstance(tool, ServerTool)
    assert (tool.name, json.loads(tool.json)) == ("groundingMetadata", {"webSearchQueries": ["a", "b"]})
    assert len(reply.parts) == 2


def test_an_unknown_part_is_stored_unchanged_with_a_warning() -> None:
    reply = both({"hologram": {"size": 3}}, {"text": "42"})
    assert reply.parts[0] == UnknownPart('{"hologram":{"size":3}}', GEMINI.origin)
    assert [notice.code for notice in reply.warnings] == ["unknown_content_part"]
    assert reply.text == "42"


@pytest.mark.parametrize("field", [{"text": 7}, {"text": "42", "thoughtSignature": 5}, {"functionCall": "f"}])
def test_a_field_of_a_wrong_type_is_left_out_with_a_warning(field: dict[str, Any]) -> None:
    reply = read(whole(field, {"text": "42"}))
    assert "malformed_field" in [notice.code for notice in reply.warnings]


# --- framing and endings ----------------------------------------------------------------------------------------------


def test_a_list_of_chunks_is_a_stream() -> None:
    chunks = [chunk(thought("plan")), chunk({"text": "42"}, finish="STOP")]
    reply = read(json.dumps(chunks, indent=1).encode())
    assert reply == read(sse(*chunks, done=False))
    assert (reply.streamed, len(reply.raw)) == (True, 2)


def test_a_list_that_broke_off_gives_its_whole_chunks() -> None:
    body = json.dumps([chunk(thought("plan {")), chunk({"text": "4"}), chunk({"text": "2"}, finish="STOP")]).encode()
    with pytest.raises(ConnectionLost) as lost:
        read(body[:-60])
    assert lost.value.partial is not None
    assert (lost.value.partial.text, lost.value.partial.metadata["thinking"]) == ("4", "plan {")


def test_a_stream_without_its_end_is_lost_with_the_partial_reply() -> None:
    with pytest.raises(ConnectionLost) as lost:
        read(sse(chunk({"text": "half"}), done=False))
    assert lost.value.partial is not None
    assert (lost.value.partial.text, lost.value.partial.complete) == ("half", False)


@pytest.mark.parametrize(
    ("raw", "reason", "outcome"),
    [
        ("STOP", "stop", "answered"),
        ("MAX_TOKENS", "length", "answered"),
        ("SAFETY", "content_filter", "filtered"),
        ("RECITATION", "content_filter", "filtered"),
        ("IMAGE_PROHIBITED_CONTENT", "content_filter", "filtered"),
        ("OTHER", "unknown", "answered"),
    ],
)
def test_finish_reasons(raw: str, reason: str, outcome: str) -> None:
    reply = read(whole({"text": "42"}, finish=raw))
    assert (reply.stop.reason, reply.stop.raw, reply.outcome) == (reason, raw, outcome)
    assert not reply.warnings


def test_a_malformed_call_gives_a_warning() -> None:
    body = json.dumps({"candidates": [{"finishReason": "MALFORMED_FUNCTION_CALL", "index": 0}]}).encode()
    reply = read(body)
    assert (reply.stop.reason, [notice.code for notice in reply.warnings]) == ("error", ["reply_went_wrong"])


def test_an_unknown_finish_reason_gives_a_warning() -> None:
    reply = read(whole({"text": "42"}, finish="BORED"))
    assert (reply.stop, [notice.code for notice in reply.warnings]) == (
        StopReason("unknown", "BORED"),
        ["unknown_stop_reason"],
    )


def test_out_of_tokens_while_thinking_is_starved() -> None:
    assert (
        read(whole(thought("plan"), {"text": "\n", "thoughtSignature": "c2ln"}, finish="MAX_TOKENS")).outcome
        == "starved"
    )


def test_a_candidate_without_a_number_is_the_first() -> None:
    document = chunk({"text": "42"}, finish="STOP")
    del document["candidates"][0]["index"]
    assert read(json.dumps(document).encode()).text == read(sse(document, done=False)).text == "42"


def test_other_candidates_are_left_out_with_a_warning() -> None:
    document = chunk({"text": "42"}, finish="STOP")
    document["candidates"].append({"content": {"parts": [{"text": "43"}]}, "index": 1, "finishReason": "STOP"})
    reply = read(json.dumps(document).encode())
    assert (reply.text, [notice.code for notice in reply.warnings]) == ("42", ["other_choices"])


def test_a_blocked_prompt_is_an_error() -> None:
    feedback = {"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 4}}
    for body in (json.dumps(feedback).encode(), sse(feedback, done=False)):
        with pytest.raises(ContentFiltered, match="SAFETY"):
            read(body)


def test_an_answer_without_a_candidate_is_an_error() -> None:
    with pytest.raises(ProviderError, match="no candidate"):
        read(json.dumps({"usageMetadata": {"promptTokenCount": 4}, "modelVersion": MODEL}).encode())


@pytest.mark.parametrize("body", [b"", b"<html>", b"{nonsense", b'data: {"candidates": 7\n\n'])
def test_bytes_of_no_known_form(body: bytes) -> None:
    with pytest.raises((ProtocolError, ConnectionLost)):
        read(body)


def test_an_error_in_the_middle_has_the_partial_reply() -> None:
    sent = {"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}}
    with pytest.raises(Overloaded, match="overloaded") as error:
        read(sse(chunk({"text": "half"}), sent, done=False))
    assert error.value.partial is not None
    assert (error.value.partial.text, error.value.status) == ("half", 503)


@pytest.mark.parametrize(
    ("status", "sent", "kind"),
    [
        (429, {"code": 429, "message": "Quota exceeded.", "status": "RESOURCE_EXHAUSTED"}, RateLimited),
        (403, {"code": 403, "message": "No.", "status": "PERMISSION_DENIED"}, AuthError),
        (
            400,
            {
                "code": 400,
                "message": "Function call is missing a thought_signature in functionCall parts.",
                "status": "INVALID_ARGUMENT",
            },
            ReplayRejected,
        ),
        (400, {"code": 400, "message": "Corrupted thought signature.", "status": "INVALID_ARGUMENT"}, ReplayRejected),
        (
            400,
            {
                "code": 400,
                "message": "The input token count (2000000) exceeds the maximum number of tokens allowed (1048576).",
                "status": "INVALID_ARGUMENT",
            },
            ContextTooLong,
        ),
        (
            400,
            {
                "code": 400,
                "message": "API key not valid. Please pass a valid API key.",
                "status": "INVALID_ARGUMENT",
                "details": [{"reason": "API_KEY_INVALID"}],
            },
            AuthError,
        ),
        (500, {"code": 500, "message": "Internal.", "status": "INTERNAL"}, Overloaded),
    ],
)
def test_errors_by_status_alone_or_in_a_list(status: int, sent: dict[str, Any], kind: type[ProviderError]) -> None:
    from asides.dialects.gemini import dialect

    for document in ({"error": sent}, [{"error": sent}]):
        error = dialect.error(status, {}, json.dumps(document).encode(), GEMINI)
        assert type(error) is kind
        assert sent["message"].rstrip(".") in str(error)


def test_a_wrong_key_is_recognised_by_its_reason_alone() -> None:
    from asides.dialects.gemini import dialect

    sent = {"code": 400, "message": "No.", "status": "INVALID_ARGUMENT", "details": [{"reason": "API_KEY_INVALID"}]}
    assert type(dialect.error(400, {}, json.dumps({"error": sent}).encode(), GEMINI)) is AuthError


def test_the_wait_that_an_error_asks_for() -> None:
    from asides.dialects.gemini import dialect

    details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "48.5s"}]
    body = json.dumps({"error": {"code": 429, "message": "Quota.", "details": details}}).encode()
    assert dialect.error(429, {}, body, GEMINI).retry_after == 48.5
    assert dialect.error(429, {"x-request-id": "r7"}, body, GEMINI).request_id == "r7"
    assert dialect.error(502, {}, b"<html>Bad Gateway</html>", GEMINI).status == 502


# --- usage ------------------------------------------------------------------------------------------------------------


def test_output_includes_thinking_and_says_that_it_was_added() -> None:
    sent = {
        "promptTokenCount": 10,
        "candidatesTokenCount": 5,
        "thoughtsTokenCount": 30,
        "cachedContentTokenCount": 4,
        "totalTokenCount": 45,
    }
    assert read(whole({"text": "42"}, usageMetadata=sent)).usage == Usage(10, 35, 30, 4, 45, "derived")


def test_the_results_of_tools_are_input_and_thinking_is_output_as_the_total_counts_them() -> None:
    sent = {"promptTokenCount": 23, "candidatesTokenCount": 278, "thoughtsTokenCount": 315, "totalTokenCount": 1236}
    tools = {"toolUsePromptTokenCount": 620}
    assert read(whole({"text": "42"}, usageMetadata=sent | tools)).usage == Usage(643, 593, 315, None, 1236, "derived")


def test_the_last_count_of_a_stream_is_the_one_that_counts() -> None:
    body = sse(
        chunk({"text": "4"}, usageMetadata={"promptTokenCount": 19, "totalTokenCount": 19}),
        chunk({"text": "2"}, usageMetadata={"trafficType": "ON_DEMAND"}),
        chunk(
            {"text": "!"},
            finish="STOP",
            usageMetadata={"promptTokenCount": 18, "candidatesTokenCount": 3, "totalTokenCount": 21},
        ),
        done=False,
    )
    assert read(body).usage == Usage(18, 3, None, None, 21, "reported")


def test_decoding_needs_only_the_last_stored_payload() -> None:
    """A caller without raw documents drops all but the last one between two reads."""
    from asides.dialects.gemini import dialect

    decoder = dialect.decoder(GEMINI)
    events: list[Event] = []
    for piece in (sse(chunk({"text": "42"}), done=False), sse(chunk(finish="STOP"), done=False)):
        events += decoder.feed(piece)
        del decoder.payloads[:-1]
    assert fold([*events, *decoder.finish()]).text == "42"
    assert decoder.failure is None


# --- tags in the text, at a server of which nothing is known ----------------------------------------------------------

ANYBODY = find_provider("gemini-compatible")
FOREIGN = Target(ANYBODY, "any", "http://127.0.0.1:9/v1beta", ANYBODY.rule("any"))


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
@pytest.mark.parametrize(
    ("text", "thinking", "answer"),
    [
        ("<think>plan</think>42", "plan", "42"),
        ("<think>plan", "plan", ""),
        ("42 is <think>no tag</think>", "", "42 is <think>no tag</think>"),
        ("plain", "", "plain"),
    ],
)
def test_thinking_in_tags_is_taken_out_of_the_text(text: str, thinking: str, answer: str, size: int) -> None:
    parts = [{"text": text[start : start + size]} for start in range(0, len(text), size)]
    call = {"functionCall": {"id": "c", "name": "f", "args": {}}}
    for body in (whole(*parts), stream(*parts), whole(*parts, call), stream(*parts, call)):
        reply = decoded(body, FOREIGN, "gemini")
        assert (reply.text, reply.thinking.text) == (answer, thinking)


def test_a_signature_in_the_middle_of_a_tag_lets_nothing_through() -> None:
    parts: list[dict[str, Any]] = [{"text": "<think>pl"}, {"text": "an</think>42", "thoughtSignature": "c2lnbmVk"}]
    for body in (whole(*parts), stream(*parts)):
        reply = decoded(body, FOREIGN, "gemini")
        assert (reply.text, reply.thinking and reply.thinking.text) == ("42", "plan")
        assert [seal.value for part in reply.parts for seal in getattr(part, "seals", ())] == ["c2lnbmVk"]


def test_many_unknown_parts_split_their_body_once() -> None:
    parts = [{"new": number} for number in range(3_000)]
    assert [
        json.loads(part.json)["new"] for part in read_once(whole(*parts)).parts if isinstance(part, UnknownPart)
    ] == [*range(3_000)]


def read_once(body: bytes) -> Reply:
    return fold(events_of([body], GEMINI, "gemini")[0])


ELSEWHERE = Target(ANYBODY, MODEL, "http://127.0.0.1:9/v1beta", ANYBODY.rule(MODEL))
GOOGLE_ELSEWHERE = Target(ROW, MODEL, "http://127.0.0.1:9/v1beta", ROW.rule(MODEL))


@pytest.mark.parametrize("target", [GEMINI, ELSEWHERE, settle(ELSEWHERE), settle(GOOGLE_ELSEWHERE)])
@pytest.mark.parametrize(
    ("sent", "parts"),
    [
        ([("It is ", ""), ("42.", "c2ln")], [("It is ", ""), ("42.", "c2ln")]),
        ([("It ", ""), ("is ", ""), ("42.", "c2ln")], [("It is ", ""), ("42.", "c2ln")]),
        ([("It is ", "b25l"), ("42.", "c2ln")], [("It is ", "b25l"), ("42.", "c2ln")]),
        ([("It is ", "b25l"), ("42.", "")], [("It is ", "b25l"), ("42.", "")]),
        ([("It is 42.", ""), ("", "c2ln")], [("It is 42.", ""), ("", "c2ln")]),
        ([("It is 42.", "c2ln")], [("It is 42.", "c2ln")]),
        ([("a < b ", ""), ("is so.", "c2ln")], [("a < b ", ""), ("is so.", "c2ln")]),
        ([("Use `<think>`, ", ""), ("please.", "c2ln")], [("Use `<think>`, ", ""), ("please.", "c2ln")]),
    ],
)
def test_a_signed_text_is_not_joined_with_the_text_before_it(
    target: Target, sent: list[tuple[str, str]], parts: list[tuple[str, str]]
) -> None:
    wire = [{"text": text} | ({"thoughtSignature": signature} if signature else {}) for text, signature in sent]
    for body in (whole(*wire), stream(*wire)):
        reply = decoded(body, target, "gemini")
        said = [
            (part.text, "".join(seal.value for seal in part.seals)) for part in reply.parts if isinstance(part, Text)
        ]
        assert said == parts


def test_a_tag_that_is_open_before_a_signed_text_is_not_cut() -> None:
    target = settle(ELSEWHERE)
    wire = [{"text": "<think>hidden "}, {"text": "too</think>42", "thoughtSignature": "c2ln"}]
    for body in (whole(*wire), stream(*wire)):
        reply = decoded(body, target, "gemini")
        thoughts = [part.text for part in reply.parts if isinstance(part, Thought)]
        assert (thoughts, reply.text) == (["hidden too"], "42")
