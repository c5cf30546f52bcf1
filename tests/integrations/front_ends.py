"""What front ends make of the streams: a UI message of Vercel's AI SDK, the messages of a client of AG-UI.

`tests/clients/test_front_ends.py` runs the real ones. These say the same in Python, so that the ordinary tests can use
the result; like the real ones they fail when something is not in its order.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import asides
from asides.values.events import Event, ReplyEnded, ReplyStarted, StopReason
from asides.values.result import RunEnded, StepEnded, StepStarted
from asides.values.usage import Usage

Json = dict[str, Any]


def read_sse(body: bytes) -> list[Any]:
    """The JSON of each event; `[DONE]` as that text. Comments are skipped."""
    found: list[Any] = []
    assert body.endswith(b"\n\n")
    for event in body.decode().split("\n\n")[:-1]:
        if event.startswith(":"):
            continue
        assert event.startswith("data: ")
        assert "\n" not in event
        text = event.removeprefix("data: ")
        found.append(text if text == "[DONE]" else json.loads(text))
    return found


class VercelMessage:
    """An assistant message of the AI SDK while it arrives."""

    def __init__(self) -> None:
        self.message: Json = {"id": "made-up", "role": "assistant", "parts": []}
        self.errors: list[str] = []
        self.ending: str | None = None
        self._open: dict[str, Json] = {}
        self._calls: dict[str, Json] = {}

    def feed(self, chunks: Iterable[Json]) -> VercelMessage:
        for chunk in chunks:
            assert self.ending is None, "nothing follows the end"
            kind: str = chunk["type"]
            if kind.startswith(("text-", "reasoning-")):
                part, _, what = kind.partition("-")
                self._add_text(part, what, chunk)
            elif kind.startswith("tool-"):
                self._add_tool(kind, chunk)
            elif kind in ("start", "finish"):
                self.message.setdefault("metadata", {}).update(chunk.get("messageMetadata", {}))
                self.ending = None if kind == "start" else f"finish:{chunk.get('finishReason')}"
            elif kind == "start-step":
                self.message["parts"].append({"type": "step-start"})
            elif kind == "finish-step":
                assert not self._open, "a part is open at the end of its step"
            elif kind == "file":
                self.message["parts"].append(chunk)
            elif kind == "error":
                self.errors.append(chunk["errorText"])
                self.ending = "error"
            else:
                assert kind == "abort"
                self.ending = "abort"
        return self

    def _add_text(self, kind: str, what: str, chunk: Json) -> None:
        if what == "start":
            assert chunk["id"] not in self._open
            part = self._open[chunk["id"]] = {"type": kind, "text": "", "state": "streaming"}
            self.message["parts"].append(part)
        part = self._open[chunk["id"]]
        assert part["type"] == kind
        part["text"] += chunk.get("delta", "")
        if "providerMetadata" in chunk:
            part["providerMetadata"] = chunk["providerMetadata"]
        if what == "end":
            self._open.pop(chunk["id"])["state"] = "done"

    def _add_tool(self, kind: str, chunk: Json) -> None:
        id_ = chunk["toolCallId"]
        if "toolName" in chunk and (kind == "tool-input-start" or id_ not in self._calls):
            assert id_ not in self._calls, "two calls have one id"
            self._calls[id_] = {"type": f"tool-{chunk['toolName']}", "toolCallId": id_, "raw": ""}
            self.message["parts"].append(self._calls[id_])
        part = self._calls[id_]
        part["raw"] += chunk.get("inputTextDelta", "")
        part |= {name: chunk[name] for name in ("input", "output", "errorText", "providerExecuted") if name in chunk}
        if "providerMetadata" in chunk:
            part["callProviderMetadata"] = chunk["providerMetadata"]
        state = kind.removeprefix("tool-")
        part["state"] = {"input-start": "input-streaming", "input-delta": "input-streaming"}.get(state, state)
        if state == "input-error":
            part["state"], part["rawInput"] = "output-error", part.pop("input")


def read_vercel_message(chunks: Iterable[Json]) -> Json:
    """The message that a page holds after a whole stream."""
    return VercelMessage().feed(chunks).message


class AgUiThread:
    """The messages of a client of AG-UI."""

    def __init__(self, messages: Iterable[Json] = ()) -> None:
        self.messages: list[Json] = list(messages)
        self.ending: Json | None = None
        self._open: set[tuple[str, str]] = set()
        self._started = False

    def feed(self, events: Iterable[Json]) -> AgUiThread:
        for event in events:
            assert self.ending is None, "nothing follows the end"
            assert self._started or event["type"] in ("RUN_STARTED", "RUN_ERROR")
            self._started = True
            getattr(self, f"_{event['type'].lower()}")(event)
        return self

    def _find(self, id_: str) -> Json:
        return next(message for message in self.messages if message["id"] == id_)

    def _find_call(self, id_: str) -> tuple[int, Json]:
        for place, message in enumerate(self.messages):
            for call in message.get("toolCalls", ()):
                if call["id"] == id_:
                    return place, call
        raise AssertionError(f"there is no call {id_}")

    def _start(self, kind: str, id_: str) -> None:
        assert (kind, id_) not in self._open
        self._open.add((kind, id_))

    def _merge(self, target: Json, event: Json) -> None:
        if "metadata" in event:
            target.setdefault("metadata", {}).update(event["metadata"])

    def _run_started(self, event: Json) -> None:
        assert event["threadId"]
        assert event["runId"]

    def _run_finished(self, event: Json) -> None:
        assert not self._open, "something is open at the end of the run"
        self.ending = event

    def _run_error(self, event: Json) -> None:
        self.ending = event

    def _step_started(self, event: Json) -> None:
        self._start("step", event["stepName"])

    def _step_finished(self, event: Json) -> None:
        self._open.remove(("step", event["stepName"]))

    def _reasoning_start(self, event: Json) -> None:
        self._start("span", event["messageId"])

    def _reasoning_end(self, event: Json) -> None:
        self._open.remove(("span", event["messageId"]))

    def _reasoning_message_start(self, event: Json) -> None:
        self._text_message_start({**event, "role": "reasoning"})

    def _text_message_start(self, event: Json) -> None:
        self._start("message", event["messageId"])
        if all(message["id"] != event["messageId"] for message in self.messages):
            self.messages.append({"id": event["messageId"], "role": event["role"], "content": ""})
        self._merge(self._find(event["messageId"]), event)

    def _text_message_content(self, event: Json) -> None:
        assert ("message", event["messageId"]) in self._open
        message = self._find(event["messageId"])
        message["content"] = message.get("content", "") + event["delta"]

    _reasoning_message_content = _text_message_content

    def _text_message_end(self, event: Json) -> None:
        self._open.remove(("message", event["messageId"]))

    _reasoning_message_end = _text_message_end

    def _reasoning_encrypted_value(self, event: Json) -> None:
        target = self._find_call(event["entityId"])[1] if event["subtype"] == "tool-call" else None
        (target or self._find(event["entityId"]))["encryptedValue"] = event["encryptedValue"]

    def _tool_call_start(self, event: Json) -> None:
        self._start("call", event["toolCallId"])
        parent = event["parentMessageId"]
        if all(message["id"] != parent for message in self.messages):
            self.messages.append({"id": parent, "role": "assistant"})
        function = {"name": event["toolCallName"], "arguments": ""}
        call = {"id": event["toolCallId"], "type": "function", "function": function}
        self._find(parent).setdefault("toolCalls", []).append(call)

    def _tool_call_args(self, event: Json) -> None:
        assert ("call", event["toolCallId"]) in self._open
        self._find_call(event["toolCallId"])[1]["function"]["arguments"] += event["delta"]

    def _tool_call_end(self, event: Json) -> None:
        self._open.remove(("call", event["toolCallId"]))
        self._merge(self._find_call(event["toolCallId"])[1], event)

    def _tool_call_result(self, event: Json) -> None:
        place = self._find_call(event["toolCallId"])[0] + 1
        while place < len(self.messages) and self.messages[place]["role"] == "tool":
            place += 1
        message = {"id": event["messageId"], "role": "tool", "toolCallId": event["toolCallId"]}
        self._merge(message, event)
        self.messages.insert(place, {**message, "content": event["content"]})

    def _activity_snapshot(self, event: Json) -> None:
        fields = {name: event[name] for name in ("activityType", "content")}
        self.messages.append({"id": event["messageId"], "role": "activity", **fields})


# --- events -----------------------------------------------------------------------------------------------------------


def write_vercel(*events: Any, **options: Any) -> list[Json]:
    """The chunks of a reply with these events."""
    return list(asides.ui.vercel_chunks([ReplyStarted("model"), *events, ReplyEnded(StopReason("stop"))], **options))


def take_step(chunks: list[Json]) -> list[Json]:
    """The chunks of the only step."""
    assert [chunks[0]["type"], chunks[1]["type"]] == ["start", "start-step"]
    assert [chunks[-2]["type"], chunks[-1]["type"]] == ["finish-step", "finish"]
    return chunks[2:-2]


def make_run(*steps: tuple[list[Event], list[Any]], outcome: Any = "answered") -> list[Any]:
    """The events of a run: for each step those of the reply, and those of its tools."""
    events: list[Any] = []
    for number, (reply, tools) in enumerate(steps, 1):
        events += [StepStarted(number), ReplyStarted(), *reply, ReplyEnded(StopReason("stop"))]
        events += [*tools, StepEnded(number, "answered", Usage())]
    return [*events, RunEnded(outcome, len(steps), Usage(1, 2, total=3))]
