"""The inspector's API over a real gateway: what it tells of requests, whom it tells, and what it never tells."""

from __future__ import annotations

import http.client
import subprocess
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest

from asides.settings import load_settings
from asides.values.parts import ToolCall
from asides.values.usage import Usage
from asides_gateway.recent_requests import RecentRequests
from asides_stage.stage import Fail, Hang, Say
from tests.gateway.inspecting import CLAUDE, DEEPSEEK, LOOK, PROVIDER_KEY, Inspected, inspect

THOUGHT = "the canary thinks of seeds"
KEYS = ("gateway-key-of-anna-CANARY", "gateway-key-of-bert-CANARY")


def _think(**more: Any) -> Say:
    return Say(thinking=THOUGHT, text="It is a bird.", usage=Usage(input=20, output=30, thinking=12), **more)


def test_a_request_is_in_the_list_and_has_a_detail() -> None:
    with inspect(_think()) as inspected:
        assert inspected.ask(CLAUDE, reasoning_effort="high", max_tokens=4000, stream=True).status == 200
        [summary] = inspected.get()["requests"]
        detail = inspected.last()
    assert summary["state"] == "done"
    assert summary["status"] == 200
    assert (summary["method"], summary["path"], summary["dialect"]) == ("POST", "/v1/chat/completions", "openai_chat")
    assert summary["client"] == "openai-python/2.1"
    assert (summary["model_asked"], summary["model"], summary["mode"]) == (CLAUDE, CLAUDE, "translate")
    assert summary["target_dialect"] == "anthropic"
    assert summary["reason"]
    assert summary["attempts"] == 1
    assert summary["usage"]["output"] == 30
    timing = summary["timing"]
    assert 0 < timing["first_event"] <= timing["first_thought"] <= timing["first_answer"] <= timing["total"]
    assert [state for state, _ in summary["spans"]] == ["waiting", "thinking", "answering"]
    assert detail["asked"] == {
        "model": CLAUDE,
        "stream": True,
        "messages": 1,
        "has_system": False,
        "tools": 0,
        "thinking": "high",
        "max_tokens": 4000,
        "bytes": detail["asked"]["bytes"],
        "headers": {"content-type": "application/json"},
    }
    assert detail["events"]["thinking"] >= 1
    assert detail["events"]["text"] >= 1
    [sent] = detail["sent"]
    assert sent["url"].endswith("/messages")
    assert sent["bytes"] > 0
    assert "request_body" not in detail


def test_the_states_of_a_request_arrive_as_they_change() -> None:
    with inspect(_think(piece=4, pause=0.03, delay=0.3)) as inspected, inspected.follow() as feed:
        assert feed.status == 200
        inspected.ask(stream=True)
        feed.wait(lambda feed: "done" in feed.states())
        states = list(dict.fromkeys(feed.states()))
        [first] = {data["id"] for _, _, data in feed.events}
        assert inspected.get()["requests"][0]["id"] == first
    assert states == ["waiting", "thinking", "answering", "done"]


def test_a_client_that_leaves_and_a_provider_that_fails() -> None:
    with (
        inspect([Hang(), Fail(status=400, message="no such thing as SECRET")]) as inspected,
        inspected.follow() as feed,
    ):
        parts = urlsplit(inspected.url)
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port)
        body = {"model": DEEPSEEK, "messages": [{"role": "user", "content": "?"}]}
        connection.request("POST", "/v1/chat/completions", msgspec.json.encode(body))
        feed.wait(lambda feed: any(data["attempts"] == 1 for _, _, data in feed.events))
        connection.close()
        feed.wait(lambda feed: "left" in feed.states())
        assert inspected.ask().status == 400
        feed.wait(lambda feed: "failed" in feed.states())
        failed, left = inspected.get()["requests"]
    assert (left["state"], failed["state"], failed["status"]) == ("left", "failed", 400)
    assert failed["error"]["code"] == "BadRequest"
    assert failed["attempts"] == 1
    assert "error" not in left


def test_what_went_back_is_told_with_its_reason_and_source() -> None:
    scenes = [Say(thinking=THOUGHT, tool_calls=(ToolCall("1", "look", {}),)), _think()]
    with inspect(scenes) as inspected:
        first = inspected.ask(CLAUDE, tools=[LOOK], reasoning_effort="high").json["choices"][0]["message"]
        first.pop("reasoning_content")
        result = {"role": "tool", "tool_call_id": first["tool_calls"][0]["id"], "content": "a bird"}
        unknown = {"role": "assistant", "content": "Something that the gateway never saw."}
        more = [unknown, {"role": "user", "content": "Look."}]
        assert inspected.ask(CLAUDE, first, result, tools=[LOOK], reasoning_effort="high").status == 200
        detail = inspected.last()
        inspected.ask(CLAUDE, *more)
        missed = inspected.last()
    assert (detail["restored"], detail["missed"]) == (1, 0)
    restored, kept = detail["decisions"]
    assert (restored["action"], restored["message"], restored["source"]) == ("restore", 1, "vault")
    assert (kept["action"], kept["what"], kept["message"]) == ("keep", "thought", 1)
    assert kept["why"]
    assert kept["source"]
    assert (missed["restored"], missed["missed"]) == (0, 1)
    assert missed["decisions"][0]["action"] == "miss"


def test_attempts_and_repairs_are_told() -> None:
    refused = Fail(status=400, message="Unsupported parameter: 'temperature' is not supported with this model.")
    with inspect([Fail(status=503, retry_after=0), refused, _think()]) as inspected:
        assert inspected.ask("openai-compatible:any", temperature=0.3).status == 200
        detail = inspected.last()
    assert detail["attempts"] == 3
    assert [sent["repaired"] for sent in detail["sent"]] == [False, False, True]
    assert detail["repairs"] == 1
    assert any(notice["setting"] == "temperature" for notice in detail["notices"])


def test_a_list_of_models_is_a_request_too_and_one_of_the_page_is_none() -> None:
    with inspect(_think()) as inspected:
        inspected.send("GET", "/v1/models")
        inspected.send("GET", "/ui/")
        inspected.send("GET", "/nothing")
        found = inspected.get()["requests"]
    assert [(each["path"], each["state"], each["mode"]) for each in found] == [
        ("/nothing", "failed", "own"),
        ("/v1/models", "done", "own"),
    ]


# --- whose requests ---------------------------------------------------------------------------------------------------


def test_a_key_sees_its_own_requests_and_no_others() -> None:
    anna, bert = KEYS
    with inspect(_think(), keys=KEYS) as inspected:
        inspected.set_capture(True, anna)
        with inspected.follow(key=anna) as of_anna, inspected.follow(key=bert) as of_bert:
            assert inspected.ask(key=anna).status == 200
            of_anna.wait(lambda feed: "done" in feed.states())
            name = inspected.get(key=anna)["requests"][0]["id"]
            assert inspected.get(key=bert)["requests"] == []
            assert inspected.send("GET", f"/ui/api/requests/{name}", key=bert).status == 404
            assert inspected.get(key=bert)["captures_bodies"] is False
            inspected.set_capture(False, bert)
            assert "request_body" in inspected.get(f"/{name}", anna), "another tenant switched it off"
            assert inspected.ask(key=bert).status == 200
            of_bert.wait(lambda feed: "done" in feed.states())
            assert name not in of_bert.text
            assert len({data["id"] for _, _, data in of_anna.events if "id" in data}) == 1
        for path in ("", f"/{name}", "/events"):
            assert inspected.send("GET", f"/ui/api/requests{path}").status == 401
            assert inspected.send("GET", f"/ui/api/requests{path}", key="wrong").status == 401
        assert inspected.set_capture(True).status == 401


def test_strangers_without_a_key_drive_no_request_out() -> None:
    anna = KEYS[0]
    with inspect(_think(), keys=KEYS) as inspected:
        assert inspected.ask(key=anna).status == 200
        for _ in range(20):
            assert inspected.ask(key="wrong").status == 401
        kept = inspected.gateway.service.watchers
        assert [len(each._sizes) for each in kept if isinstance(each, RecentRequests)] == [1]
        assert len(inspected.get(key=anna)["requests"]) == 1


# --- bodies -----------------------------------------------------------------------------------------------------------


def test_bodies_are_kept_only_while_that_is_on_and_dropped_with_it() -> None:
    with inspect(_think()) as inspected:
        inspected.ask(CLAUDE)
        assert "request_body" not in inspected.last()
        assert inspected.set_capture(True).json == {"captures_bodies": True}
        inspected.ask(CLAUDE, stream=True)
        detail = inspected.last()
        assert detail["request_body"]["messages"][0]["content"] == "What is it?"
        assert detail["sent_bodies"][0]["messages"][0]["content"]
        assert inspected.get()["captures_bodies"] is True
        assert inspected.send("GET", "/ui/api/session").json["inspector"] == {"captures_bodies": True}
        inspected.set_capture(False)
        assert "What is it?" not in msgspec.json.encode(inspected.last()).decode()
        assert inspected.get()["captures_bodies"] is False


def test_a_body_that_is_too_large_or_no_json_is_told_and_not_kept() -> None:
    with inspect(_think()) as inspected:
        inspected.set_capture(True)
        inspected.ask(CLAUDE, {"role": "user", "content": "x" * 1_100_000})
        assert "not kept" in inspected.last()["request_body"]
        inspected.send("POST", "/v1/chat/completions", b"SECRET words")
        detail = inspected.last()
    assert "not kept" in detail["request_body"]
    assert "SECRET" not in msgspec.json.encode(detail).decode()


@pytest.mark.parametrize("shows", [(), ("summary",), ("raw", "summary")])
def test_no_key_no_seal_and_no_hidden_thought_is_ever_told(shows: tuple[str, ...]) -> None:
    """Every way out of the inspector is read: the list, the detail, the events and the command."""
    settings = load_settings(environ={}, files=[], visibility={"gateway": list(shows)})
    scenes = [Say(thinking=THOUGHT, tool_calls=(ToolCall("1", "look", {}),)), _think()]
    anna = KEYS[0]
    with inspect(scenes, settings=settings, keys=KEYS) as inspected, inspected.follow(key=anna) as feed:
        inspected.set_capture(True, anna)
        first = inspected.ask(CLAUDE, tools=[LOOK], reasoning_effort="high", key=anna).json["choices"][0]["message"]
        result = {"role": "tool", "tool_call_id": first["tool_calls"][0]["id"], "content": f"a key: {anna}"}
        history = [{key: value for key, value in first.items() if key != "reasoning_content"}, result]
        inspected.ask(CLAUDE, *history, tools=[LOOK], reasoning_effort="high", key=anna)
        feed.wait(lambda feed: feed.states().count("done") >= 2)
        sent = msgspec.json.decode(inspected.stage.requests[-1].body)
        [thought] = [block for block in sent["messages"][1]["content"] if block["type"] == "thinking"]
        assert thought["thinking"] == THOUGHT, "it went back"
        detail = inspected.last(anna)
        told = [
            inspected.get(key=anna),
            detail,
            *(inspected.get(f"/{each['id']}", anna) for each in inspected.get(key=anna)["requests"]),
        ]
        text = msgspec.json.encode(told).decode() + feed.text
    assert thought["signature"] not in text
    assert "CANARY" not in text
    assert PROVIDER_KEY not in text
    assert "$ASIDES_GATEWAY_KEY" in detail["curl"]
    assert (THOUGHT in text) is ("raw" in shows)


# --- following --------------------------------------------------------------------------------------------------------


def test_a_reader_that_comes_back_gets_what_it_missed_once() -> None:
    with inspect(_think()) as inspected:
        position = inspected.get()["position"]
        inspected.ask()
        inspected.ask()
        with inspected.follow(position) as feed:
            feed.wait(lambda feed: len(feed.events) == 2)
            assert feed.states() == ["done", "done"]
            last = feed.events[0][1]
        with inspected.follow(last_event_id=last) as feed:
            feed.wait(lambda feed: len(feed.events) == 1)
            assert feed.events[0][2]["id"] == inspected.get()["requests"][0]["id"]
        with inspected.follow("00000000-3") as feed:
            feed.wait(lambda feed: bool(feed.events))
            assert feed.events[0][0] == "reset"


def test_a_switch_of_the_bodies_reaches_other_readers() -> None:
    with inspect(_think()) as inspected, inspected.follow() as feed:
        inspected.set_capture(True)
        feed.wait(
            lambda feed: ("settings", {"captures_bodies": True}) in [(name, data) for name, _, data in feed.events]
        )


def test_a_gateway_that_ends_does_not_wait_for_readers() -> None:
    with inspect(_think(), drain_seconds=40.0) as inspected, inspected.follow() as feed:
        inspected.ask()
        began = time.monotonic()
        inspected.gateway.close()
        assert time.monotonic() - began < 30
        feed.wait(lambda feed: feed.is_over)


def test_only_so_many_readers() -> None:
    with inspect(_think()) as inspected:
        feeds = [inspected.follow() for _ in range(32)]
        opened = [feed.__enter__() for feed in feeds]
        assert {feed.status for feed in opened} == {200}
        answer = inspected.send("GET", "/ui/api/requests/events")
        assert (answer.status, answer.json["error"]["code"]) == (503, "too_many_readers")
        for feed in feeds:
            feed.__exit__(None, None, None)


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/ui/api/requests?limit=x", None, 400),
        ("GET", "/ui/api/requests?limit=1001", None, 400),
        ("GET", "/ui/api/requests?what=1", None, 400),
        ("GET", "/ui/api/requests/req_nobody", None, 404),
        ("POST", "/ui/api/requests", {}, 405),
        ("DELETE", "/ui/api/requests/x", None, 405),
        ("PUT", "/ui/api/requests/settings", {"captures_bodies": "yes"}, 400),
        ("PUT", "/ui/api/requests/settings", {"other": True}, 400),
        ("PUT", "/ui/api/requests/settings", b"{", 400),
    ],
)
def test_requests_that_make_no_sense(method: str, path: str, body: Any, status: int) -> None:
    with inspect(_think()) as inspected:
        answer = inspected.send(method, path, body)
        assert (answer.status, answer.headers["cache-control"]) == (status, "no-store")
        assert answer.json["error"]["message"]
        assert inspected.get() == {
            "requests": [],
            "captures_bodies": False,
            "position": inspected.get()["position"],
            "workers": 1,
            "shares_requests": False,
        }


def test_the_switch_needs_json_so_that_no_form_of_another_site_can_send_it() -> None:
    with inspect(_think()) as inspected:
        answer = inspected.send(
            "PUT", "/ui/api/requests/settings", b'{"captures_bodies": true}', content_type="text/plain"
        )
        assert answer.status == 415
        assert inspected.get()["captures_bodies"] is False


# --- the command ------------------------------------------------------------------------------------------------------


def _run(command: str, inspected: Inspected, folder: Path, key: str) -> subprocess.CompletedProcess[str]:
    environ = {"PATH": "/usr/bin:/bin", "ASIDES_GATEWAY_KEY": key, "HOME": str(folder)}
    return subprocess.run(
        ["/bin/sh", "-c", command], env=environ, cwd=folder, capture_output=True, text=True, timeout=50, check=False
    )


@pytest.mark.skipif(not Path("/usr/bin/curl").exists(), reason="there is no curl here")
def test_the_command_repeats_the_request(tmp_path: Path) -> None:
    hostile = 'it\'s "$(touch hacked)" `touch hacked` \\ ! é \x1b[201~; touch hacked\n#'
    with inspect(_think(), keys=KEYS) as inspected:
        inspected.ask(DEEPSEEK, {"role": "user", "content": hostile}, key=KEYS[0])
        plain = inspected.last(KEYS[0])["curl"]
        assert "@request.json" in plain
        inspected.set_capture(True, KEYS[0])
        inspected.ask(DEEPSEEK, {"role": "user", "content": hostile}, key=KEYS[0])
        command = inspected.last(KEYS[0])["curl"]
        assert command.isascii()
        assert "\x1b" not in command
        done = _run(command, inspected, tmp_path, KEYS[0])
        assert "It is a bird." in done.stdout, done.stderr
        first, second = inspected.stage.requests[-2:]
        assert msgspec.json.decode(first.body) == msgspec.json.decode(second.body)
        (tmp_path / "request.json").write_bytes(inspected.stage.requests[-1].body)
        assert "invalid_api_key" in _run(plain, inspected, tmp_path, "wrong").stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["request.json"]
