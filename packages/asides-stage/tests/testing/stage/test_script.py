"""Scripts: which scene is next, and scripts from files."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from asides.dialects.dialect import ServedRequest
from asides.values.errors import ConfigError
from asides.values.events import ReplyEnded, ReplyStarted, StopReason, TextDelta
from asides.values.messages import Prompt, user
from asides.values.parts import ToolCall
from asides.values.usage import Usage
from asides_stage import Fail, Garbage, Hang, Raw, Refuse, Say, Scene, load_script
from asides_stage.stage.script import ScriptPlayer

REQUEST = ServedRequest(Prompt((user("hi"),)), "any", stream=False)


def test_a_list_is_played_in_order_and_its_last_scene_again() -> None:
    player = ScriptPlayer([Say("a"), Fail(status=429), Say("b")])
    assert [player.next(REQUEST) for _ in range(5)] == [Say("a"), Fail(status=429), Say("b"), Say("b"), Say("b")]


def test_one_scene_is_a_script() -> None:
    player = ScriptPlayer(Say("a"))
    assert [player.next(REQUEST), player.next(REQUEST)] == [Say("a"), Say("a")]


def test_a_function_is_asked_each_time() -> None:
    player = ScriptPlayer(lambda request: Say(request.prompt.messages[-1].text.upper()))
    assert player.next(REQUEST) == Say("HI")


def test_an_empty_script_is_refused() -> None:
    with pytest.raises(ConfigError, match="no scene"):
        ScriptPlayer([])


EVERY_SCENE: list[Scene] = [
    Say("42", thinking="plan", tool_calls=(ToolCall("1", "f", {"x": 1}),), usage=Usage(1, 2), stop="length", chunk=3),
    Say(events=(ReplyStarted("m"), TextDelta("a"), ReplyEnded(StopReason("stop")))),
    Fail(status=503, retry_after=2, headers={"x-a": "b"}),
    Fail(status=429, retry_after="Wed, 21 Oct 2026 07:28:00 GMT"),
    Raw(b"\xff\x00", cut_after=1),
    Garbage(),
    Refuse(reset=True),
    Hang(seconds=1),
]


def test_every_scene_goes_into_a_file_and_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "script.json"
    path.write_bytes(msgspec.json.encode(EVERY_SCENE))
    assert load_script(path) == EVERY_SCENE


def test_a_script_written_by_hand(tmp_path: Path) -> None:
    path = tmp_path / "script.json"
    path.write_text(
        """[{"type": "say", "text": "hi", "tool_calls": [{"id": "1", "name": "f"}]},
            {"type": "raw", "text": "data: é\\n\\n"}]""",
        encoding="utf-8",
    )
    assert load_script(path) == [Say("hi", tool_calls=(ToolCall("1", "f"),)), Raw(text="data: é\n\n")]
    assert Raw(text="é").content == "é".encode()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "does not read"),
        ("[]", "no scene"),
        ('{"type": "say"}', "does not read: Expected `array`"),
        ('[{"type": "sing"}]', "sing"),
        ('[{"type": "say", "txt": "hi"}]', "txt"),
        ('[{"type": "say", "chunk": 0}]', "chunk is 0"),
        ('[{"type": "say", "piece": 0}]', "piece is 0"),
        ('[{"type": "say", "delay": -1}]', "delay and pause"),
        ('[{"type": "say", "cut_after": 1, "hang_after": 1}]', "cannot both"),
    ],
)
def test_a_script_that_does_not_read_says_where(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "script.json"
    path.write_text(content)
    with pytest.raises(ConfigError, match=message) as caught:
        load_script(path)
    assert "script.json" in str(caught.value)


def test_a_script_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        load_script(tmp_path / "none.json")


def test_reprs_show_no_content() -> None:
    scenes = [Say("the answer", thinking="the thought"), Raw(b"the answer"), Garbage(b"the answer")]
    assert not any("the answer" in repr(scene) or "the thought" in repr(scene) for scene in scenes)
