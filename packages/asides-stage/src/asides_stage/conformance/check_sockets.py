"""Checks over real sockets: the offline stage serves the dialect on loopback; both clients ask, whole and streamed.

Nothing is sent to the provider's own host.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import msgspec

from asides.aio import AsyncClient
from asides.client import Client
from asides.dialects.dialect import ServedRequest
from asides.options import Options
from asides.providers.provider import Provider
from asides.settings import Settings
from asides.values.errors import AsidesError, AuthError, BadRequest, TransportError
from asides.values.events import Event, ThoughtSealed
from asides.values.messages import Message, user
from asides.values.reply import Reply
from asides.values.usage import Usage
from asides_stage.conformance.case import ANSWER, CALLING, PLAIN, THOUGHT, Case, Sample
from asides_stage.conformance.check_next_turn import explain_refusal, follow_up, is_strict
from asides_stage.conformance.check_requests import TOOLS
from asides_stage.conformance.report import CheckSkipped, expect
from asides_stage.stage import Fail, Raw, Say, Scene, Stage

_KEY = "sk-conformance-0000"
_SECONDS = 20.0
LONG = Sample("a long answer", text=ANSWER * 3)
LAST = Sample("a last answer", text="Because.")
Value = TypeVar("Value")


class _Answers(msgspec.Struct, frozen=True):
    """The answers that one client received: the whole reply, the streamed reply and its events."""

    whole: Reply
    streamed: Reply
    events: list[Event]


def _options(case: Case, stage: Stage) -> Options:
    options = Options(
        base_url=stage.url, api_key=_KEY, retries=0, timeout=_SECONDS, on_conflict="adjust", max_tokens=8000
    )
    if case.rule.thinking != "never":
        options["thinking"] = "medium"
    return options


def _list_rows(case: Case, address: str | None) -> list[Provider]:
    """The row with the stage's address as its own, so that all of its facts hold there."""
    return [msgspec.structs.replace(case.row, base_url=address or "", own_hosts=())]


def _model(case: Case) -> str:
    return f"{case.row.name}:{case.model}"


class _Script:
    """Plays scenes in order and repeats the last; a sample is written in the requested form."""

    def __init__(self, case: Case, scenes: tuple[Sample | Scene, ...]) -> None:
        self._case = case
        self._scenes = list(scenes)

    def __call__(self, request: ServedRequest) -> Scene:
        scene = self._scenes.pop(0) if len(self._scenes) > 1 else self._scenes[0]
        if not isinstance(scene, Sample):
            return scene
        case = self._case
        if not case.has_own_thinking_field:
            return Say(events=tuple(scene.events(case.target)))
        writer = case.dialect.writer(model=case.model, stream=request.stream)
        return Raw(case.write_sample(scene, stream=request.stream), content_type=writer.content_type)


def _open_stage(case: Case, *scenes: Sample | Scene) -> Stage:
    if case.target.quirks.transport != "direct":
        raise CheckSkipped("the stage cannot serve the addresses of a cloud")
    key = None if case.target.quirks.auth == "nothing" else _KEY
    return Stage(_Script(case, scenes), key=key, dialect=case.dialect.name)


def _run_in_thread(work: Callable[[], Coroutine[Any, Any, Value]]) -> Value:
    """Run it in a new event loop, even if the caller is inside one."""
    with ThreadPoolExecutor(1, thread_name_prefix="asides-conformance") as thread:
        return thread.submit(lambda: asyncio.run(work())).result()


def sync_is_async(case: Case) -> None:
    """Over real sockets, whole and streamed, sync and async give the same requests, events and reply."""
    with _open_stage(case, PLAIN) as stage:
        options = _options(case, stage)
        sync = _ask_sync(case, options)
        async_ = _run_in_thread(lambda: _ask_async(case, options))
        bodies = [received.body for received in stage.requests]
    received = [sync.whole, sync.streamed, async_.whole, async_.streamed]
    replies = [_normalise(case, reply) for reply in received]
    expect(
        bodies[0] == bodies[2] and bodies[1] == bodies[3],
        expected="the same requests, sync and async",
        actual="different requests",
        to_do="let encode() depend only on the prompt and the target.",
    )
    expect(
        _without_seals(sync.events) == _without_seals(async_.events),
        expected="the same events, sync and async",
        actual=f"{len(sync.events)} and {len(async_.events)} events, or different ones",
        to_do="let a decoder depend only on its bytes.",
    )
    expect(
        all(reply == replies[0] for reply in replies),
        expected="the same reply, sync and async, whole and streamed",
        actual="different replies",
        to_do="see streamed_is_whole and any_chunking_is_the_same.",
    )
    expect(
        replies[0].text == ANSWER,
        expected="the answer that the server sent",
        actual=f"{len(replies[0].text)} characters, of {len(ANSWER)}",
        to_do="see thinking_is_filtered_from_the_answer.",
    )
    thought = received[0].thinking
    expect(
        thought.text == THOUGHT or (bool(thought) and thought.kind == "hidden"),
        expected="the thinking that the server sent, or its seals if it hides the text",
        actual="none" if not thought else f"{len(thought.text)} characters, of {len(THOUGHT)}",
        to_do="see thinking_is_extracted.",
    )


def _normalise(case: Case, reply: Reply) -> Reply:
    """Return the reply without its seals, since a server may seal each answer differently; and without counts if the
    row does not ask for them in a stream, since the stage then sends none. Other checks examine both.
    """
    parts = tuple(msgspec.structs.replace(part, seals=()) if part.seals else part for part in reply.parts)
    usage = reply.usage if case.target.quirks.stream_usage else Usage()
    return msgspec.structs.replace(reply, parts=parts, usage=usage)


def _without_seals(events: list[Event]) -> list[Event]:
    return [event for event in events if not isinstance(event, ThoughtSealed)]


def _ask_sync(case: Case, options: Options) -> _Answers:
    with Client(providers=_list_rows(case, options.get("base_url")), settings=Settings()) as client:
        whole = client.ask(_model(case), "What is it?", **options)
        with client.stream(_model(case), "What is it?", **options) as stream:
            events = list(stream)
            return _Answers(whole, stream.reply, events)


async def _ask_async(case: Case, options: Options) -> _Answers:
    async with AsyncClient(providers=_list_rows(case, options.get("base_url")), settings=Settings()) as client:
        whole = await client.ask(_model(case), "What is it?", **options)
        async with client.stream(_model(case), "What is it?", **options) as stream:
            events = [event async for event in stream]
            return _Answers(whole, stream.reply, events)


def a_server_accepts_the_next_turn(case: Case) -> None:
    """A strict server accepts every turn: a question, a call, its result, the answer, another question."""
    if not is_strict(case):
        raise CheckSkipped("the stage's rules for this dialect are those of stricter hosts")
    scenes = (CALLING, PLAIN, LAST)
    with (
        _open_stage(case, *scenes) as stage,
        Client(providers=_list_rows(case, stage.url), settings=Settings()) as client,
    ):
        options = _options(case, stage)
        options["tools"] = TOOLS if case.rule.tools is True else ()
        history: list[Message] = [user("What is it?")]
        reply = Reply()
        for number in range(len(scenes)):
            try:
                with client.stream(_model(case), history, **options) as stream:
                    reply = stream.reply
            except BadRequest as problem:
                raise explain_refusal(case, f"turn {number + 1} to be accepted", str(problem)) from problem
            message = reply.to_message()
            history += [*([] if message is None else [message]), *follow_up(reply)]
    expect(
        reply.text == LAST.text,
        expected="the answer of the last turn",
        actual=f"{len(reply.text)} characters",
        to_do="see thinking_is_filtered_from_the_answer.",
    )


def errors_carry_the_partial_reply(case: Case) -> None:
    """A wrong key is an AuthError; a stream that breaks off raises, with the thinking so far in `.partial`."""
    body = case.write_sample(LONG, stream=True)
    content_type = case.dialect.writer(model=case.model, stream=True).content_type
    cut = Raw(body, content_type=content_type, cut_after=len(body) * 3 // 4)
    with (
        _open_stage(case, Fail(status=401, message="no such key"), cut) as stage,
        Client(providers=_list_rows(case, stage.url), settings=Settings()) as client,
    ):
        options = _options(case, stage)
        refused = _catch_error(lambda: client.ask(_model(case), "What is it?", **options))
        expect(
            isinstance(refused, AuthError),
            expected="AuthError for status 401",
            actual=type(refused).__name__,
            to_do="see errors_are_typed.",
        )
        expect(
            _KEY not in f"{refused} {refused!r}",
            expected="no key in an error",
            actual="the error contains it",
            to_do="put nothing of the request into errors.",
        )
        broken = _catch_error(lambda: client.stream(_model(case), "What is it?", **options).reply)
    expect(
        isinstance(broken, TransportError),
        expected="a TransportError for a stream that breaks off",
        actual=type(broken).__name__,
        to_do="see a_cut_stream_is_never_silently_short.",
    )
    partial = None if broken is None else broken.partial
    expect(
        partial is not None and bool(partial.thinking) and not partial.complete,
        expected="the thinking so far in .partial",
        actual="none" if partial is None or not partial.thinking else "a reply that calls itself complete",
        to_do="emit deltas as they arrive; a failure keeps the events before it.",
    )


def _catch_error(work: Callable[[], object]) -> AsidesError | None:
    try:
        work()
    except AsidesError as problem:
        return problem
    return None
