"""Sounds, videos and PDFs that a model's row refuses: an error before sending, or a note in their place."""

from __future__ import annotations

from typing import Any

import pytest

import asides
from asides.history.fit import replace_media, replace_refused
from asides.providers.find import find_target
from asides.values.messages import Message, assistant, user
from asides.values.notices import Notice
from asides.values.parts import File, Image, Text, ToolResult
from asides_stage.stage import OpenStage, Say
from tests.agents.three_tools import KEY

PNG = Image(data=b"\x89PNG\r\n\x1a\n\x00")
PDF = File("a.pdf", data=b"%PDF-1.7")
WAV = File("a.wav", data=b"RIFF\x10\x00\x00\x00WAVEfmt ")
MP4 = File("a.mp4", data=b"\x00\x00\x00\x18ftypisom")
MEDIA: dict[str, Image | File] = {"picture": PNG, "pdf": PDF, "audio": WAV, "video": MP4}


@pytest.mark.parametrize(
    ("model", "refused"),
    [
        ("deepseek:deepseek-v4-pro", {"picture", "pdf", "audio", "video"}),
        ("openai-chat:o1-mini", {"picture", "pdf", "audio", "video"}),
        ("openai-chat:o3-mini", {"picture", "pdf", "audio", "video"}),
        ("openai-chat:gpt-5.5", {"audio", "video"}),
        ("openai-chat:gpt-4o", {"audio", "video"}),
        ("openai-chat:gpt-audio", {"picture", "pdf", "video"}),
        ("openai-chat:gpt-4o-audio-preview", {"picture", "pdf", "video"}),
        ("openai-chat:gpt-4o-mini-transcribe", set[str]()),
        ("openai-chat:gpt-6-omni", set[str]()),  # nobody has described it
        ("openai-responses:gpt-5.5", {"audio", "video"}),
        ("anthropic:claude-opus-4-5", {"audio", "video"}),
        ("groq:openai/gpt-oss-120b", {"picture", "audio", "video"}),
        ("mistral:magistral-small-2507", {"picture", "audio", "video"}),
        ("mistral:magistral-small-2509", {"audio", "video"}),
        ("gemini:gemini-3-pro-preview", set[str]()),
        ("openai-compatible:unknown", set[str]()),
    ],
)
def test_what_a_row_refuses_is_refused_before_sending(model: str, refused: set[str], stage: OpenStage) -> None:
    opened = stage(*[Say(text="seen")] * 4)
    found: set[str] = set()
    for kind, part in MEDIA.items():
        try:
            asides.ask(model, "What is this?", files=[part], base_url=opened.url, api_key=KEY)
        except asides.Unsupported:
            found.add(kind)
    assert found == refused
    assert len(opened.requests) == len(MEDIA) - len(refused)


def test_adjusted_a_note_takes_its_place_and_a_notice_says_so(stage: OpenStage) -> None:
    opened = stage(Say(text="no ears"))
    options: dict[str, Any] = {"base_url": opened.url, "api_key": KEY, "on_conflict": "adjust"}
    reply = asides.ask("openai-chat:gpt-5.5", "Listen!", files=[WAV], **options)
    assert "files_dropped" in [notice.code for notice in reply.warnings]
    assert "a file was here" in opened.requests[0].body.decode()


def test_an_earlier_file_and_one_of_a_tool_never_end_a_conversation() -> None:
    target = find_target("openai-chat:gpt-5.5")
    told = Message("tool", (ToolResult("c1", (Text("heard"), WAV)),))
    notices: list[Notice] = []
    first, *_, last, question = replace_refused(
        (user(WAV, PDF), assistant("so"), told, user("?")), target, "raise", notices
    )
    note = Text("[a file was here; it cannot be shown]")
    assert (first.parts, last.parts) == ((note, PDF), (ToolResult("c1", (Text("heard"), note)),))
    assert question == user("?")
    assert [notice.code for notice in notices] == ["files_dropped"]


def test_a_picture_as_a_file_is_a_picture_and_a_stored_file_is_the_providers_affair() -> None:
    target = find_target("deepseek:deepseek-v4-pro")
    with pytest.raises(asides.Unsupported, match="takes no pictures"):
        replace_refused((user(File("a.png", data=PNG.data)),), target, "raise", [])
    stored = (user(File(id="file-1")),)
    assert replace_refused(stored, target, "raise", []) is stored


def test_of_a_model_that_nobody_has_described_nothing_is_refused() -> None:
    assert find_target("anthropic:claude-opus-9").facts.refuses_files == ()
    assert find_target("anthropic:claude-opus-4-5").facts.refuses_files == ("audio", "video")


def test_a_message_whose_files_all_fit_is_the_same_one() -> None:
    message = user(PDF, "x")
    assert replace_media(message, lambda _: False) is message
