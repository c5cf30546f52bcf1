"""`asides history`: over a real store, as the commands before it left it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from asides.conversations.store import ConversationHeading
from asides.conversations.store.database_store import DatabaseStore
from asides.conversations.store.sqlite import SqliteStore
from asides.conversations.sync import Conversation
from asides.values.messages import Message, assistant, user
from asides.values.parts import Image, Text, ToolCall, ToolResult
from asides.values.thinking import Thought
from asides_stage.stage import OpenStage, Say
from tests.cli.children import asides, ask, at, at_terminal, here, load_saved, piped
from tests.stores import open_place

PICTURE = b"\x89PNG\r\n\x1a\n0000"


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, state: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DatabaseStore]:
    """Two conversations: one with all kinds of parts, and a later one with an odd name."""
    place = str(state / "conversations.db")
    if request.param == "postgres":
        place = request.getfixturevalue("postgres_url")
        monkeypatch.setenv("ASIDES_STORE", place)
    else:
        state.mkdir(parents=True)
    store = open_place(place)
    call = ToolCall("c1", "look", {"at": "sky"})
    messages = [
        Message("user", (Text("Why is the **Sky** blue?\nSay it."), Image(data=PICTURE, media_type="image/png"))),
        Message("assistant", (Thought("SECRET PLAN"), Text("I look."), call)),
        Message("tool", (ToolResult("c1", "clear and Blue"),)),
        assistant("Rayleigh."),
    ]
    store.append("science", messages, heading=ConversationHeading("be brief", "groq:m"))
    store.append("odd\n\x1b[31mname", [user("two " * 60), assistant("ok")])
    yield store
    store.close()


def test_the_list_has_the_last_one_first_and_fits_eighty_columns(
    store: DatabaseStore, capsys: pytest.CaptureFixture[str]
) -> None:
    store.append("名前" * 30, [user("what?"), assistant("that")])
    code, out, err = here(capsys, "history")
    lines = out.splitlines()
    assert (code, err) == (0, "")
    assert lines[0].split() == ["NAME", "CHANGED", "MSGS", "FIRST", "QUESTION"]
    assert lines[1].startswith("名前名前")
    assert lines[2].startswith(r"'odd\n\x1b[31mname'")
    assert lines[3].startswith("science ")
    assert lines[3].endswith("4  Why is the **Sky** blue? …")
    assert max(len(line) for line in lines) <= 79
    assert "\x1b" not in out
    listed = json.loads(here(capsys, "history", "list", "--json", "-n", "2").out)
    assert [(each["name"], each["messages"]) for each in listed] == [("名前" * 30, 2), ("odd\n\x1b[31mname", 2)]


def test_without_a_store_there_is_nothing_to_list_and_none_is_made(
    state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert here(capsys, "history") == (0, "", "no conversation is saved; `--conversation NAME` saves one.\n")
    assert here(capsys, "history", "list", "--json").out == "[]\n"
    for action in ("show", "export"):
        code, out, err = here(capsys, "history", action)
        assert (code, out) == (2, "")
        assert "no conversation is saved" in err
    assert here(capsys, "history", "search", "x")[:2] == (0, "")
    assert not state.exists()


def test_show_prints_one_and_thinking_only_on_request(store: DatabaseStore, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = here(capsys, "history", "show", "science")
    assert code == 0
    assert out == (
        "## system\n\nbe brief\n\n"
        "## user\n\nWhy is the **Sky** blue?\nSay it.\n\n(a picture, 12 bytes)\n\n"
        '## assistant\n\nI look.\n\n`look(at="sky")`\n\n'
        "## tool\n\n```\nclear and Blue\n```\n\n"
        "## assistant\n\nRayleigh.\n"
    )
    assert err.startswith("science, 20")
    assert "> SECRET PLAN" in here(capsys, "history", "show", "science", "-t").out
    # Without a name, the last one.
    assert "two two" in here(capsys, "history", "show").out
    fields = json.loads(here(capsys, "history", "show", "science", "--json").out)
    assert "SECRET" not in json.dumps(fields)
    assert [message["role"] for message in fields["messages"]] == ["user", "assistant", "tool", "assistant"]
    assert fields["messages"][1]["tool_calls"] == [{"id": "c1", "name": "look", "arguments": {"at": "sky"}}]


def test_a_name_that_is_not_there_is_an_error_with_the_nearest(
    store: DatabaseStore, capsys: pytest.CaptureFixture[str]
) -> None:
    for action in ("show", "export", "rm"):
        code, out, err = here(capsys, "history", action, "sciense")
        assert (code, out) == (2, "")
        assert err == "asides: no conversation is called 'sciense'; did you mean science?\n"
    assert len(store.names()) == 2


def test_search_ignores_case_and_wants_all_words_in_one_message(
    store: DatabaseStore, capsys: pytest.CaptureFixture[str]
) -> None:
    assert here(capsys, "history", "search", "BLUE") == (
        0,
        "science  user: Why is the **Sky** blue? Say it.\nscience  tool: clear and Blue\n",
        "",
    )
    assert here(capsys, "history", "search", "blue", "clear").out == "science  tool: clear and Blue\n"
    assert here(capsys, "history", "search", "sky", "rayleigh") == (0, "", "no message has all of these words.\n")
    assert here(capsys, "history", "search", "secret").out == "", "thinking is not searched"
    assert len(here(capsys, "history", "search", "two", "-n", "1").out.splitlines()) == 1
    (hit,) = json.loads(here(capsys, "history", "search", "rayleigh", "--json").out)
    assert hit == {"name": "science", "place": 3, "role": "assistant", "text": "Rayleigh."}
    assert here(capsys, "history", "search").code == 2


def test_export_gives_each_format_and_our_own_can_be_loaded(
    store: DatabaseStore, capsys: pytest.CaptureFixture[str]
) -> None:
    document = here(capsys, "history", "export", "science").out
    assert "SECRET" not in document
    loaded = Conversation.from_json(document)
    assert (loaded.system, loaded.model) == ("be brief", "groq:m")
    assert [message.role for message in loaded] == ["user", "assistant", "tool", "assistant"]
    with_thinking = Conversation.from_json(here(capsys, "history", "export", "science", "-t").out)
    assert any(isinstance(part, Thought) and part.text == "SECRET PLAN" for part in with_thinking.messages[1].parts)
    chat = json.loads(here(capsys, "history", "export", "science", "--format", "openai").out)
    assert [message["role"] for message in chat] == ["system", "user", "assistant", "tool", "assistant"]
    turns = json.loads(here(capsys, "history", "export", "science", "--format", "anthropic").out)
    assert turns["system"] in ("be brief", [{"type": "text", "text": "be brief"}])
    assert json.loads(here(capsys, "history", "export", "science", "--format", "responses").out)
    code, out, err = here(capsys, "history", "export", "science", "--format", "word")
    assert (code, out) == (2, "")
    assert "--format 'word' is not known. Use json, markdown, openai, anthropic or responses." in err
    assert here(capsys, "history", "export", "science", "--format", "markdown").out.startswith("## system\n\nbe brief")


def count(store: DatabaseStore, name: str) -> int:
    about = store.about(name)
    return 0 if about is None else about.length


def test_rename_keeps_the_messages_and_overwrites_nothing(
    store: DatabaseStore, capsys: pytest.CaptureFixture[str]
) -> None:
    assert here(capsys, "history", "rename", "science", "physics") == (0, "", "(science is called physics now)\n")
    assert count(store, "physics") == 4
    code, _, err = here(capsys, "history", "rename", "physics", "odd\n\x1b[31mname")
    assert code == 2
    assert "already" in err
    assert here(capsys, "history", "rename", "physics", " ").code == 2
    assert here(capsys, "history", "rename", "nobody", "x").code == 2
    assert count(store, "physics") == 4


def test_rm_deletes_all_or_nothing_of_what_is_named(store: DatabaseStore, capsys: pytest.CaptureFixture[str]) -> None:
    store.append("third", [user("x")])
    assert here(capsys, "history", "rm", "science", "nobody").code == 2
    assert here(capsys, "history", "rm").code == 2
    assert here(capsys, "history", "rm", "science", "--all").code == 2
    assert len(store.names()) == 3
    assert here(capsys, "history", "rm", "science") == (0, "", "(1 deleted)\n")
    code, _, err = here(capsys, "history", "rm", "--all")
    assert code == 2
    assert "Add --yes" in err
    assert len(store.names()) == 2
    assert here(capsys, "history", "rm", "--all", "--yes") == (0, "", "(2 deleted)\n")
    assert store.names() == ()


def test_a_name_may_begin_with_a_dash(store: DatabaseStore, capsys: pytest.CaptureFixture[str]) -> None:
    store.append("--all", [user("x"), assistant("y")])
    assert here(capsys, "history", "show", "--", "--all").out == "## user\n\nx\n\n## assistant\n\ny\n"
    assert here(capsys, "history", "rm", "--", "--all") == (0, "", "(1 deleted)\n")
    assert len(store.names()) == 2


def test_rm_asks_a_person(store: DatabaseStore) -> None:
    for answer, left in (("n", 2), ("y", 1)):
        with at_terminal("history", "rm", "science") as keyboard:
            keyboard.wait_for("delete science")
            keyboard.wait_for("which others use too? [y]es, [n]o" if store.is_shared else "? [y]es, [n]o")
            keyboard.type(f"{answer}\n")
            assert keyboard.end() == 0
        assert len(store.names()) == left


# --- what ask leaves there --------------------------------------------------------------------------------------------


def test_the_last_question_can_be_continued_and_gives_way_to_the_next(
    stage: OpenStage, state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server = stage(Say(thinking="the canary sings", text="A."), Say(text="B."), Say(text="C."), Say(text="D."))
    assert ask(capsys, server, "-s", "be brief", "a?") == (0, "A.\n", "")
    continued = asides("ask", "-c", "--base-url", server.url, "b?")
    assert continued == (0, "B.\n", "")
    assert [message["content"] for message in server.requests[1].json["messages"]] == ["be brief", "a?", "A.", "b?"]
    assert b"canary" not in b"".join(path.read_bytes() for path in state.iterdir())
    with SqliteStore(state / "conversations.db") as store:
        (first,) = store.names()
        assert first.startswith("last-")
        assert ask(capsys, server, "c?") == (0, "C.\n", "")
        (second,) = store.names()
        assert load_saved(state, second) == [("user", "c?"), ("assistant", "C.")]
        assert load_saved(state, first) == []
        # A name of the user's own stays, whatever comes after it.
        store.rename(second, "mine")
        assert ask(capsys, server, "d?").code == 0
        assert len(store.names()) == 2


@pytest.mark.parametrize(("value", "count"), [("none", 0), ("all", 2)])
def test_the_setting_says_what_is_kept_without_a_name(
    value: str,
    count: int,
    stage: OpenStage,
    state: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ASIDES_KEEP_CONVERSATIONS", value)
    server = stage(Say(text="A."), Say(text="B."))
    ask(capsys, server, "a?")
    ask(capsys, server, "b?")
    names = json.loads(here(capsys, "history", "list", "--json").out)
    assert len(names) == count
    assert all(each["name"].startswith("ask-") for each in names)
    if not count:
        assert not state.exists()
        code, _, err = here(capsys, "ask", "-c", "x")
        assert code == 2
        assert "no conversation is saved yet" in err


def test_ask_saves_under_a_name_and_says_so_in_json(
    stage: OpenStage, state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server = stage(Say(text="A."), Say(text="B."))
    assert ask(capsys, server, "--conversation", "my work", "a?").out == "A.\n"
    fields = json.loads(ask(capsys, server, "--conversation", "my work", "--json", "b?").out)
    assert (fields["text"], fields["conversation"]) == ("B.", "my work")
    assert load_saved(state, "my work") == [("user", "a?"), ("assistant", "A."), ("user", "b?"), ("assistant", "B.")]
    with SqliteStore(state / "conversations.db") as store:
        assert store.names() == ("my work",)


def test_a_folder_that_cannot_be_written_to_stops_no_question(
    stage: OpenStage, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("", "utf-8")
    monkeypatch.setenv("ASIDES_STATE", str(tmp_path / "file" / "state"))
    server = stage(Say(text="A."), Say(text="B."))
    assert ask(capsys, server, "a?") == (0, "A.\n", "")
    monkeypatch.setenv("ASIDES_KEEP_CONVERSATIONS", "last")
    code, out, err = ask(capsys, server, "b?")
    assert (code, out) == (0, "B.\n")
    assert err.startswith("warning: the question is not kept: ")


def test_tools_of_a_continued_question_are_kept_with_it(
    stage: OpenStage, state: Path, tools: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call = ToolCall("call_1", "look", {"at": "sky"})
    server = stage(Say(tool_calls=(call,)), Say(text="Blue."), Say(text="Yes."))
    assert ask(capsys, server, "--tools", f"{tools}:look", "sky?").out == "Blue.\n"
    assert ask(capsys, server, "-c", "sure?").out == "Yes.\n"
    assert [message["role"] for message in server.requests[2].json["messages"]] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
    ]


def test_chats_are_kept_where_the_setting_says_all(stage: OpenStage, state: Path) -> None:
    server = stage(Say(text="A."))
    assert asides("chat", *at(server), stdin="a?\n", env={"ASIDES_KEEP_CONVERSATIONS": "all"}) == (0, "A.\n", "")
    with SqliteStore(state / "conversations.db") as store:
        (name,) = store.names()
    assert name.startswith("chat-")
    assert load_saved(state, name) == [("user", "a?"), ("assistant", "A.")]


def test_a_chat_that_goes_on_with_the_last_question_is_not_deleted_by_the_next(
    stage: OpenStage, state: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    server = stage(*(Say(text=f"{number}.") for number in range(4)))
    ask(capsys, server, "a?")
    assert piped(capsys, monkeypatch, "b?\n", "chat", "-c", "--base-url", server.url).out == "1.\n"
    ask(capsys, server, "c?")
    with SqliteStore(state / "conversations.db") as store:
        assert [name.partition("-")[0] for name in store.names()] == ["last", "chat"]
        chatted = store.names()[1]
    assert len(load_saved(state, chatted)) == 4
    # A name of the user's own takes the place of ours.
    lines = "/keep sums\nd?\n"
    piped(capsys, monkeypatch, lines, "chat", "--conversation", chatted, "--base-url", server.url)
    assert len(load_saved(state, "sums")) == 6
    assert load_saved(state, chatted) == []
