"""Replies of real engines running the embedded model, byte for byte: each comes apart as its request says it must.

The recordings are not part of this project. They are read where a folder of them lies beside the checkout (or where
ASIDES_ENGINE_RECORDINGS names one); without it these tests are skipped. What is expected follows from the request: the
model is the same everywhere and does the same sums, whoever serves it.
"""

from __future__ import annotations

import json
import os
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from asides import dialects
from asides.providers.find import find_provider
from asides.providers.provider import Target
from asides.providers.table import plain_row
from asides.values import errors
from asides.values.reply import Reply
from tests.decoding import decoded, reply_of

FOLDER = Path(
    os.environ.get("ASIDES_ENGINE_RECORDINGS") or Path(__file__).parents[3] / "shared" / "models" / "recordings"
)
# Who made the recordings of a folder, as a row; their other languages are read as anybody's.
ROWS = {
    "xllamacpp-*": "llamacpp",
    "debian-llama-server-*": "llamacpp",
    "vllm-*": "vllm",
    "transformers-serve-*": "openai-compatible",
}
PATHS = {"/v1/chat/completions": "openai_chat", "/v1/responses": "openai_responses", "/v1/messages": "anthropic"}

pytestmark = [
    pytest.mark.recordings,
    pytest.mark.skipif(not FOLDER.exists(), reason="no folder of engine recordings beside this checkout"),
]


class Recording(NamedTuple):
    server: str
    name: str
    status: int
    body: bytes
    dialect: str

    def __str__(self) -> str:
        return f"{self.server.partition('-')[0]}:{self.name}"

    @property
    def target(self) -> Target:
        row = find_provider(next(name for pattern, name in ROWS.items() if fnmatchcase(self.server, pattern)))
        row = row if row.dialect == self.dialect else plain_row(self.dialect)
        rule = row.rule("tiny-reasoner")
        if "prefilled" in self.server or "prefilled" in self.name:
            # The template of these opened the tag itself, which is a fact of the model and not in the bytes.
            rule = msgspec.structs.replace(rule, starts_inside=True)
        return Target(row, "tiny-reasoner", row.base_url, rule)


@cache
def recordings() -> list[Recording]:
    found: list[Recording] = []
    for file in sorted(FOLDER.glob("*/*.response.txt")):
        name = file.name.removesuffix(".response.txt")
        request = file.with_name(f"{name}.request.json")
        if name.startswith("get-"):
            continue
        path = json.loads(request.read_text())["path"] if request.exists() else "/v1/chat/completions"
        if PATHS.get(path) in dialects.DIALECTS:
            head, _, body = file.read_bytes().partition(b"\r\n\r\n")
            found.append(Recording(file.parent.name, name, int(head.split()[1]), body, PATHS[path]))
    return found


class Expected(NamedTuple):
    """What a scenario has to come to. None and () leave a part open or empty."""

    says: str = ""
    thinks: str | None = None
    """Where the thought begins; None: there is none."""
    calls: tuple[dict[str, Any], ...] = ()
    outcomes: tuple[str, ...] = ("answered",)


_SUM = "I need the sum of 47 and 85."
_WEATHER = "The user wants the weather in Paris"
_CALLS = ("tool_calls",)
# Two of the servers say of a response that was cut that it is complete.
_CUT = Expected(thinks=_SUM, outcomes=("starved", "unterminated"))

# The first pattern that a recording's name matches counts.
SCENARIOS: dict[str, Expected] = {
    "*cut*": _CUT,
    "*max20": _CUT,
    "*thinking-off-kwarg": Expected("132"),
    "*budget-0-tokens": Expected("132"),
    "*budget-12*": Expected("132", "I need the sum of 47 and 8"),
    "*effort-none": Expected("132"),
    "*effort-low": Expected("132", "47 + 85 = 132."),
    "*summary-auto": Expected("132", "47 + 85 = 132."),
    "*tool-two-calls": Expected("", _WEATHER, ({"location": "Paris"}, {"location": "Tokyo"}), _CALLS),
    "*tool-result*": Expected("18 degrees and sunny in Paris", "The tool says"),
    "*tool*": Expected("", _WEATHER, ({"location": "Paris"},), _CALLS),
    "*follow-up": Expected("139", "The last answer was 132."),
    "*unicode": Expected("café 日本語 👋", "The user wants me to repeat the text: café 日本語 👋"),
    "*json-schema": Expected('"answer": 132}', _SUM),
    "*logprobs": Expected("4", ""),
    "*": Expected("132", _SUM),
}
# Where one server does otherwise than the rest, told the same: one knows no efforts, one alone heeds a switch.
OTHERWISE = {
    "transformers-serve-*:*effort-*": Expected("132", _SUM),
    "transformers-serve-*:*summary-auto": Expected("132", _SUM),
    "vllm-*:*messages-*-thinking-disabled": Expected("132"),
}


def expected_of(recording: Recording) -> Expected:
    known = {**OTHERWISE, **{f"*:{pattern}": expected for pattern, expected in SCENARIOS.items()}}
    name = f"{recording.server}:{recording.name}"
    return next(expected for pattern, expected in known.items() if fnmatchcase(name, pattern))


def is_reply(recording: Recording) -> bool:
    return recording.status == 200 and "error" not in recording.name


@pytest.mark.parametrize("recording", [each for each in recordings() if is_reply(each)], ids=str)
def test_a_reply_of_a_real_engine_comes_apart(recording: Recording) -> None:
    reply = decoded(recording.body, recording.target, recording.dialect)
    expected = expected_of(recording)
    assert reply.outcome in expected.outcomes
    assert expected.says in reply.text
    assert tuple(call.arguments for call in reply.tool_calls) == expected.calls
    thought = reply.thinking.text.strip() if reply.thinking else None
    if expected.thinks is None:
        assert thought is None
    else:
        assert thought is not None
        assert thought.startswith(expected.thinks)
        # Nothing of the one is in the other, tags least of all.
        assert thought.splitlines()[0] not in reply.text or expected.thinks == "47 + 85 = 132."
        assert "think>" not in thought + reply.text
    if expected.outcomes != ("answered",):
        assert reply.text.strip() == ""


@pytest.mark.parametrize("server", sorted({recording.server for recording in recordings()}))
def test_streamed_and_whole_are_the_same_reply(server: str) -> None:
    """Each request was made twice. What differs is what the server itself trims in one of them and not in the other."""

    def essence(reply: Reply) -> tuple[object, ...]:
        calls = [(call.name, call.arguments) for call in reply.tool_calls]
        return reply.text.strip(), reply.thinking and reply.thinking.text.strip(), calls, reply.outcome, reply.stop

    replies = {
        recording.name.partition("-")[2]: essence(reply_of([recording.body], recording.target, recording.dialect)[0])
        for recording in recordings()
        if recording.server == server and is_reply(recording)
    }
    pairs = [
        (whole, streamed)
        for whole in replies
        if (streamed := whole.replace("plain", "stream").replace("stream_false", "stream_true")) != whole
        and streamed in replies
    ]
    assert len(pairs) >= 2
    for whole, streamed in pairs:
        assert replies[streamed] == replies[whole], whole


@pytest.mark.parametrize("recording", [each for each in recordings() if each.status >= 400], ids=str)
def test_a_refusal_of_a_real_engine_is_the_right_error(recording: Recording) -> None:
    error = dialects.find_dialect(recording.dialect).error(recording.status, {}, recording.body, recording.target)
    kind = errors.ContextTooLong if "context-too-long" in recording.name else errors.BadRequest
    assert isinstance(error, errors.NotFound if recording.status == 404 else kind)
    assert error.status == recording.status
    assert len(str(error)) > 60


def test_a_stream_that_a_real_engine_broke_off_is_no_reply() -> None:
    (recording,) = [each for each in recordings() if each.status == 200 and "context-too-long" in each.name]
    with pytest.raises(errors.ConnectionLost) as caught:
        decoded(recording.body, recording.target, recording.dialect)
    assert caught.value.partial is not None
    assert caught.value.partial.thinking
    assert caught.value.partial.text == ""


# --- renamed tags -------------------------------------------------------------------------------------------------

# What a model whose tags these are would be called, where the host alone cannot know them.
NAMED = {"cohere-tags": "command-a-reasoning"}
VARIANTS = sorted(file.stem.removesuffix("-none") for file in FOLDER.glob("tag-variants/*-none.json"))


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("how", ["none", "auto"])
def test_thinking_comes_apart_whatever_its_tags_are_called(variant: str, how: str) -> None:
    body = (FOLDER / "tag-variants" / f"{variant}-{how}.json").read_bytes()
    row = find_provider("llamacpp")
    model = NAMED.get(variant, "tiny-tagged")
    target = Target(row, model, row.base_url, row.rule(model))
    if b'"error"' in body[:20]:
        error = dialects.find_dialect("openai_chat").error(500, {}, body, target)
        assert isinstance(error, errors.Overloaded)
        return
    reply = decoded(body, target)
    assert reply.text.strip("*.").endswith("15")
    if variant == "kimi-tags":
        assert not reply.thinking  # The renamed template did not make it think.
        return
    assert reply.text == "7 + 8 = **15**"
    assert reply.thinking
    assert reply.thinking.source == ("tags" if how == "none" else "field")
    assert reply.thinking.text.strip().endswith("I need the sum of 7 and 8.\nSo 7 + 8 = 15.")
