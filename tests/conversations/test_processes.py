"""Conversations of several processes on one store: one continues where another stopped or was killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from itertools import count
from typing import Any

import pytest

import asides
from asides.conversations.sync import Conversation
from asides.values.messages import Message
from asides.values.parts import ToolResult
from asides.values.thinking import Thought
from asides.values.tools import Tool
from asides_stage.stage import OpenStage, Say
from tests.conversations.both_shells import MODELS, PLAIN, Shell, both_shells, dialogue, options
from tests.stores import list_import_folders, open_place

TOOL = Tool("look_up", "Look it up.", {"type": "object", "properties": {"n": {"type": "integer"}}})


def start(program: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        env={**os.environ, "PYTHONPATH": list_import_folders()},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


GOES_ON = f"""if True:
    import json, sys
    from asides.conversations.sync import Conversation
    from tests.stores import open_place
    from asides.values.tools import Tool
    tool = Tool("look_up", "Look it up.", {TOOL.parameters!r})
    with open_place(sys.argv[1]) as store:
        for name, given in json.loads(sys.argv[2]).items():
            chat = Conversation(store=store, name=name, tools=[tool], **given)
            print(name == chat.model, chat.ask().text)
"""


@both_shells
def test_another_process_goes_on_where_this_one_stopped(shell: Shell, stage: OpenStage, store_place: str) -> None:
    """In the middle of a loop of tools, where providers are strict about what comes back."""
    call = asides.ToolCall("call_1", "look_up", {"n": 1})
    store = open_place(store_place)
    chats: dict[str, Any] = {}
    given: dict[str, Any] = {}
    theatres: list[Any] = []
    for model in MODELS:
        theatre = stage(Say(thinking="a thought", text="Let me see.", tool_calls=(call,)), Say(text="42."))
        theatres.append(theatre)
        given[model] = options(model, theatre)
        chats[model] = chat = shell.kind(model, store=store, name=model, tools=[TOOL], **given[model])
        reply = shell.ask(chat, "look it up")
        chat.append(Message("tool", (ToolResult(reply.tool_calls[0].id, "42", "look_up"),)))
    out, err = start(GOES_ON, store_place, json.dumps(given)).communicate()
    assert err == ""
    assert out.splitlines() == ["True 42."] * len(MODELS)
    refused = {
        model: [request.problem for request in theatre.requests if request.problem]
        for model, theatre in zip(MODELS, theatres, strict=True)
    }
    assert refused == {model: [] for model in MODELS}
    for chat in chats.values():
        assert chat.refresh()
        assert dialogue(chat)[-1] == ("assistant", "42.")
        # What this process had read is not read again: it holds more than was written.
        assert any(isinstance(part, Thought) and part.text == "a thought" for part in chat.messages[1].parts)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="kills")
def test_a_process_that_is_killed_has_every_turn_that_it_was_given_an_answer_to(
    stage: OpenStage, store_place: str
) -> None:
    numbers = count()
    store = open_place(store_place)
    theatre = stage(lambda _: Say(thinking="plan", text=f"answer {next(numbers)}"))
    program = """if True:
        import sys
        from asides.conversations.sync import Conversation
        from tests.stores import open_place
        chat = Conversation(sys.argv[2], store=open_place(sys.argv[1]), name="talk", base_url=sys.argv[3])
        while True:
            chat.ask("next?")
            sys.stdout.write(".")
            sys.stdout.flush()
    """
    handed_out = 0
    for acknowledged in (1, 4, 7):
        child = start(program, store_place, PLAIN, theatre.url)
        assert child.stdout is not None
        handed_out += len(child.stdout.read(acknowledged))
        child.kill()
        handed_out += len(child.stdout.read())
        _, err = child.communicate()
        assert err == ""
        talk = dialogue(Conversation(store=store, name="talk"))
        assert [role for role, _ in talk] == ["user", "assistant"] * (len(talk) // 2)
        assert len(talk) // 2 >= handed_out
    again = Conversation(store=store, name="talk", base_url=theatre.url)
    again.ask("still there?")
    assert len(again) == len(talk) + 2
