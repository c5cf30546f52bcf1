"""The tables of conversations: CPU of a turn with 10 to 10,000 messages before it, and of `trim_to` at 10,000.

Cold is the first turn of a conversation whose messages were never sent; warm are the turns after it. The floor encodes
the same list with msgspec and posts it with the bare client. `python -m bench.conversations KEY DIALECT URL` is the
process of one contestant.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from statistics import median
from typing import Any

from bench.ours import TARGETS, locate
from bench.payloads import QUESTION
from bench.payloads.words import make_text
from bench.processes import ContestantFailed, Process
from bench.streams import progress, ratio
from bench.tables import Row, Table

PROFILE = "body-2048"
SIZES = (10, 100, 1000, 10_000)
QUICK_SIZES = (10, 1000)
CONTENTS = ("text", "mixed")
KEYS = ("bare client, sync", "asides, sync", "bare client, async", "asides, async")
# messages → conversations that are begun, and turns of each after the first
EFFORT = {10: (10, 10), 100: (8, 10), 1000: (3, 8), 10_000: (2, 4)}
OPTIONS = {"thinking": "low"}
TRIM_SIZE = 10_000
# The wire's name for the list of messages.
LISTS = ("messages", "input", "contents")


TOKENS = make_text(2400)


def _words(number: int, count: int) -> str:
    start = number * 7 % 2000
    return f"{number}: {''.join(TOKENS[start : start + count])}"


class History:
    """Messages of a dialect, as its provider would have sent them: thoughts with seals, tool calls, plain text."""

    def __init__(self, base_url: str, dialect: str) -> None:
        import asides

        self.model = TARGETS[dialect][0]
        self.where = locate(base_url, PROFILE, dialect)
        client: Any = asides.Client()
        self.answer = client.ask(self.model, QUESTION, **self.where).to_message()
        called = client.ask(self.model, QUESTION, **locate(base_url, "calls-1", dialect)).to_message()
        # Seals go back only to the address that made them.
        self.origin = next(part.origin for part in self.answer.parts if isinstance(part, asides.Thought))
        self.called = self._at_home(called)

    def _at_home(self, message: Any) -> Any:
        from msgspec.structs import replace

        def move(part: Any) -> Any:
            seals = tuple(replace(seal, origin=self.origin) for seal in part.seals)
            return replace(part, seals=seals, **({"origin": self.origin} if hasattr(part, "origin") else {}))

        return replace(message, parts=tuple(move(part) for part in message.parts))

    def _retell(self, message: Any, number: int) -> Any:
        """The same kinds of parts with other words and other ids."""
        from msgspec.structs import replace

        import asides

        def change(part: Any) -> Any:
            if isinstance(part, asides.ToolCall):
                return replace(part, id=f"call_{number}")
            return replace(part, text=_words(number, 30 if isinstance(part, asides.Thought) else 50))

        return replace(message, parts=tuple(change(part) for part in message.parts))

    def make(self, size: int, content: str) -> list[Any]:
        """New messages that end with an answer. Mixed: of eight, two questions with thought and answer, and a call."""
        import asides

        messages: list[Any] = []
        for number in range(size):
            place = number % 8
            if content == "text":
                make = asides.assistant if number % 2 else asides.user
                messages.append(make(_words(number, 50 if number % 2 else 20)))
            elif place in (0, 2, 4):
                messages.append(asides.user(_words(number, 20)))
            elif place == 5:
                messages.append(self._retell(self.called, number))
            elif place == 6:
                result = asides.ToolResult(f"call_{number - 1}", _words(number, 30), name="search")
                messages.append(asides.Message("tool", (result,)))
            else:
                messages.append(self._retell(self.answer, number))
        return messages

    def wire(self, size: int, content: str) -> tuple[dict[str, Any], str]:
        """The request as plain dicts, and the name of its list of messages."""
        import asides

        prompt = [*self.make(size, content), asides.user(QUESTION)]
        body: Any = asides.explain(self.model, prompt, **self.where, **OPTIONS).body  # type: ignore[arg-type]
        return body, next(name for name in LISTS if name in body)


class Talker:
    """One contestant: asides or the bare client, sync or async."""

    def __init__(self, key: str, dialect: str, base_url: str) -> None:
        self.name, _, self.mode = key.rpartition(", ")
        self.history = History(base_url, dialect)
        self.loop = asyncio.new_event_loop()
        self.wait = self.loop.run_until_complete if self.mode == "async" else lambda value: value
        if self.name == "asides":
            self.client = self._open_client()
        else:
            self._open_bare(dialect, base_url)

    def _open_client(self) -> Any:
        import asides

        if self.mode == "sync":
            return asides.Client()

        async def build() -> Any:
            return asides.AsyncClient()

        return self.loop.run_until_complete(build())

    def _open_bare(self, dialect: str, base_url: str) -> None:
        from bench.floors import PATHS
        from bench.floors.bodies import typed_body
        from bench.floors.clients import Aiohttp, Urllib3

        client: Any = Aiohttp(base_url) if self.mode == "async" else Urllib3(base_url)
        self.post = partial(client.post, f"/{PROFILE}{PATHS[dialect]}")
        self.decode = typed_body(dialect).decode

    def _start(self, size: int, content: str) -> Any:
        """A function that takes one turn and returns when the answer is part of the history."""
        if self.name == "asides":
            conversation = self._converse(size, content)
            return lambda: self.wait(conversation.ask(QUESTION))
        import msgspec

        body, name = self.history.wire(size, content)
        messages = body[name]
        question, answer = messages[-1], messages[-2]
        encode = msgspec.json.Encoder().encode

        def turn() -> None:
            self.decode(self.wait(self.post(encode(body))))
            messages.append(answer)
            messages.append(question)

        return turn

    def _converse(self, size: int, content: str) -> Any:
        import asides

        kind: Any = asides.AsyncConversation if self.mode == "async" else asides.Conversation
        messages = self.history.make(size, content)
        return kind(self.history.model, client=self.client, messages=messages, **self.history.where, **OPTIONS)

    def turns(self, size: int, content: str) -> dict[str, float]:
        """CPU milliseconds of a first turn, and of the turns after it."""
        cold: list[float] = []
        warm: list[float] = []
        begun, further = EFFORT[size]
        # The process itself is warm.
        self._start(10, content)()
        for _ in range(begun):
            turn = self._start(size, content)
            gc.collect()
            for number in range(further + 1):
                began = time.process_time()
                turn()
                (warm if number else cold).append(time.process_time() - began)
        return {"cold": median(cold) * 1000, "warm": median(warm) * 1000}

    def trim(self, content: str) -> dict[str, float]:
        """CPU milliseconds of `trim_to` half of the tokens, before the first turn and after it."""
        total = self._converse(TRIM_SIZE, content).trim_to(10**9).tokens

        def measure(conversation: Any) -> float:
            gc.collect()
            began = time.process_time()
            trimmed = conversation.trim_to(total // 2)
            taken = time.process_time() - began
            assert 0 < trimmed.dropped < TRIM_SIZE, trimmed.dropped
            return taken * 1000

        cold = measure(self._converse(TRIM_SIZE, content))
        asked = self._converse(TRIM_SIZE, content)
        self.wait(asked.ask(QUESTION))
        return {"cold": cold, "warm": measure(asked)}


def _run(
    base_url: str, dialects: Sequence[str], keys: Sequence[str], questions: list[dict[str, Any]], rounds: int
) -> tuple[dict[tuple[str, str, str], list[dict[str, float]]], dict[tuple[str, str], str]]:
    """Ask every contestant every question, once per round, in rotating order."""
    answers: dict[tuple[str, str, str], list[dict[str, float]]] = {}
    failures: dict[tuple[str, str], str] = {}
    with ExitStack() as stack:
        processes: dict[tuple[str, str], Process] = {}
        for dialect in dialects:
            for key in keys:
                try:
                    process = Process("asides", "bench.conversations", key, dialect, base_url)
                except ContestantFailed as error:
                    failures[key, dialect] = str(error)
                else:
                    processes[key, dialect] = stack.enter_context(process)
        order = list(processes)
        for number in range(rounds):
            shift = number * len(order) // rounds
            for question in questions:
                label = f"{question['content']} {question.get('size', '')}"
                for key, dialect in order[shift:] + order[:shift]:
                    try:
                        answer = processes[key, dialect].ask(**question)
                    except ContestantFailed as error:
                        failures[key, dialect] = str(error)
                    else:
                        answers.setdefault((key, dialect, label), []).append(answer)
            progress(f"  round {number + 1} of {rounds}")
    return answers, failures


def conversations(base_url: str, dialects: Sequence[str], *, rounds: int, quick: bool) -> Table:
    sizes = QUICK_SIZES if quick else SIZES
    contents = CONTENTS[1:] if quick else CONTENTS
    questions: list[dict[str, Any]] = [
        {"do": "turns", "size": size, "content": content} for size in sizes for content in contents
    ]
    answers, failures = _run(base_url, dialects, KEYS[:2] if quick else KEYS, questions, rounds)
    rows: list[Row] = []
    for (key, dialect, label), found in answers.items():
        name, _, mode = key.rpartition(", ")
        content, _, size = label.partition(" ")
        bare = [answer["warm"] for answer in answers.get((KEYS[0] if mode == "sync" else KEYS[2], dialect, label), ())]
        cold, warm = ([answer[kind] for answer in found] for kind in ("cold", "warm"))
        complete = bare if len(bare) == len(warm) else None
        rows.append(
            {
                "dialect": dialect,
                "content": content,
                "size": int(size),
                "name": name,
                "mode": mode,
                "cold_ms": median(cold),
                "warm_ms": median(warm),
                "cold_times": ratio(cold, complete),
                "warm_times": ratio(warm, complete),
            }
        )
    rows.sort(key=lambda row: (dialects.index(row["dialect"]), row["content"], row["size"], row["mode"], row["name"]))
    rows += [{"name": f"{key}: failed: {error[:100]}", "dialect": d} for (key, d), error in failures.items()]
    columns = {
        "dialect": "dialect",
        "content": "content",
        "size": "messages",
        "name": "contestant",
        "mode": "mode",
        "cold_ms": "first turn, CPU ms",
        "cold_times": "÷ bare client",
        "warm_ms": "later turns, CPU ms",
        "warm_times": "÷ bare client",
    }
    note = "Bare client: msgspec encodes the same list of dicts, urllib3 or aiohttp posts it, a typed decode reads it."
    return Table("conversations", f"a turn of a conversation, {rounds} rounds", columns, rows, [note])


def trimming(base_url: str, dialects: Sequence[str], *, rounds: int, quick: bool) -> Table:
    contents = CONTENTS[1:] if quick else CONTENTS
    questions: list[dict[str, Any]] = [{"do": "trim", "content": content} for content in contents]
    answers, failures = _run(base_url, dialects, KEYS[1:2], questions, rounds)
    rows: list[Row] = [
        {
            "dialect": dialect,
            "content": label.strip(),
            "cold_ms": median(answer["cold"] for answer in found),
            "warm_ms": median(answer["warm"] for answer in found),
        }
        for (_, dialect, label), found in answers.items()
    ]
    rows += [{"content": f"failed: {error[:100]}", "dialect": dialect} for (_, dialect), error in failures.items()]
    columns = {
        "dialect": "dialect",
        "content": "content",
        "cold_ms": "never sent, CPU ms",
        "warm_ms": "after a turn, CPU ms",
    }
    title = f"trim_to half of {TRIM_SIZE:,} messages, {rounds} rounds"
    return Table("trimming", title, columns, rows)


def main() -> None:
    from bench.worker import serve

    key, dialect, base_url = sys.argv[1:4]
    serve(key, lambda: Talker(key, dialect, base_url))


if __name__ == "__main__":
    main()
