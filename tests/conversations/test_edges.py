"""Conversations and their stores where things are odd: strange names, damaged files, prompts of the wrong kind.

What people do by accident, and what disks and other programs do to them.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import asides
from asides.conversations.store import StoreConflict
from asides.conversations.store.sqlite import SqliteStore
from asides.conversations.sync import Conversation
from asides.database import StoreError
from asides.values.errors import ConfigError
from asides.values.messages import Message, assistant, user
from asides.values.parts import Refusal, ServerTool, Text, UnknownPart
from asides.values.thinking import Origin, Seal, Thought
from asides_stage.stage import OpenStage, Say
from tests.conversations.both_shells import MODELS, PLAIN, Shell, both_shells, dialogue, options

HALF = "half \ud83d of a character"


# --- prompts ----------------------------------------------------------------------------------------------------------


@both_shells
def test_a_dict_is_a_message_and_not_its_keys(shell: Shell, stage: OpenStage) -> None:
    server = stage(Say(text="fine"))
    chat = shell.kind(PLAIN, **options(PLAIN, server))
    shell.ask(chat, {"role": "user", "content": "Hello"})
    assert server.requests[0].json["messages"] == [{"role": "user", "content": "Hello"}]
    assert dialogue(chat.messages) == [("user", "Hello"), ("assistant", "fine")]


@both_shells
@pytest.mark.parametrize("prompt", [5, b"no message", [5], {"messages": 5}], ids=repr)
def test_what_is_no_prompt_is_refused_with_words(shell: Shell, prompt: Any, stage: OpenStage) -> None:
    server = stage(Say(text="fine"))
    chat = shell.kind(PLAIN, **options(PLAIN, server))
    with pytest.raises(ConfigError, match=r"message|bytes"):
        shell.ask(chat, prompt)
    assert (len(chat), len(server.requests)) == (0, 0)
    shell.ask(chat, "still usable")


def test_a_reply_of_another_model_can_be_what_is_asked(stage: OpenStage) -> None:
    server = stage(Say(text="first"), Say(text="second"))
    reply = asides.ask(PLAIN, "?", **options(PLAIN, server))
    chat = Conversation(PLAIN, **options(PLAIN, server))
    chat.ask(reply)
    assert dialogue(chat.messages) == [("assistant", "first"), ("assistant", "second")]


def test_results_of_the_old_form_find_their_calls(stage: OpenStage) -> None:
    server = stage(Say(text="fine"))
    call = {"role": "assistant", "content": None, "function_call": {"name": "look", "arguments": "{}"}}
    chat = Conversation(PLAIN, **options(PLAIN, server))
    chat.extend(["?", call, {"role": "function", "name": "look", "content": "one"}])
    chat.extend(["?", call, {"role": "function", "name": "look", "content": "two"}])
    chat.ask("And?")
    results = [sent["content"] for sent in server.requests[0].json["messages"] if sent["role"] == "tool"]
    assert results == ["one", "two"]


def test_the_place_of_a_message_that_does_not_read_is_named() -> None:
    with pytest.raises(ConfigError, match=r"messages\[1\]"):
        Conversation().extend(["fine", {"role": "king"}])


def test_a_stream_that_was_closed_hands_out_nothing_more(stage: OpenStage) -> None:
    chat = Conversation(PLAIN, **options(PLAIN, stage(Say(thinking="hm", text="word " * 50, piece=5))))
    stream = chat.stream("?")
    next(stream)
    stream.close()
    assert list(stream) == []


@pytest.mark.parametrize("system", [5, ["Be brief."], [{"type": "text", "text": "Be brief."}]], ids=repr)
def test_a_system_prompt_that_is_no_text_is_not_left_out_in_silence(system: Any) -> None:
    with pytest.raises(ConfigError, match="system is text, not"):
        Conversation(PLAIN, system=system)
    chat = Conversation(PLAIN, messages=["Hello"])
    with pytest.raises(ConfigError, match="system is text, not"):
        chat.system = system
    assert chat.system is None


def test_messages_beside_a_document_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"[Oo]mit messages="):
        Conversation.from_json(Conversation(messages=["Hello"]).to_json(), messages=["More"])


# --- what goes to whom ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["mistral:magistral-medium", "moonshot:kimi-k2.6", PLAIN])
def test_after_a_refusal_any_host_goes_on(model: str, stage: OpenStage) -> None:
    server = stage(Say(refusal="I would rather not."), Say(text="fine"))
    chat = Conversation(PLAIN, **options(PLAIN, server))
    chat.ask("Do it.")
    assert [type(part) for part in chat.messages[-1].parts] == [Refusal]
    assert chat.ask("Why not?", model=model).text == "fine"
    sent = server.requests[-1].json["messages"][1]
    assert sent == {"role": "assistant", "content": "I would rather not."}
    decisions = asides.explain(model, chat, base_url=server.url).decisions
    assert [(each.action, each.what) for each in decisions] == [("convert", "refusal")]


def test_a_refusal_goes_back_to_openai_as_one(stage: OpenStage) -> None:
    server = stage(Say(refusal="I would rather not."), Say(text="fine"))
    chat = Conversation(PLAIN, **options(PLAIN, server))
    chat.ask("Do it.")
    assert chat.ask("Why not?", model="openai-chat:gpt-4o").text == "fine"
    sent = server.requests[-1].json["messages"][1]
    assert sent == {"role": "assistant", "content": None, "refusal": "I would rather not."}
    assert asides.explain("openai-chat:gpt-4o", chat, base_url=server.url).decisions == ()


def test_a_refusal_is_exported_as_what_it_is() -> None:
    chat = Conversation(messages=["Do it.", assistant(Refusal("No."))])
    assert chat.to_openai()[1] == {"role": "assistant", "content": None, "refusal": "No."}


CANARY = "CANARY-31415"
SIGNED = [
    {"role": "user", "content": "?"},
    {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": CANARY, "signature": "c2lnbmVk"},
            {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}},
        ],
    },
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "blue"}]},
]
ENCRYPTED = [
    {"role": "user", "content": "?"},
    {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": CANARY}],
        "encrypted_content": "b3BhcXVl",
    },
    {"type": "function_call", "call_id": "call_1", "name": "look", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "call_1", "output": "blue"},
]


@pytest.mark.parametrize("model", [*MODELS, "moonshot:kimi-k2.6", "openrouter:anthropic/claude-sonnet-4.5"])
def test_imported_thoughts_with_seals_stay_with_those_who_make_such(model: str) -> None:
    signed = asides.explain(model, Conversation.from_anthropic(SIGNED), base_url="http://127.0.0.1:9/v1")
    assert (CANARY in json.dumps(signed.body)) is model.startswith(("anthropic:", "bedrock:"))
    sealed = asides.explain(model, Conversation.from_responses(ENCRYPTED), base_url="http://127.0.0.1:9/v1")
    assert (CANARY in json.dumps(sealed.body)) is model.startswith("openai-responses:")
    for planned in (signed, sealed):
        (decision,) = (each for each in planned.decisions if each.what == "thought")
        assert (decision.action == "keep") is (CANARY in json.dumps(planned.body))


def test_imported_thoughts_without_seals_go_where_their_owner_sends_them() -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    chat = Conversation.from_openai(
        [
            {"role": "user", "content": "?"},
            {"role": "assistant", "content": None, "reasoning_content": CANARY, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "call_1", "content": "blue"},
        ]
    )
    assert CANARY in json.dumps(asides.explain("deepseek:deepseek-v4-pro", chat).body)


def test_what_a_provider_ran_itself_is_exported_in_its_own_dialect_only() -> None:
    code = {"executableCode": {"language": "PYTHON", "code": "print(42)"}}
    ran = ServerTool("executable_code", json=json.dumps(code), origin=Origin("google", "", "gemini-3-pro-preview"))
    search = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "42"}}
    searched = ServerTool(
        "server_tool_use", json=json.dumps(search), origin=Origin("anthropic", "", "claude-sonnet-4-5")
    )
    use = {"toolUse": {"name": "nova_code_interpreter", "toolUseId": "1", "input": {}, "type": "server_tool_use"}}
    interpreted = ServerTool("nova_code_interpreter", json=json.dumps(use), origin=Origin("bedrock", "", "nova"))
    later = UnknownPart('{"type": "hologram"}', origin=Origin("from-the-future", "", ""))
    chat = Conversation(messages=["?", assistant(ran, searched, interpreted, later, Text("42")), "!"])
    assert chat.to_anthropic()["messages"][1]["content"] == [search, {"type": "text", "text": "42"}]
    assert chat.to_responses()[1] == {"role": "assistant", "content": "42"}
    assert chat.to_openai()[1] == {"role": "assistant", "content": "42"}
    assert len(Conversation.from_anthropic(chat.to_anthropic())) == len(chat)


def test_an_entry_of_a_seal_that_is_no_object_is_no_item() -> None:
    thought = Thought("", kind="hidden", seals=(Seal("encrypted", "opaque", entry="[]"),))
    exported = Conversation(messages=["?", assistant(thought, Text("!"))]).to_responses(thinking=True)
    assert exported[1] == {"type": "reasoning", "summary": [], "encrypted_content": "opaque"}


# --- stores -----------------------------------------------------------------------------------------------------------


def test_many_threads_may_make_one_store(tmp_path: Path) -> None:
    # Who looked while another was making the tables took them for those of another program.
    for attempt in range(30):
        store = SqliteStore(tmp_path / f"{attempt}.db")
        with ThreadPoolExecutor(8) as pool:
            together = threading.Barrier(8)
            writing = [pool.submit(_write_together, store, together) for _ in range(8)]
        assert [each.exception() for each in writing] == [None] * 8
        kept = store.load("talk")
        assert kept is not None
        assert len(kept.messages) == 8


def _write_together(store: SqliteStore, together: threading.Barrier) -> None:
    together.wait()
    store.append("talk", [user("Hello")])


def test_half_a_character_in_a_name_or_above_the_messages_is_a_store_error(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "talks.db")
    with pytest.raises(StoreError, match="half a character"):
        Conversation(store=store, name=HALF)
    with pytest.raises(StoreError, match="half a character"):
        store.delete(HALF)
    chat = Conversation(f"vllm:{HALF}", store=store, name="talk")
    with pytest.raises(StoreError, match="half a character"):
        chat.append("Hello")
    assert (len(chat), store.names()) == (0, ())


@pytest.mark.parametrize("path", ["a\0b.db", "~nobody-is-called-so/talks.db"], ids=repr)
def test_a_path_that_cannot_be_is_a_store_error(path: str) -> None:
    with pytest.raises(StoreError, match="cannot create a store"):
        SqliteStore(path)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ("UPDATE conversations SET usage = 'zzz'", "the head of the conversation 'talk'"),
        ("UPDATE conversations SET usage = 5", "the head of the conversation 'talk'"),
        ("UPDATE messages SET message = 5", "message 0 of the conversation 'talk'"),
        (f"UPDATE messages SET message = '{'[' * 5000}'", "message 0 of the conversation 'talk'"),
    ],
)
def test_rows_that_others_damaged_are_reported(damage: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "talks.db"
    with SqliteStore(path) as store:
        store.append("talk", [user("Hello")])
    spoiling = sqlite3.connect(path)
    spoiling.execute(damage)
    spoiling.commit()
    spoiling.close()
    with pytest.raises(StoreError, match=message):
        Conversation(store=SqliteStore(path), name="talk")


def test_what_is_deleted_is_gone_from_the_files_while_others_have_them_open(tmp_path: Path) -> None:
    path = tmp_path / "talks.db"
    with SqliteStore(path) as store, SqliteStore(path) as neighbour:
        store.append("secret", [user("CANARY-27182 " * 400)])
        assert neighbour.names() == ("secret",)
        assert store.delete("secret")
        assert not any(b"CANARY-27182" in file.read_bytes() for file in tmp_path.iterdir())


def test_a_fork_under_a_name_that_is_taken_is_refused(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "talks.db")
    store.append("taken", [user("Hello")])
    chat = Conversation(store=store, name="talk")
    chat.append("Hello")
    with pytest.raises(StoreConflict, match="a conversation 'taken' in the store already"):
        chat.fork(name="taken")
    kept = store.load("taken")
    assert kept is not None
    assert kept.about.length == 1


def test_a_system_prompt_that_was_not_written_is_not_there(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "talks.db")
    chat = Conversation(PLAIN, system="Be brief.", store=store, name="talk")
    chat.append("Hello")
    Conversation(store=store, name="talk").append("Hello from the side")
    with pytest.raises(StoreConflict):
        chat.system = "Be long."
    assert chat.system == "Be brief."
    chat.refresh()
    chat.system = "Be long."
    assert Conversation(store=store, name="talk").system == "Be long."


# --- files ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["a\0b.json", "~nobody-is-called-so/talk.json"], ids=repr)
def test_a_path_that_cannot_be_is_refused(path: str) -> None:
    with pytest.raises(ConfigError, match=r"\. [A-Z]"):
        Conversation(messages=["Hello"]).save(path)
    with pytest.raises(ConfigError, match=r"\. [A-Z]"):
        Conversation.load(path)


def test_a_file_that_is_not_there_is_named_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        Conversation.load(f"{tmp_path}/./nothing.json")
    assert str(caught.value).count("nothing.json") == 1


def test_a_store_that_does_not_take_a_loaded_conversation_says_so_itself(tmp_path: Path) -> None:
    Conversation(messages=["Hello"]).save(tmp_path / "talk.json")
    with pytest.raises(StoreError):
        Conversation.load(tmp_path / "talk.json", store=SqliteStore(tmp_path / "no" / "folder.db"), name="talk")


@pytest.mark.parametrize("depth", [5_000, 100_000])
def test_a_document_without_a_bottom_is_refused(depth: int) -> None:
    with pytest.raises(ConfigError, match="not JSON"):
        Conversation.from_json('{"asides":1,"messages":' + "[" * depth + "]" * depth + "}")


def test_a_list_with_half_a_character_is_refused_or_taken() -> None:
    message = {"role": "user", "content": HALF}
    with pytest.raises(ConfigError, match="half a character"):
        Conversation.from_responses([{"type": "message", "id": "msg_1", **message}])
    for taken in (Conversation.from_openai([message]), Conversation.from_responses([message])):
        with pytest.raises(ConfigError, match="half a character"):
            taken.to_json()


def test_lists_that_hold_next_to_nothing_are_taken() -> None:
    for shape in (Conversation.from_openai, Conversation.from_anthropic, Conversation.from_responses):
        assert len(shape([])) == 0
    empty = Conversation.from_openai([{"role": "user", "content": None}, {"role": "assistant", "content": None}])
    assert [message.parts for message in empty] == [(), ()]
    assert json.loads(empty.to_json())["messages"] == [{"role": "user"}, {"role": "assistant"}]
    assert isinstance(empty.messages[0], Message)
