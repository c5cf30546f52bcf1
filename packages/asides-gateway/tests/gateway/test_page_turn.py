"""One turn of the page: however it ends, what arrived is kept, and the next one is accepted."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from asides.conversations.store.conversation_names import STORE_FILE
from asides.conversations.store.sqlite import SqliteStore
from asides.conversations.sync import Conversation
from asides.database import Queries, Query
from asides.options import Options
from asides.providers.provider import Provider
from asides.values.parts import ToolCall
from asides_gateway import page_turn
from asides_gateway.embedded import Gateway
from asides_gateway.gateway_settings import GatewaySettings
from asides_gateway.page_store import PageStore
from asides_gateway.page_turn import GO_ON, finish
from asides_gateway.serve_page import read_page
from asides_stage import Fail, Garbage, Hang, OpenStage, Say, Stage
from tests.gateway.page_client import PageClient, find, join, names, page_gateway, without_settings
from tests.gateway.served import serve
from tests.loopback import ReceivedRequest, serving
from tests.stores import get_database
from tests.strict_servers import openai_error, refusing

_CANARY = "canary-of-a-thought"
_MODELS = ("anthropic:claude-opus-5-5", "google:gemini-3.6-pro", "openai:gpt-6-sol", "deepseek:deepseek-v4-pro")


@pytest.fixture
def strict(stage: OpenStage, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Opens a stage that every provider is moved to."""

    def open_stage(*script: Any) -> Stage:
        opened = stage(*script)
        monkeypatch.setenv("ASIDES_STAGE", opened.url)
        return opened

    stage.expect_no_refusals()
    return open_stage


def wait_until(check: Any, seconds: float = 30.0) -> float:
    """Wait until something holds; returns the seconds that it took."""
    started = time.perf_counter()
    while not check():
        assert time.perf_counter() - started < seconds, "it did not happen"
        time.sleep(0.002)
    return time.perf_counter() - started


def texts(page: PageClient, conversation: str) -> list[tuple[str, str, str | None]]:
    """Who said what, and why it ended."""
    return [
        (
            message["role"],
            "".join(block["text"] for block in message["blocks"] if block["type"] == "text"),
            message.get("stopped"),
        )
        for message in page.show(conversation)["messages"]
    ]


def ask_when_free(page: PageClient, conversation: str, text: str) -> list[Any]:
    """Ask as soon as the turn before has ended."""
    deadline = time.perf_counter() + 30
    while True:
        try:
            return page.ask(conversation, text)
        except AssertionError as problem:
            if "busy" not in str(problem) or time.perf_counter() > deadline:
                raise
            time.sleep(0.01)


# --- leaving ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", _MODELS)
def test_what_arrived_before_someone_left_is_kept_and_the_next_turn_is_accepted(
    strict: Any, model: str, tmp_path: Path
) -> None:
    strict(Say(text="word " * 400, thinking=_CANARY, piece=5, pause=0.01), Say(text="Next.", thinking="hm"))
    with page_gateway(tmp_path) as page:
        conversation = page.create(model, thinking="high")
        seen = ""
        with page.open(conversation, "messages", {"text": "Long?"}) as events:
            for name, data in events:
                seen += data["text"] if name == "text" else ""
                if len(seen) > 20:
                    break
        after = ask_when_free(page, conversation, "And?")
        said = texts(page, conversation)
    assert join(after, "text") == "Next."
    assert [(role, stopped) for role, _, stopped in said] == [
        ("user", None),
        ("assistant", "stopped"),
        ("user", None),
        ("assistant", None),
    ]
    assert said[1][1].startswith(seen)
    assert len(said[1][1]) < 1500, "it did not go on after its reader had left"


def test_the_provider_is_left_as_soon_as_the_reader_is(tmp_path: Path) -> None:
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
    piece = b'data: {"choices":[{"index":0,"delta":{"content":"word "}}]}\n\n'
    left: list[float] = []

    def answer(request: ReceivedRequest, connection: Any) -> bool:
        connection.sendall(head + piece * 5)
        connection.recv(1)
        left.append(time.perf_counter())
        return False

    with (
        serving(answer) as server,
        Gateway(
            GatewaySettings(port=0, folder=tmp_path),
            without_settings(),
            options=Options(base_url=server.url, api_key="k"),
        ) as gateway,
    ):
        page = PageClient(gateway.url)
        conversation = page.create("openai-compatible:any")
        with page.open(conversation, "messages", {"text": "Long?"}) as events:
            next(event for event in events if event[0] == "text")
            gone = time.perf_counter()
        wait_until(lambda: left)
        wait_until(lambda: texts(page, conversation)[1:] == [("assistant", "word " * 5, "stopped")])
    # A few milliseconds where the machine has time. Whoever noticed with the next sign of life would take 15 s.
    assert left[0] - gone < 5


def test_someone_who_leaves_while_the_model_thinks_leaves_the_question(strict: Any, tmp_path: Path) -> None:
    strict(Say(text="Answer.", thinking="thought " * 300, piece=8, pause=0.01), Say(text="Next."))
    with page_gateway(tmp_path) as page:
        conversation = page.create("deepseek:deepseek-v4-pro")
        with page.open(conversation, "messages", {"text": "Hard?"}) as events:
            next(event for event in events if event[0] == "thought")
        wait_until(lambda: texts(page, conversation) == [("user", "Hard?", "stopped")])
        assert join(ask_when_free(page, conversation, "Then this."), "text") == "Next."


def test_someone_who_leaves_before_anything_came_blocks_nobody(strict: Any) -> None:
    opened = strict(Hang(), Say(text="Next."))
    with page_gateway() as page:
        conversation = page.create("deepseek:deepseek-v4-pro")
        with page.open(conversation, "messages", {"text": "Anyone?"}) as events:
            assert next(events)[0] == "started"
            wait_until(lambda: opened.requests)
        assert join(ask_when_free(page, conversation, "Hello?"), "text") == "Next."


# --- two at once ------------------------------------------------------------------------------------------------------


def test_the_page_knows_the_words_that_continue_an_answer() -> None:
    assert f'const GO_ON = "{GO_ON}";' in read_page()["question.js"].body.decode(), "it draws them as a line"


def test_a_second_turn_at_the_same_time_is_refused_in_every_process(strict: Any, tmp_path: Path) -> None:
    strict(Say(text="slow " * 40, piece=5, pause=0.02), Say(text="Next."))
    with page_gateway(tmp_path) as page, page_gateway(tmp_path) as other_process:
        conversation = page.create("deepseek:deepseek-v4-pro")
        with page.open(conversation, "messages", {"text": "One?"}) as events:
            next(event for event in events if event[0] == "text")
            for tab in (page, other_process):
                for action, body in (("messages", {"text": "Two?"}), ("continue", {})):
                    answer = tab.send("POST", f"/conversations/{conversation}/{action}", body)
                    assert (answer.status, answer.body["error"]["code"]) == (409, "busy")
            list(events)
        assert join(other_process.ask(conversation, "Two?"), "text") == "Next."
        assert [text for _, text, _ in texts(page, conversation)] == ["One?", "slow " * 40, "Two?", "Next."]


def test_a_process_that_died_blocks_a_conversation_only_for_a_while(strict: Any, tmp_path: Path) -> None:
    strict(Say(text="Next."))
    with page_gateway(tmp_path) as page:
        conversation = page.create("deepseek:deepseek-v4-pro")
        store = PageStore(tmp_path)
        found = store.find("", conversation)
        assert found is not None
        assert store.hold(found, "a process that was killed", 60)
        assert page.send("POST", f"/conversations/{conversation}/messages", {"text": "?"}).status == 409
        assert store.hold(found, "a process that was killed", 0.1)
        time.sleep(0.11)
        assert join(page.ask(conversation, "?"), "text") == "Next."
        store.close()


def test_a_turn_holds_its_conversation_as_long_as_it_takes(
    strict: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_turn, "HOLD_SECONDS", 0.6)
    strict(Say(text="slow " * 20, piece=5, pause=0.08))
    with page_gateway(tmp_path) as page:
        conversation = page.create("deepseek:deepseek-v4-pro")
        with page.open(conversation, "messages", {"text": "One?"}) as events:
            time.sleep(0.9)
            assert page.send("POST", f"/conversations/{conversation}/messages", {"text": "?"}).status == 409
            assert find(list(events), "ended")


def test_what_the_command_line_writes_meanwhile_is_kept(strict: Any, tmp_path: Path) -> None:
    opened = strict(Say(text="slow " * 20, piece=5, pause=0.02), Say(text="Next."))
    with page_gateway(tmp_path) as page:
        conversation = page.create("deepseek:deepseek-v4-pro")
        (name,) = SqliteStore(tmp_path / STORE_FILE).names()
        with page.open(conversation, "messages", {"text": "One?"}) as events:
            next(event for event in events if event[0] == "text")
            with SqliteStore(tmp_path / STORE_FILE) as store:
                Conversation(store=store, name=name).extend(["Of the terminal?"])
            ended = find(list(events), "ended")
        assert ended["message"]["id"] == 2
        assert [text for _, text, _ in texts(page, conversation)] == ["One?", "Of the terminal?", "slow " * 20]
        assert join(page.ask(conversation, "Two?"), "text") == "Next."
    assert len(opened.requests[-1].json["messages"]) >= 3


def test_a_conversation_that_is_deleted_during_its_turn_does_not_come_back(strict: Any, tmp_path: Path) -> None:
    strict(Say(text="slow " * 20, piece=5, pause=0.02))
    with page_gateway(tmp_path) as page:
        conversation = page.create("deepseek:deepseek-v4-pro")
        with page.open(conversation, "messages", {"text": "One?"}) as events:
            next(event for event in events if event[0] == "text")
            assert page.send("DELETE", f"/conversations/{conversation}").status == 204
            error = find(list(events), "error")
        assert "deleted" in error["message"]
        assert page.get("/conversations")["conversations"] == []
    assert SqliteStore(tmp_path / STORE_FILE).names() == ()


# --- failures ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scene", "code"),
    [
        (Fail(status=401), "auth_error"),
        (Fail(status=429, retry_after=3600), "rate_limited"),
        (Fail(status=500), "overloaded"),
        (Garbage(), "protocol_error"),
    ],
)
def test_a_provider_that_fails_is_told_and_the_question_can_be_asked_again(strict: Any, scene: Any, code: str) -> None:
    strict(scene, Say(text="Here."))
    with page_gateway(None, without_settings(retries=0)) as page:
        conversation = page.create("deepseek:deepseek-v4-pro")
        events = page.ask(conversation, "Hello?")
        assert names(events) == ["started", "error"]
        error = find(events, "error")
        assert (error["code"], error["question_kept"]) == (code, True)
        (message,) = page.show(conversation)["messages"]
        assert (message["stopped"], message["error"]) == ("error", error["message"])
        assert join(page.go_on(conversation), "text") == "Here."
        assert texts(page, conversation) == [("user", "Hello?", None), ("assistant", "Here.", None)]


def test_a_question_that_a_provider_refuses_is_taken_back(stage: OpenStage, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = stage(Say(text="One."), Fail(status=400, message="this is not allowed"), Say(text="Three."))
    monkeypatch.setenv("ASIDES_STAGE", opened.url)
    with page_gateway() as page:
        conversation = page.create("deepseek:deepseek-v4-pro")
        page.ask(conversation, "One?")
        before = page.show(conversation)["messages"]
        error = find(page.ask(conversation, "Two?"), "error")
        assert (error["code"], error["status"], error["question_kept"]) == ("bad_request", 400, False)
        assert page.show(conversation)["messages"] == before, "notes too are as before"
        assert join(page.ask(conversation, "Three?"), "text") == "Three."


def test_a_refused_and_repaired_request_is_told(tmp_path: Path) -> None:
    def refuse(body: Any) -> Any:
        if "reasoning_effort" in body:
            return openai_error(
                "Unsupported parameter: 'reasoning_effort'.", "reasoning_effort", "unsupported_parameter"
            )
        return None

    with refusing(refuse) as server:
        row = Provider(name="acme", title="Acme", base_url=server.url, key="optional")
        with page_gateway(tmp_path, without_settings(providers=(row,))) as page:
            conversation = page.create("acme:any", thinking="high")
            events = page.ask(conversation, "Hello?")
            told = [data["code"] for name, data in events if name == "notice"]
            kept = [notice["code"] for notice in page.show(conversation)["messages"][1]["notices"]]
    assert join(events, "text")
    assert server.count() == 2
    assert told == kept
    assert told != []


def test_an_answer_that_breaks_off_is_kept_and_can_be_continued(strict: Any) -> None:
    opened = strict(Say(text="word " * 100, piece=5, cut_after=2000), Say(text="The rest."))
    with page_gateway(None, without_settings(retries=0)) as page:
        conversation = page.create("deepseek:deepseek-v4-pro")
        events = page.ask(conversation, "Long?")
        error = find(events, "error")
        assert error["answer"]["stopped"] == "error"
        said = texts(page, conversation)
        assert said[1][1] == join(events, "text") != ""
        assert said[1][2] == "error"
        assert join(page.go_on(conversation), "text") == "The rest."
        assert [text for _, text, _ in texts(page, conversation)][2:] == [GO_ON, "The rest."]
    assert opened.requests[-1].json["messages"][-1]["content"] == GO_ON


@pytest.mark.parametrize("stop", ["length", "stop"])
def test_a_turn_without_an_answer_says_so_and_can_be_continued(strict: Any, stop: Any) -> None:
    starved = Say(thinking="thought " * 20, stop=stop)
    strict(starved, starved, Say(text="At last.", thinking="less"))
    outcome = {"length": "starved", "stop": "unterminated"}[stop]
    with page_gateway() as page:
        conversation = page.create("deepseek:deepseek-v4-pro")
        ended = find(page.ask(conversation, "Hard?"), "ended")
        assert ended["outcome"] == outcome
        assert ended["message"]["id"] is None
        assert [block["type"] for block in ended["message"]["blocks"]] == ["thought"]
        assert texts(page, conversation) == [("user", "Hard?", outcome)]
        # To continue tries harder: a second reply without an answer is recovered from.
        assert join(page.go_on(conversation), "text") == "At last."
        assert texts(page, conversation) == [("user", "Hard?", None), ("assistant", "At last.", None)]


def test_an_answer_at_its_limit_is_marked(strict: Any) -> None:
    strict(Say(text="Half an", stop="length"))
    with page_gateway() as page:
        conversation = page.create("deepseek:deepseek-v4-pro")
        ended = find(page.ask(conversation, "Long?"), "ended")
    assert (ended["outcome"], ended["message"]["stopped"]) == ("answered", "length")


def test_a_call_of_the_model_is_shown_and_the_next_turn_is_accepted(strict: Any) -> None:
    strict(Say(text="I call.", tool_calls=(ToolCall("c1", "look", {"at": [1, 2]}),)), Say(text="Fine."))
    with page_gateway() as page:
        conversation = page.create("deepseek:deepseek-v4-pro")
        events = page.ask(conversation, "Look?")
        call = find(events, "call")
        assert (call["name"], call["arguments"]) == ("look", {"at": [1, 2]})
        assert find(events, "ended")["outcome"] == "tool_calls"
        assert join(page.ask(conversation, "Never mind."), "text") == "Fine."


# --- while it waits ---------------------------------------------------------------------------------------------------


def test_comments_come_while_the_model_is_silent(strict: Any) -> None:
    strict(Say(text="Late.", delay=0.5))
    with page_gateway(None, ping_seconds=0.05) as page:
        conversation = page.create("deepseek:deepseek-v4-pro")
        events = page.ask(conversation, "?")
    listed = [name for name, _ in events]
    assert listed[0] == "started"
    assert listed.count("ping") >= 2
    assert join(events, "text") == "Late."


def test_events_leave_as_they_come(strict: Any) -> None:
    strict(Say(text="one two three four", thinking="a b c d", piece=4, pause=0.05))
    arrived: list[tuple[str, float]] = []
    with page_gateway() as page:
        conversation = page.create("deepseek:deepseek-v4-pro")
        with page.open(conversation, "messages", {"text": "?"}) as events:
            arrived = [(name, time.perf_counter()) for name, _ in events if name in ("thought", "text")]
    assert len(arrived) >= 6
    assert arrived[-1][1] - arrived[0][1] > 0.2


def test_many_turns_at_once_keep_apart(strict: Any, tmp_path: Path) -> None:
    def echo(request: Any) -> Say:
        return Say(text=f"You said {request.prompt.messages[-1].text}", piece=3, pause=0.002)

    strict(echo)
    said: dict[int, str] = {}
    with page_gateway(tmp_path) as page:
        made = [page.create("deepseek:deepseek-v4-pro") for _ in range(12)]

        def run(number: int) -> None:
            said[number] = join(page.ask(made[number], f"number {number}"), "text")

        threads = [threading.Thread(target=run, args=(number,)) for number in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
    assert said == {number: f"You said number {number}" for number in range(12)}


def test_a_slow_reader_is_waited_for(tmp_path: Path) -> None:
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
    piece = b'data: {"choices":[{"index":0,"delta":{"content":"%b"}}]}\n\n' % (b"word " * 2000)
    sent: list[int] = []

    def answer(request: ReceivedRequest, connection: Any) -> bool:
        connection.sendall(head)
        while len(sent) < 10_000:
            connection.sendall(piece)
            sent.append(len(piece))
        return False

    with (
        serving(answer) as server,
        Gateway(
            GatewaySettings(port=0, folder=tmp_path),
            without_settings(),
            options=Options(base_url=server.url, api_key="k"),
        ) as gateway,
    ):
        page = PageClient(gateway.url)
        conversation = page.create("openai-compatible:any")
        with page.open(conversation, "messages", {"text": "Long?"}) as events:
            next(event for event in events if event[0] == "text")
            before = -1
            while before != len(sent):
                before = len(sent)
                time.sleep(0.3)
            # What the sockets on the way hold, of 100 MB.
            assert sum(sent) < 30_000_000


# --- processes --------------------------------------------------------------------------------------------------------


def end_holds() -> Queries[None]:
    yield Query("UPDATE page_conversations SET held_until = 0")


def test_a_killed_process_loses_no_question_and_the_next_one_goes_on(stage: OpenStage, tmp_path: Path) -> None:
    opened = stage(Say(text="slow " * 200, thinking=_CANARY, piece=5, pause=0.02), Say(text="Here again."))
    environ = {"ASIDES_STAGE": opened.url}
    with serve(tmp_path, env=environ) as served:
        page = PageClient(served.url)
        conversation = page.create("deepseek:deepseek-v4-pro")
        with page.open(conversation, "messages", {"text": "Are you there?"}) as events:
            next(event for event in events if event[0] == "text")
            served.process.kill()
            served.process.wait(10)
    files = [path for path in (tmp_path / "state").rglob("*") if path.is_file()]
    assert not any(_CANARY.encode() in path.read_bytes() for path in files)
    # It is held for a while by the process that was killed.
    with PageStore(tmp_path / "state") as store:
        found = store.find("", conversation)
        assert found is not None
        assert not store.hold(found, "another", 1)
        get_database(store).run(end_holds)
    with serve(tmp_path, env=environ) as served:
        page = PageClient(served.url)
        assert texts(page, conversation) == [("user", "Are you there?", None)]
        assert join(page.go_on(conversation), "text") == "Here again."
        assert served.end() == 0


def test_several_processes_are_one_gateway_for_a_conversation(stage: OpenStage, tmp_path: Path) -> None:
    opened = stage(Say(text="slow " * 60, piece=5, pause=0.02))
    with serve(tmp_path, "--workers", "2", env={"ASIDES_STAGE": opened.url}) as served:
        page = PageClient(served.url)
        conversation = page.create("deepseek:deepseek-v4-pro")
        with page.open(conversation, "messages", {"text": "One?"}) as events:
            next(event for event in events if event[0] == "text")
            path = f"/conversations/{conversation}/messages"
            # Each connection goes to either of them.
            assert {page.send("POST", path, {"text": "Two?"}).status for _ in range(12)} == {409}
            list(events)
        assert [role for role, _, _ in texts(page, conversation)] == ["user", "assistant"]


async def test_work_that_has_begun_ends_however_often_its_task_is_cancelled() -> None:
    """A failed write is noticed first, and the lost connection cancels the task while its end is noted."""
    done: list[str] = []

    async def work() -> bytes:
        await asyncio.sleep(0.05)
        done.append("noted")
        return b"x"

    assert await finish(work()) == b"x"
    task = asyncio.create_task(finish(work()))
    for _ in range(3):
        await asyncio.sleep(0.01)
        task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert done == ["noted", "noted"]
