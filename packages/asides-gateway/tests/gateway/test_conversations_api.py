"""The page's conversations over real sockets, in front of the strict stage."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from asides.conversations.store.conversation_names import STORE_FILE
from asides.conversations.store.postgres_store import PostgresStore
from asides.conversations.store.sqlite import SqliteStore
from asides.conversations.sync import Conversation
from asides.settings_tables import RouteTable
from asides.values.messages import Message
from asides.values.parts import Text, ToolCall, ToolResult
from asides_stage import Fail, OpenStage, Say, Stage
from tests.gateway.page_client import PageClient, find, join, names, page_gateway, without_settings
from tests.servers import PostgresServer

_CANARY = "canary-of-a-thought"
_DIALECTS = (
    *("anthropic:claude-opus-5-5", "google:gemini-3.6-pro", "openai:gpt-6-sol", "deepseek:deepseek-v4-pro"),
    *("bedrock:anthropic.claude-opus-5-5", "cohere:command-a-reasoning", "ollama:qwen3"),
)


@pytest.fixture
def strict(stage: OpenStage, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Opens a stage that every provider is moved to."""

    def open_stage(*script: Any) -> Stage:
        opened = stage(*script)
        monkeypatch.setenv("ASIDES_STAGE", opened.url)
        return opened

    stage.expect_no_refusals()
    return open_stage


def read_files(folder: Path) -> bytes:
    """All that is on the disk."""
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


# --- turns ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", _DIALECTS)
def test_a_second_turn_is_accepted_by_another_process_though_no_thinking_was_saved(
    strict: Any, model: str, tmp_path: Path
) -> None:
    strict(Say(text="One.", thinking=_CANARY), Say(text="Two.", thinking=_CANARY))
    with page_gateway(tmp_path) as page:
        conversation = page.create(model, thinking="high")
        first = page.ask(conversation, "First?")
    assert _CANARY.encode() not in read_files(tmp_path)
    with page_gateway(tmp_path) as page:
        second = page.ask(conversation, "Second?")
        shown = page.show(conversation)["messages"]
    for events, answer in ((first, "One."), (second, "Two.")):
        assert names(events) == ["started", "thought", "thought_end", "text", "ended"]
        assert (join(events, "thought"), join(events, "text")) == (_CANARY, answer)
        ended = find(events, "ended")
        assert ended["outcome"] == "answered"
        assert [(block["type"], block["text"]) for block in ended["message"]["blocks"]] == [
            ("thought", _CANARY),
            ("text", answer),
        ]
    assert _CANARY.encode() not in read_files(tmp_path)
    # What a person sees after a reload: that it thought, and not what.
    assert [[(block["type"], block["text"]) for block in message["blocks"]] for message in shown] == [
        [("text", "First?")],
        [("thought", ""), ("text", "One.")],
        [("text", "Second?")],
        [("thought", ""), ("text", "Two.")],
    ]
    assert [message["id"] for message in shown] == [0, 1, 2, 3]


def test_thinking_is_saved_only_if_the_settings_say_so(strict: Any, tmp_path: Path) -> None:
    strict(Say(text="One.", thinking=_CANARY))
    with page_gateway(tmp_path, without_settings(keep_thinking=True)) as page:
        conversation = page.create("deepseek:deepseek-v4-pro")
        page.ask(conversation, "First?")
        (thought, _) = page.show(conversation)["messages"][1]["blocks"]
    assert (thought["text"], thought["kind"]) == (_CANARY, "raw")


def test_with_keys_only_summaries_of_thinking_are_shown(strict: Any, tmp_path: Path) -> None:
    strict(Say(text="One.", thinking=_CANARY))
    with page_gateway(tmp_path, without_settings(keep_thinking=True), keys=("sk-one",)) as page:
        conversation = page.create("deepseek:deepseek-v4-pro")
        events = page.ask(conversation, "First?")
        shown = page.send("GET", f"/conversations/{conversation}").body
    assert find(events, "thought") == {"block": 0, "kind": "hidden", "text": ""}
    assert _CANARY not in repr(events)
    assert _CANARY not in repr(shown)


def test_the_figures_of_a_reply_are_kept_with_it(strict: Any, tmp_path: Path) -> None:
    strict(Say(text="One two three.", thinking="hm", piece=4, pause=0.02))
    with page_gateway(tmp_path) as page:
        conversation = page.create("deepseek:deepseek-v4-pro")
        ended = find(page.ask(conversation, "First?"), "ended")
    with page_gateway(tmp_path) as page:
        message = page.show(conversation)["messages"][1]
    assert (
        message["usage"]
        == ended["usage"]
        == {"input": 1, "output": 4, "thinking": 1, "total": 5} | {"origin": message["usage"]["origin"]}
    )
    assert message["timing"] == ended["timing"]
    assert message["model"] == "deepseek:deepseek-v4-pro"
    thought = message["blocks"][0]
    assert thought.get("seconds", 0.0) >= 0  # Not measured where all of it arrived at once.
    assert (thought["kind"], thought["tokens"], thought["text"]) == ("raw", 1, "")


def test_a_route_asks_its_targets_in_order_with_its_options(strict: Any) -> None:
    opened = strict(Fail(status=503), Say(text="From the second."))
    routes = {"best": RouteTable(targets=("deepseek:deepseek-v4-pro", "anthropic:claude-opus-5-5"), thinking="high")}
    with page_gateway(None, without_settings(routes=routes, retries=0)) as page:
        conversation = page.create("best")
        events = page.ask(conversation, "?")
        assert page.show(conversation)["model"] == "best"
    assert join(events, "text") == "From the second."
    assert find(events, "started")["model"] == "best"
    assert find(events, "ended")["message"]["model"] == "anthropic:claude-opus-5-5"
    assert "fell_back" in [data["code"] for name, data in events if name == "notice"]
    assert [request.path for request in opened.requests] == ["/v1/chat/completions", "/v1/messages"]


def test_a_question_may_change_the_model_and_the_thinking_for_the_next_ones(strict: Any) -> None:
    strict(Say(text="Yes."))
    with page_gateway() as page:
        conversation = page.create("deepseek:deepseek-v4-pro")
        page.ask(conversation, "?", model="anthropic:claude-opus-5-5", thinking="low")
        shown = page.show(conversation)
        assert (shown["model"], shown["thinking"]) == ("anthropic:claude-opus-5-5", "low")
        changed = page.send("PATCH", f"/conversations/{conversation}", {"thinking": 2000, "model": "ollama:qwen3"})
        assert (changed.body["model"], changed.body["thinking"]) == ("ollama:qwen3", 2000)
        assert find(page.ask(conversation, "?"), "started")["model"] == "ollama:qwen3"


def test_a_conversation_has_instructions_that_may_change(strict: Any) -> None:
    opened = strict(Say(text="Arr.", thinking="hm"), Say(text="Good day."), Say(text="Hi."))
    with page_gateway() as page:
        conversation = page.create("deepseek:deepseek-v4-pro", system="Be a pirate.")
        assert page.show(conversation)["system"] == "Be a pirate."
        page.ask(conversation, "?")
        page.send("PATCH", f"/conversations/{conversation}", {"system": "Be a butler."})
        shown = page.show(conversation)
        assert (shown["system"], len(shown["messages"])) == ("Be a butler.", 2)
        assert shown["messages"][1]["usage"], "the figures of earlier answers stay"
        page.ask(conversation, "?")
        page.send("PATCH", f"/conversations/{conversation}", {"system": "  "})
        assert page.show(conversation)["system"] is None
        page.ask(conversation, "?")
    said = [json.loads(request.body)["messages"][0] for request in opened.requests]
    assert [each["content"] if each["role"] == "system" else None for each in said] == [
        "Be a pirate.",
        "Be a butler.",
        None,
    ]


def test_an_empty_conversation_takes_instructions_too(strict: Any) -> None:
    strict(Say(text="x"))
    with page_gateway() as page:
        conversation = page.create("deepseek:deepseek-v4-pro")
        page.send("PATCH", f"/conversations/{conversation}", {"system": "Be short."})
        assert page.show(conversation)["system"] == "Be short."


def test_a_question_may_have_pictures_and_files(strict: Any) -> None:
    opened = strict(Say(text="A dot."))
    pixel = b"\x89PNG\r\n\x1a\n" + b"0" * 40
    with page_gateway() as page:
        conversation = page.create("anthropic:claude-opus-5-5")
        files = [
            {"name": "dot.png", "data": base64.b64encode(pixel).decode()},
            {"name": "notes.txt", "data": base64.b64encode(b"canary words").decode()},
        ]
        page.ask(conversation, "What is it?", files=files)
        content = json.loads(opened.requests[-1].body)["messages"][0]["content"]
        assert [part["type"] for part in content] == ["image", "text"]
        assert "canary words" in content[1]["text"]
        picture, words = page.show(conversation)["messages"][0]["blocks"]
        assert (picture["media_type"], base64.b64decode(picture["data"])) == ("image/png", pixel)
        assert words["text"].startswith("What is it?")
        for wrong in ([{"name": "x", "data": "///"}], [{"name": "x", "data": "AAECAwT/"}], files * 6):
            body = {"text": "?", "files": wrong}
            assert page.send("POST", f"/conversations/{conversation}/messages", body).status == 400


# --- with the command line --------------------------------------------------------------------------------------------


def test_the_command_line_and_the_page_see_the_same_conversations(strict: Any, tmp_path: Path) -> None:
    opened = strict(Say(text="One."), Say(text="Two."), Say(text="Three."))
    environ = {
        **os.environ,
        "ASIDES_STATE": str(tmp_path),
        "PYTHONPATH": os.pathsep.join(sys.path),
        "ASIDES_STAGE": opened.url,
    }

    def run(*arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "asides", *arguments],
            env=environ,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    with page_gateway(tmp_path) as page:
        conversation = page.create("deepseek:deepseek-v4-pro")
        page.ask(conversation, "Of the page?")
        assert "Of the page?" in run("history")
        # It goes on in a terminal, and then on the page again.
        assert run("ask", "-c", "Of the terminal?").strip() == "Two."
        page.ask(conversation, "Again?")
        assert [message["blocks"][-1]["text"] for message in page.show(conversation)["messages"]] == [
            *("Of the page?", "One.", "Of the terminal?", "Two.", "Again?", "Three."),
        ]
        run("ask", "-m", "ollama:qwen3", "--conversation", "name / of mine", "Hello?")
        listed = page.get("/conversations")["conversations"]
    assert [(each["title"], each["model"], each["messages"]) for each in listed] == [
        ("name / of mine", "ollama:qwen3", 2),
        ("Of the page?", "deepseek:deepseek-v4-pro", 6),
    ]


def test_calls_of_stored_conversations_are_shown(tmp_path: Path) -> None:
    with SqliteStore(tmp_path / STORE_FILE) as store:
        chat = Conversation("deepseek:deepseek-v4-pro", store=store, name="tools")
        chat.extend(
            [
                Message("user", "Weather?"),
                Message("assistant", (Text("I look."), ToolCall("c1", "weather", {"city": "Rome"}))),
                Message("tool", (ToolResult("c1", "rain", "weather", is_error=True),)),
            ]
        )
    with page_gateway(tmp_path) as page:
        (entry,) = page.get("/conversations")["conversations"]
        messages = page.show(entry["id"])["messages"]
    assert messages[1]["blocks"] == [
        {"type": "text", "text": "I look."},
        {"type": "call", "id": "c1", "name": "weather", "arguments": {"city": "Rome"}},
    ]
    assert messages[2] == {
        "id": 2,
        "role": "tool",
        "blocks": [{"type": "result", "id": "c1", "name": "weather", "text": "rain", "is_error": True}],
    }


# --- lists and pages --------------------------------------------------------------------------------------------------


def test_a_long_conversation_opens_fast_from_its_end_and_is_read_backwards(tmp_path: Path) -> None:
    with SqliteStore(tmp_path / STORE_FILE) as store:
        chat = Conversation("deepseek:deepseek-v4-pro", store=store, name="long")
        chat.extend([Message("assistant" if n % 2 else "user", f"message {n} " + "word " * 200) for n in range(1000)])
    with page_gateway(tmp_path) as page:
        (entry,) = page.get("/conversations")["conversations"]
        page.show(entry["id"])
        started = time.process_time()
        shown = page.show(entry["id"], "?limit=40")
        seconds = time.process_time() - started
        read = list(shown["messages"])
        while shown["next"] is not None:
            shown = page.show(entry["id"], f"?limit=400&before={shown['next']}")
            read = [*shown["messages"], *read]
    assert [message["id"] for message in read] == list(range(1000))
    assert entry["messages"] == 1000
    assert seconds < 0.5, seconds  # Some milliseconds.


def test_a_question_to_a_long_conversation_is_asked_with_all_of_it(strict: Any, tmp_path: Path) -> None:
    opened = strict(Say(text="Yes."))
    with SqliteStore(tmp_path / STORE_FILE) as store:
        chat = Conversation("deepseek:deepseek-v4-pro", store=store, name="long")
        chat.extend([Message("assistant" if n % 2 else "user", f"message {n}") for n in range(1000)])
    with page_gateway(tmp_path) as page:
        (entry,) = page.get("/conversations")["conversations"]
        ended = find(page.ask(entry["id"], "And now?"), "ended")
    assert ended["message"]["id"] == 1001
    assert len(opened.requests[-1].json["messages"]) == 1001


def test_conversations_are_listed_in_pages_the_latest_changed_first(strict: Any, tmp_path: Path) -> None:
    strict(Say(text="Yes."))
    with page_gateway(tmp_path) as page:
        made = [page.create("ollama:qwen3", title=f"number {n}") for n in range(5)]
        page.ask(made[1], "?")
        seen: list[str] = []
        cursor = ""
        while True:
            answer = page.get(f"/conversations?limit=2{cursor}")
            assert len(answer["conversations"]) <= 2
            seen += [each["id"] for each in answer["conversations"]]
            if answer["next"] is None:
                break
            cursor = f"&before={answer['next']}"
    assert seen == [made[place] for place in (1, 4, 3, 2, 0)]


def test_search_finds_titles_and_words_and_nothing_that_nobody_wrote(strict: Any, tmp_path: Path) -> None:
    strict(Say(text='The "Ätna" 100%_sure.', thinking="unseen"))
    with page_gateway(tmp_path, without_settings(keep_thinking=True)) as page:
        conversation = page.create("deepseek:deepseek-v4-pro")
        page.ask(conversation, "Which volcano?")
        other = page.create("ollama:qwen3", title="Äpfel & Birnen")

        def search(words: str) -> list[str]:
            found = page.get(f"/conversations?search={quote(words)}")["conversations"]
            return [each["id"] for each in found]

        for words in ("volcano", "VOLCANO", "ätna", "Ätna", '"ätna"', "100%_s", "which v"):
            assert search(words) == [conversation], words
        for words in ("äpfel", "& birnen"):
            assert search(words) == [other], words
        for words in ("unseen", "tool_call", "reasoning", "100%xs", "parts", "no such"):
            assert search(words) == [], words


def test_a_title_is_the_first_words_until_someone_gives_another(strict: Any) -> None:
    strict(Say(text="Yes."))
    with page_gateway() as page:
        conversation = page.create("ollama:qwen3")
        assert page.show(conversation)["title"] == ""
        page.ask(conversation, "  Why\n is the sky   blue?  ")
        assert page.show(conversation)["title"] == "Why is the sky blue?"
        page.send("PATCH", f"/conversations/{conversation}", {"title": " The\n sky "})
        assert page.show(conversation)["title"] == "The sky"
        page.send("PATCH", f"/conversations/{conversation}", {"title": ""})
        assert page.show(conversation)["title"] == "Why is the sky blue?"


def test_a_fork_has_the_messages_before_one_and_goes_its_own_way(strict: Any, tmp_path: Path) -> None:
    strict(Say(text="One.", thinking="hm"), Say(text="Two."), Say(text="Other."))
    with page_gateway(tmp_path) as page:
        conversation = page.create("anthropic:claude-opus-5-5", thinking="high")
        page.ask(conversation, "First?")
        page.ask(conversation, "Second?")
        forked = page.send("POST", f"/conversations/{conversation}/fork", {"before": 2})
        assert (forked.status, forked.body["messages"], forked.body["thinking"]) == (201, 2, "high")
        page.ask(forked.body["id"], "Another second?")
        mine, other = page.show(forked.body["id"])["messages"], page.show(conversation)["messages"]
    assert [message["blocks"][-1]["text"] for message in mine] == ["First?", "One.", "Another second?", "Other."]
    assert [message["blocks"][-1]["text"] for message in other] == ["First?", "One.", "Second?", "Two."]
    assert mine[1] == other[1], "notes go with the fork"


def test_a_deleted_conversation_is_gone_from_the_disk(strict: Any, tmp_path: Path) -> None:
    strict(Say(text="One."))
    with page_gateway(tmp_path) as page:
        conversation = page.create("ollama:qwen3")
        page.ask(conversation, "A word that nobody else wrote: xylophonist")
        assert b"xylophonist" in read_files(tmp_path)
        assert page.send("DELETE", f"/conversations/{conversation}").status == 204
        assert page.send("GET", f"/conversations/{conversation}").status == 404
        assert page.send("DELETE", f"/conversations/{conversation}").status == 404
        assert page.get("/conversations")["conversations"] == []
    assert b"xylophonist" not in read_files(tmp_path)


# --- tenants ----------------------------------------------------------------------------------------------------------


def test_tenants_see_their_own_conversations_only(strict: Any, tmp_path: Path) -> None:
    strict(Say(text="One."))
    with SqliteStore(tmp_path / STORE_FILE) as store:
        Conversation("ollama:qwen3", store=store, name="of the terminal").append("hello")
    with page_gateway(tmp_path, keys=("sk-one", "sk-two")) as one:
        two = PageClient(one.url, "sk-two")
        conversation = one.create("ollama:qwen3")
        one.ask(conversation, "Mine?")
        assert [each["id"] for each in one.get("/conversations")["conversations"]] == [conversation]
        assert two.get("/conversations") == {"conversations": [], "next": None}
        assert two.get("/conversations?search=mine")["conversations"] == []
        path = f"/conversations/{conversation}"
        for method, more, body in (
            ("GET", "", None),
            ("PATCH", "", {"title": "x"}),
            ("DELETE", "", None),
            ("POST", "/messages", {"text": "?"}),
            ("POST", "/continue", {}),
            ("POST", "/fork", {"before": 1}),
        ):
            answer = two.send(method, path + more, body)
            assert (answer.status, answer.body["error"]["code"]) == (404, "no_conversation"), (method, more)
        forked = one.send("POST", f"{path}/fork", {"before": 2}).body["id"]
        assert two.send("GET", f"/conversations/{forked}").status == 404
        assert PageClient(one.url).send("GET", "/conversations").status == 401
    with page_gateway(tmp_path) as nobody:
        assert [each["title"] for each in nobody.get("/conversations")["conversations"]] == ["of the terminal"]


# --- bad requests -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "code"),
    [
        ("POST", "/conversations", b"{", 400, "invalid_json"),
        ("POST", "/conversations", b"[" * 1000, 400, "invalid_json"),
        ("POST", "/conversations", b'{"title": "\\ud800"}', 400, "invalid_json"),
        ("POST", "/conversations", b"\xff\xfe", 400, "invalid_json"),
        ("POST", "/conversations", {"modle": "x"}, 400, "invalid_request"),
        ("POST", "/conversations", {"model": 3}, 400, "invalid_request"),
        ("POST", "/conversations", {"title": "x" * 1000}, 400, "invalid_request"),
        ("POST", "/conversations", {"model": "nobody:model"}, 400, "unknown_model"),
        ("POST", "/conversations", {"model": "ollama:qwen3", "thinking": "lots"}, 400, "invalid_thinking"),
        ("POST", "/conversations", b" " * (3 * 1024 * 1024), 413, "unreadable_body"),
        ("POST", "/conversations", {"title": "a\0b"}, 400, "invalid_request"),
        ("PATCH", "/conversations/{id}", {"title": "a\0b"}, 400, "invalid_request"),
        ("PATCH", "/conversations/{id}", {"model": "ollama:a\0b"}, 400, "invalid_request"),
        ("PUT", "/conversations", {}, 405, "method_not_allowed"),
        ("GET", "/conversations?limit=1000000", None, 400, "invalid_query"),
        ("GET", "/conversations?limit=-1", None, 400, "invalid_query"),
        ("GET", "/conversations?before=x", None, 400, "invalid_query"),
        ("GET", "/conversations?nothing=1", None, 400, "invalid_query"),
        ("GET", f"/conversations?search={'x' * 300}", None, 400, "invalid_query"),
        ("GET", "/conversations/unknown", None, 404, "no_conversation"),
        ("GET", "/conversations/..%2F..%2Fetc", None, 404, "no_conversation"),
        ("GET", f"/conversations/{'x' * 65}", None, 404, "no_conversation"),
        ("GET", "/conversations/%27%20OR%201=1", None, 404, "no_conversation"),
        ("POST", "/conversations/{id}/messages", {"text": " \n"}, 400, "blank"),
        ("POST", "/conversations/{id}/messages", {}, 400, "invalid_request"),
        ("POST", "/conversations/{id}/messages", {"text": "x", "model": "nobody:model"}, 400, "unknown_model"),
        ("POST", "/conversations/{id}/messages", {"text": "x", "model": "openai:gpt-5"}, 400, "missing_key"),
        ("POST", "/conversations/{id}/messages", {"text": "x", "thinking": -4}, 400, "invalid_request"),
        ("POST", "/conversations/{id}/continue", {}, 409, "nothing_to_continue"),
        ("POST", "/conversations/{id}/fork", {"before": 1}, 404, "no_message"),
        ("POST", "/conversations/{id}/fork", {"before": -1}, 400, "invalid_request"),
        ("GET", "/conversations/{id}/messages", None, 405, "method_not_allowed"),
        ("PATCH", "/conversations/{id}", {"model": None}, 400, "invalid_request"),
        ("DELETE", "/models", None, 405, "method_not_allowed"),
        ("POST", "/session", {}, 405, "method_not_allowed"),
    ],
)
def test_what_cannot_be_done_is_an_error_that_says_so(
    method: str, path: str, body: Any, status: int, code: str
) -> None:
    with page_gateway() as page:
        conversation = page.create("ollama:qwen3")
        answer = page.send(method, path.replace("{id}", conversation), body)
        shown = page.show(conversation)
    assert (answer.status, answer.body["error"]["code"]) == (status, code)
    assert answer.body["error"]["message"]
    assert answer.headers["cache-control"] == "no-store"
    assert shown["messages"] == []


def test_a_change_needs_the_content_type_of_json() -> None:
    with page_gateway() as page:
        answer = page.send("POST", "/conversations", b"{}", content_type="text/plain")
    assert (answer.status, answer.body["error"]["code"]) == (415, "not_json")


# --- the gateway ------------------------------------------------------------------------------------------------------


def test_the_session_says_what_the_page_needs(tmp_path: Path) -> None:
    with page_gateway(tmp_path, without_settings(model="ollama:qwen3")) as page:
        session = page.get("/session")
    assert {name: session[name] for name in ("workers", "needs_key", "store", "default_model")} == {
        "workers": 1,
        "needs_key": False,
        "store": "sqlite",
        "default_model": "ollama:qwen3",
    }
    assert {"off", "auto", "high"} <= set(session["efforts"])
    with page_gateway() as page:
        assert page.get("/session")["store"] == "memory"


def test_models_are_those_that_can_be_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-not-a-key")
    with page_gateway(None, without_settings(aliases={"quick": "ollama:qwen3"})) as page:
        answer = page.send("GET", "/models")
    models = {model["id"]: model for model in answer.body["models"]}
    assert models["quick"]["provider"] == "ollama"
    assert any(model["provider"] == "anthropic" and model["thinks"] for model in models.values())
    assert "sk-not-a-key" not in repr(answer)


# --- a database that instances share ----------------------------------------------------------------------------------


def test_instances_share_the_conversations_of_one_database(
    strict: Any, tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASIDES_RELAY_KEY", "ab" * 32)
    strict(Say(text="One.", thinking=_CANARY), Say(text="slow " * 20, piece=5, pause=0.03), Say(text="Three."))
    folders = (tmp_path / "one", tmp_path / "two")
    with page_gateway(folders[0], store=postgres_url) as one, page_gateway(folders[1], store=postgres_url) as two:
        assert one.get("/session")["store"] == "postgres"
        conversation = one.create("deepseek:deepseek-v4-pro", thinking="high")
        one.ask(conversation, "First xylophone?")
        with two.open(conversation, "messages", {"text": "Second?"}) as events:
            next(event for event in events if event[0] == "text")
            # A turn of one instance holds the conversation for all.
            answer = one.send("POST", f"/conversations/{conversation}/messages", {"text": "?"})
            assert (answer.status, answer.body["error"]["code"]) == (409, "busy")
            assert find(list(events), "ended")["outcome"] == "answered"
        one.ask(conversation, "Third?")
        assert [message["blocks"][-1]["text"] for message in two.show(conversation)["messages"]] == [
            *("First xylophone?", "One.", "Second?", "slow " * 20, "Third?", "Three."),
        ]
        assert [each["id"] for each in two.get("/conversations?search=XYLO")["conversations"]] == [conversation]
        with PostgresStore(postgres_url) as store:
            (name,) = store.names()
            Conversation(store=store, name=name).extend(["Of the terminal?"])
        assert two.show(conversation)["messages"][-1]["blocks"] == [{"type": "text", "text": "Of the terminal?"}]
        assert two.send("DELETE", f"/conversations/{conversation}").status == 204
        assert one.get("/conversations")["conversations"] == []
    assert not any((folder / STORE_FILE).exists() for folder in folders)


def test_a_database_that_is_out_is_told_without_its_address_and_used_when_it_is_back(
    strict: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own_postgres: PostgresServer, own_postgres_url: str
) -> None:
    monkeypatch.setenv("ASIDES_RELAY_KEY", "ab" * 32)
    with page_gateway(tmp_path, store=own_postgres_url) as page:
        conversation = page.create("deepseek:deepseek-v4-pro")
        own_postgres.stop("immediate")
        for path in ("/conversations", f"/conversations/{conversation}"):
            answer = page.send("GET", path)
            assert (answer.status, answer.body["error"]["code"]) == (503, "store_unavailable")
            assert "127.0.0.1" not in answer.body["error"]["message"]
        own_postgres.start()
        deadline = time.monotonic() + 20
        while page.send("GET", "/conversations").status != 200:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        assert [each["id"] for each in page.get("/conversations")["conversations"]] == [conversation]
