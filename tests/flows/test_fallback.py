"""Several models in order, over sockets: one server for each provider, each with a key of its own."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import msgspec
import pytest

import asides
from asides.values.errors import AsidesError
from asides.values.reply import Reply
from asides_stage.stage import Fail, Garbage, Hang, Raw, Refuse, Say, Scene, Stage
from tests.decoding import sse

NAMES = ("north", "south", "west")
MODELS = ["north:n", "south:s", "west:w"]


class Servers(NamedTuple):
    """Some servers, and a row for each."""

    stages: list[Stage]
    rows: list[asides.Provider]

    def requests(self) -> list[int]:
        return [len(stage.requests) for stage in self.stages]

    def keys(self, place: int) -> set[str]:
        return {request.headers["authorization"] for request in self.stages[place].requests}


Open: TypeAlias = Callable[..., Servers]


@pytest.fixture
def servers(monkeypatch: pytest.MonkeyPatch) -> Iterator[Open]:
    with ExitStack() as stack:

        def open_servers(*scripts: Any) -> Servers:
            stages = [stack.enter_context(Stage(script)) for script in scripts]
            rows = []
            for name, stage in zip(NAMES, stages, strict=False):
                monkeypatch.setenv(f"{name.upper()}_KEY", f"key-of-{name}-0123456789")
                rows.append(
                    asides.Provider(
                        name=name,
                        dialect="openai_chat",
                        base_url=f"{stage.url}/v1",
                        key="required",
                        key_env=(f"{name.upper()}_KEY",),
                    )
                )
            return Servers(stages, rows)

        yield open_servers


class Outcome(NamedTuple):
    """What a caller saw."""

    reply: Reply | None = None
    error: AsidesError | None = None
    events: int = 0

    @property
    def whole(self) -> Reply:
        assert self.reply is not None, self.error
        return self.reply

    @property
    def raised(self) -> AsidesError:
        assert self.error is not None
        return self.error


Ask: TypeAlias = Callable[..., Outcome]


def no_retries(options: dict[str, Any]) -> dict[str, Any]:
    return {"retries": 0, **options}


def ask_sync(opened: Servers, model: Any, prompt: Any = "?", **options: Any) -> Outcome:
    with asides.Client(providers=opened.rows, **no_retries(options)) as client:
        try:
            return Outcome(client.ask(model, prompt))
        except AsidesError as error:
            return Outcome(None, error)


def ask_async(opened: Servers, model: Any, prompt: Any = "?", **options: Any) -> Outcome:
    async def run() -> Outcome:
        async with asides.AsyncClient(providers=opened.rows, **no_retries(options)) as client:
            try:
                return Outcome(await client.ask(model, prompt))
            except AsidesError as error:
                return Outcome(None, error)

    return asyncio.run(run())


def stream_sync(opened: Servers, model: Any, prompt: Any = "?", **options: Any) -> Outcome:
    count = 0
    with asides.Client(providers=opened.rows, **no_retries(options)) as client:
        try:
            with client.stream(model, prompt) as events:
                for _ in events:
                    count += 1
        except AsidesError as error:
            return Outcome(None, error, count)
        return Outcome(events.reply, None, count)


def stream_async(opened: Servers, model: Any, prompt: Any = "?", **options: Any) -> Outcome:
    async def run() -> Outcome:
        count = 0
        async with asides.AsyncClient(providers=opened.rows, **no_retries(options)) as client:
            try:
                async with client.stream(model, prompt) as events:
                    async for _ in events:
                        count += 1
            except AsidesError as error:
                return Outcome(None, error, count)
            return Outcome(events.reply, None, count)

    return asyncio.run(run())


both = pytest.mark.parametrize("ask", [ask_sync, ask_async])
streams = pytest.mark.parametrize("ask", [stream_sync, stream_async])
every = pytest.mark.parametrize("ask", [ask_sync, ask_async, stream_sync, stream_async])


@every
def test_the_next_model_answers_with_its_own_key_at_its_own_address(ask: Ask, servers: Open) -> None:
    opened = servers([Fail(status=503)], [Say(text="from the south")])
    reply = ask(opened, MODELS[:2]).whole
    assert reply.text == "from the south"
    (notice,) = reply.warnings
    assert (notice.code, notice.asked, notice.sent) == ("fell_back", "north:n", "south:s")
    assert notice.detail == "north:n failed with Overloaded (503)"
    assert opened.keys(0) == {"Bearer key-of-north-0123456789"}
    assert opened.keys(1) == {"Bearer key-of-south-0123456789"}
    assert [stage.requests[0].json["model"] for stage in opened.stages] == ["n", "s"]


@both
def test_the_first_model_that_answers_is_the_only_one_asked(ask: Ask, servers: Open) -> None:
    opened = servers([Say(text="from the north")], [Say(text="no")])
    reply = ask(opened, tuple(MODELS[:2])).whole
    assert (reply.text, reply.warnings, opened.requests()) == ("from the north", (), [1, 0])


FALLS_OVER: dict[str, tuple[Scene, str]] = {
    "overloaded": (Fail(status=529), "Overloaded (529)"),
    "timed out": (Fail(status=408), "Overloaded (408)"),
    "rate limited": (Fail(status=429), "RateLimited (429)"),
    "no credit": (Fail(status=402), "RateLimited (402)"),
    "wrong key": (Fail(status=401), "AuthError (401)"),
    "not allowed": (Fail(status=403), "AuthError (403)"),
    "model gone": (Fail(status=404), "NotFound (404)"),
    "too long": (Fail(status=400, message="maximum context length is 10 tokens"), "ContextTooLong (400)"),
    "filtered": (Fail(status=400, message="content_filter"), "ContentFiltered (400)"),
    "refused": (Fail(status=400, message="seed: not today"), "BadRequest (400)"),
    "hung up": (Refuse(), "ConnectionLost"),
    "silent": (Hang(), "IdleTimeout"),
    "a page": (Garbage(), "ProtocolError"),
    "an error in a good response": (Raw(body=sse({"error": {"message": "busy", "code": 503}})), "Overloaded (503)"),
}


@pytest.mark.parametrize("name", FALLS_OVER)
@every
def test_each_failure_of_one_model_lets_the_next_one_answer(ask: Ask, servers: Open, name: str) -> None:
    scene, told = FALLS_OVER[name]
    opened = servers(scene, [Say(text="here")])
    timeout = asides.Timeout(first_byte=0.3) if name == "silent" else None
    reply = ask(opened, MODELS[:2], timeout=timeout).whole
    assert (reply.text, [notice.detail for notice in reply.warnings]) == ("here", [f"north:n failed with {told}"])


@both
def test_each_model_gets_its_retries(ask: Ask, servers: Open) -> None:
    opened = servers(Fail(status=503, retry_after=0), [Fail(status=503, retry_after=0), Say(text="here")])
    reply = ask(opened, MODELS[:2], retries=1).whole
    assert (reply.text, opened.requests()) == ("here", [2, 2])


@streams
def test_no_other_model_is_asked_once_an_event_was_delivered(ask: Ask, servers: Open) -> None:
    opened = servers([Say(text="the first half and the second", cut_after=400)], [Say(text="no")])
    outcome = ask(opened, MODELS[:2])
    assert isinstance(outcome.raised, asides.ConnectionLost)
    assert outcome.events > 0
    assert outcome.raised.partial is not None
    assert (opened.requests(), outcome.raised.earlier) == ([1, 0], ())


@every
def test_when_all_fail_the_last_error_names_the_others(ask: Ask, servers: Open) -> None:
    opened = servers(Fail(status=429), Fail(status=401), Fail(status=503))
    error = ask(opened, MODELS).raised
    assert isinstance(error, asides.Overloaded)
    assert "west answered 503" in str(error)
    assert str(error).endswith("Before it: north:n failed with RateLimited (429); south:s failed with AuthError (401).")
    assert [type(other) for other in error.earlier] == [asides.RateLimited, asides.AuthError]
    assert "key-of" not in repr([*error.earlier, error, *(vars(other) for other in (*error.earlier, error))])


@both
def test_a_contradiction_with_any_model_is_raised_before_a_byte_is_sent(ask: Ask, servers: Open) -> None:
    opened = servers([Say(text="no")], [Say(text="no")])
    never = msgspec.structs.replace(opened.rows[1], models=(asides.ModelRule(models="s", thinking="never"),))
    opened = opened._replace(rows=[opened.rows[0], never])
    error = ask(opened, MODELS[:2], thinking="high").raised
    assert isinstance(error, asides.InvalidThinking)
    assert str(error).startswith("south:s: this model does not think")
    assert opened.requests() == [0, 0]
    adjusted = ask(opened, MODELS[:2], thinking="high", on_conflict="adjust").whole
    assert adjusted.text == "no"


@pytest.mark.parametrize(
    ("model", "error"),
    [
        (["north:n", "sowth:s"], asides.UnknownProvider),
        (["north:n", "bare"], asides.UnknownModel),
        ([], asides.UnknownModel),
        (["north:n", 7], asides.ConfigError),
    ],
)
@both
def test_a_wrong_name_anywhere_in_the_list_is_raised_at_once(
    ask: Ask, servers: Open, model: Any, error: type[Exception]
) -> None:
    opened = servers([Say(text="no")], [Say(text="no")])
    assert isinstance(ask(opened, model).raised, error)
    assert opened.requests() == [0, 0]


@both
def test_a_model_without_a_key_is_left_out_and_told(ask: Ask, servers: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = servers([Say(text="no")], [Say(text="here")], [Say(text="no")])
    # An address on this machine requires no key.
    far = [msgspec.structs.replace(row, base_url=f"https://{row.name}.invalid/v1") for row in opened.rows]
    monkeypatch.delenv("NORTH_KEY")
    reply = ask(opened._replace(rows=[far[0], *opened.rows[1:]]), MODELS).whole
    assert (reply.text, opened.requests()) == ("here", [0, 1, 0])
    assert [notice.detail for notice in reply.warnings] == ["north:n has no API key"]
    monkeypatch.delenv("SOUTH_KEY")
    monkeypatch.delenv("WEST_KEY")
    error = ask(opened._replace(rows=far), MODELS).raised
    assert isinstance(error, asides.MissingKey)
    assert [name in str(error) for name in ("NORTH_KEY", "SOUTH_KEY", "WEST_KEY")] == [True] * 3


@pytest.mark.parametrize("without", [("south",), ("south", "west"), ("north",), ("north", "west")])
@both
def test_the_error_names_the_models_that_were_not_asked(
    ask: Ask, servers: Open, monkeypatch: pytest.MonkeyPatch, without: tuple[str, ...]
) -> None:
    opened = servers(*([Fail(status=401, message="wrong key")] for _ in NAMES))
    rows = [
        msgspec.structs.replace(row, base_url=f"https://{row.name}.invalid/v1") if row.name in without else row
        for row in opened.rows
    ]
    for name in without:
        monkeypatch.delenv(f"{name.upper()}_KEY")
    error = ask(opened._replace(rows=rows), MODELS).raised
    assert isinstance(error, asides.AuthError)
    skipped = "; ".join(f"{name}:{name[0]} (no API key: set {name.upper()}_KEY)" for name in without)
    assert str(error).endswith(f"Not asked: {skipped}.")
    assert [type(other) for other in error.earlier[: len(without)]] == [asides.MissingKey] * len(without)
    assert len(error.earlier) == len(MODELS) - 1


@every
def test_a_key_and_an_address_of_the_call_stay_with_the_first_provider(ask: Ask, servers: Open) -> None:
    opened = servers(Fail(status=503), [Say(text="here")], Fail(status=503))
    first = opened.stages[2].url
    reply = ask(opened, ["north:n", "north:other", "south:s"], api_key="sk-for-the-north", base_url=f"{first}/v1").whole
    assert (reply.text, opened.requests()) == ("here", [0, 1, 2])
    assert opened.keys(2) == {"Bearer sk-for-the-north"}
    assert opened.keys(1) == {"Bearer key-of-south-0123456789"}


@both
def test_two_models_of_one_server_of_your_own(ask: Ask, servers: Open) -> None:
    opened = servers([Fail(status=404), Say(text="here")])
    url = f"{opened.stages[0].url}/v1"
    reply = ask(opened, ["openai-compatible:a", "openai-compatible:b"], base_url=url, api_key="sk-of-my-own").whole
    assert (reply.text, opened.keys(0)) == ("here", {"Bearer sk-of-my-own"})
    assert [request.json["model"] for request in opened.stages[0].requests] == ["a", "b"]


@both
def test_a_conversation_that_one_provider_stores_does_not_go_to_another(ask: Ask, servers: Open) -> None:
    opened = servers([Say(text="no")], [Say(text="no")])
    error = ask(opened, MODELS[:2], previous_response_id="resp_1").raised
    assert isinstance(error, asides.ConfigError)
    assert "previous_response_id= is known to north alone" in str(error)
    assert opened.requests() == [0, 0]


@both
def test_seals_go_back_to_their_origin_alone(ask: Ask, servers: Open) -> None:
    opened = servers([Say(thinking="secret plan", text="two"), Fail(status=503)], [Say(text="here")])
    north = msgspec.structs.replace(
        asides.find_provider("anthropic"), name="north", base_url=opened.stages[0].url, key_env=("NORTH_KEY",)
    )
    opened = opened._replace(rows=[north, opened.rows[1]])
    first = ask(opened, "north:claude-opus-4-5", "one", thinking=2048).whole
    (seal,) = first.seals
    history = [asides.user("one"), first, asides.user("three")]
    reply = ask(opened, ["north:claude-opus-4-5", "south:s"], history, thinking=2048).whole
    assert reply.text == "here"
    sent = [stage.requests[-1].body for stage in opened.stages]
    assert seal.value.encode() in sent[0]
    assert seal.value.encode() not in sent[1]
    assert b"secret plan" not in sent[1]


@both
def test_the_time_for_the_whole_call_counts_for_all_models(ask: Ask, servers: Open) -> None:
    opened = servers(Hang(), [Say(text="no")])
    error = ask(opened, MODELS[:2], timeout=asides.Timeout(total=0.4)).raised
    assert isinstance(error, asides.IdleTimeout)
    assert opened.requests() == [1, 0]


# --- the settings -----------------------------------------------------------------------------------------------------


def settings(**table: list[str]) -> asides.Settings:
    named = {name.replace("_", ":"): tuple(others) for name, others in table.items()}
    return asides.Settings(fallbacks=named)


@every
def test_the_settings_name_fallbacks_of_a_model(ask: Ask, servers: Open) -> None:
    opened = servers(Fail(status=503), [Say(text="here")])
    assert ask(opened, "north:n", settings=settings(north_n=["south:s"])).whole.text == "here"
    assert ask(opened, "NORTH/n", settings=settings(north_n=["south:s"])).whole.text == "here"
    assert isinstance(ask(opened, "north:other", settings=settings(north_n=["south:s"])).raised, asides.Overloaded)
    # A list of the call says it all.
    assert isinstance(ask(opened, ["north:n"], settings=settings(north_n=["south:s"])).raised, asides.Overloaded)
    # At another address it is another server.
    other = ask(opened, "north:n", settings=settings(north_n=["south:s"]), base_url=f"{opened.stages[0].url}/v1")
    assert isinstance(other.raised, asides.Overloaded)


@both
def test_a_fallback_of_the_settings_gets_the_nearest_request_that_it_allows(ask: Ask, servers: Open) -> None:
    opened = servers(Fail(status=503), [Say(text="here")])
    never = msgspec.structs.replace(opened.rows[1], models=(asides.ModelRule(models="s", thinking="never"),))
    opened = opened._replace(rows=[opened.rows[0], never])
    reply = ask(opened, "north:n", settings=settings(north_n=["south:s"]), thinking="high").whole
    assert [notice.code for notice in reply.warnings][-1] == "thinking_unsupported"


@both
def test_a_wrong_name_in_the_settings_is_named_with_its_place(ask: Ask, servers: Open) -> None:
    opened = servers([Say(text="here")])
    for name, other in (("north:n", "sowth:s"), ("nrth:n", "north:o"), ("north:n", "openai-compatible:m")):
        error = ask(opened, "north:n", settings=asides.Settings(fallbacks={name: (other,)})).raised
        assert isinstance(error, asides.ConfigError)
        assert str(error).startswith("[fallbacks] of the settings: ")
    # The address of another model is not set here: that is no mistake.
    elsewhere = asides.Settings(fallbacks={"openai-compatible:m": ("south:s",)})
    assert ask(opened, "north:n", settings=elsewhere).whole.text == "here"


def test_explain_shows_the_first_model_and_lists_the_others(servers: Open) -> None:
    opened = servers([Say(text="no")], [Say(text="no")])
    shown = asides.explain(MODELS[:2], "?", providers=opened.rows)
    assert (shown.target.model, shown.fallbacks) == ("n", ("south:s",))
    assert "If it fails, these are asked: south:s." in shown.to_text()
    assert opened.requests() == [0, 0]


# --- no model, no prompt ----------------------------------------------------------------------------------------------


@every
def test_the_model_of_the_settings_serves_a_call_without_one(ask: Ask, servers: Open) -> None:
    opened = servers(Say(text="here"))
    reply = ask(opened, None, settings=asides.Settings(model="north:n")).whole
    (notice,) = reply.warnings
    assert (reply.text, notice.code, notice.sent) == ("here", "default_model", "north:n")
    error = ask(opened, None, settings=asides.Settings()).raised
    assert isinstance(error, asides.UnknownModel)
    assert "ASIDES_MODEL" in str(error)


def test_the_model_of_the_settings_is_told_once(servers: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = servers(Say(text="here"))
    client = asides.Client(providers=opened.rows, settings=asides.Settings(model="north:n"))
    told = [[notice.code for notice in client.ask(prompt="?").warnings] for _ in range(3)]
    assert told == [["default_model"], [], []]
    chat = asides.Conversation(client=client)
    assert chat.ask("?").warnings == ()
    assert asides.Agent(client=client).run("?").output == "here"
    fresh = asides.Conversation(client=asides.Client(providers=opened.rows, settings=asides.Settings(model="north:n")))
    assert [[notice.code for notice in fresh.ask("?").warnings] for _ in range(2)] == [["default_model"], []]
    monkeypatch.setenv("ASIDES_MODEL", "openai-compatible:told-once")
    monkeypatch.setenv("OPENAI_COMPATIBLE_BASE_URL", "unused")

    async def ask() -> list[list[str]]:
        url = f"{opened.stages[0].url}/v1"
        replies = [await asides.aio.ask(prompt="?", base_url=url) for _ in range(2)]
        async with asides.aio.stream(prompt="?", base_url=url) as events:
            replies.append(await events.drain())
        return [[notice.code for notice in reply.warnings if notice.code == "default_model"] for reply in replies]

    assert asyncio.run(ask()) == [["default_model"], [], []]


@pytest.mark.parametrize("call", [asides.ask, asides.stream, asides.explain])
def test_a_lone_question_is_told_how_to_ask(call: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASIDES_MODEL", "ollama:qwen3")
    with pytest.raises(asides.ConfigError, match=r"the first argument is the model.*ask\(prompt=…\)") as caught:
        call("What is my secret?")
    assert "secret" not in str(caught.value)
    with pytest.raises(asides.ConfigError, match="there is no prompt"):
        call()


# --- conversations and agents -----------------------------------------------------------------------------------------


def test_a_conversation_asks_several_models(servers: Open) -> None:
    opened = servers(Fail(status=503), Say(text="here"))
    client = asides.Client(providers=opened.rows, retries=0)
    chat = asides.Conversation(client=client)
    assert chat.ask("one", model=MODELS[:2]).text == "here"
    with chat.stream("two", model=MODELS[:2]) as events:
        assert events.reply.text == "here"
    assert [message.text for message in chat.messages] == ["one", "here", "two", "here"]
    assert chat.model is None
    with pytest.raises(asides.ConfigError, match=r"model=\[…\]"):
        asides.Conversation(MODELS)  # type: ignore[arg-type]


def add(a: int, b: int) -> int:
    """Add."""
    return a + b


class Sum(msgspec.Struct):
    total: int


CALL = Say(tool_calls=(asides.ToolCall("call_1", "add", {"a": 1, "b": 2}),))


def test_a_run_goes_on_with_the_model_that_answered(servers: Open) -> None:
    opened = servers([Fail(status=503), Say(text="no")], [CALL, Say(text="3")])
    client = asides.Client(providers=opened.rows, retries=0)
    result = asides.Agent(MODELS[:2], tools=[add], client=client).run("1 + 2?")
    assert (result.output, opened.requests()) == ("3", [1, 2])
    assert [notice.code for notice in result.warnings] == ["fell_back"]
    assert opened.keys(1) == {"Bearer key-of-south-0123456789"}


def test_a_run_falls_back_in_the_middle_and_returns(servers: Open) -> None:
    opened = servers([CALL, Fail(status=503), Say(text='{"total": 3}')], [Fail(status=500)])

    async def run() -> tuple[Any, list[str]]:
        async with asides.AsyncClient(providers=opened.rows, retries=0) as client:
            agent = asides.AsyncAgent(MODELS[:2], tools=[add], output=Sum, client=client)
            with pytest.raises(asides.Overloaded) as caught:
                await agent.run("1 + 2?")
            assert [type(other) for other in caught.value.earlier] == [asides.Overloaded]
            result = caught.value.result
            assert result is not None
            again = await agent.run(result.messages)
            return again.output, [notice.code for notice in again.warnings]

    output, codes = asyncio.run(run())
    assert (output, opened.requests()) == (Sum(3), [3, 1])
    assert "fell_back" not in codes


def test_an_agent_takes_the_model_of_its_conversation(servers: Open) -> None:
    opened = servers(Say(text="here"))
    client = asides.Client(providers=opened.rows)
    chat = asides.Conversation("north:n", client=client)
    agent = asides.Agent(tools=[add], client=client)
    assert agent.run("?", conversation=chat).output == "here"
    assert agent.send("?", conversation=chat).output == "here"
    with pytest.raises(asides.UnknownModel, match="no model was named"):
        agent.run("?")


def test_a_model_is_asked_once_whatever_it_is_called(
    servers: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "asides.toml").write_text(
        '[aliases]\nfast = "north:n"\n[fallbacks]\nfast = ["north:n", "fast", "south:s"]\n', encoding="utf-8"
    )
    monkeypatch.setenv("ASIDES_CONFIG", str(tmp_path / "asides.toml"))
    for model in ("fast", "north:n", ["north:n", "fast", "north:n", "south:s"]):
        opened = servers(Fail(status=503), Say(text="here"))
        reply = ask_sync(opened, model).whole
        assert (reply.text, opened.requests()) == ("here", [1, 1])
        assert [notice.code for notice in reply.warnings] == ["fell_back"]


@every
def test_the_time_counts_from_the_start_of_the_whole_call(ask: Ask, servers: Open) -> None:
    """Also that of a model that failed, its retries and the waits between them."""
    opened = servers(Fail(status=503, retry_after=0.2), [Say(text="here")])
    timing = ask(opened, MODELS[:2], retries=1).whole.timing
    assert timing is not None
    assert timing.first_event is not None
    assert timing.first_word is not None
    assert timing.total is not None
    assert 0.2 <= timing.first_event <= timing.first_word <= timing.total < 5


@pytest.mark.parametrize("mode", ["native", "react"])
def test_the_time_of_a_step_counts_from_its_start(servers: Open, mode: Any) -> None:
    opened = servers(Fail(status=503, retry_after=0.2), [Say(text="Final Answer: here")])
    with asides.Client(providers=opened.rows, retries=1) as client:
        result = asides.Agent(MODELS[:2], mode=mode, client=client).run("?")
    timing = result.timing
    assert timing is not None
    assert timing.first_word is not None
    assert timing.total is not None
    assert 0.2 <= timing.first_word <= timing.total < 5


@pytest.mark.parametrize("model", [MODELS[0], MODELS[:2], None], ids=["one", "several", "default"])
@every
def test_files_need_no_words(ask: Ask, servers: Open, model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASIDES_MODEL", MODELS[0])
    opened = servers(Say(text="a picture"), Say(text="no"))
    png = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"
    assert ask(opened, model, None, files=[png]).whole.text == "a picture"
    (message,) = opened.stages[0].requests[0].json["messages"]
    assert [part["type"] for part in message["content"]] == ["image_url"]
    assert "there is no prompt" in str(ask(opened, model, None, files=[]).raised)


# --- the law ----------------------------------------------------------------------------------------------------------

_SCENES: list[Scene] = [
    Say(text="here", id="chatcmpl-1", thinking="so"),
    Say(text="the first half and the second", id="chatcmpl-1", cut_after=400),
    Fail(status=503, retry_after=0),
    Fail(status=429, retry_after=0),
    Fail(status=401),
    Fail(status=400, message="no"),
    Refuse(),
    Garbage(),
]


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("pair", [(ask_sync, ask_async), (stream_sync, stream_async)], ids=["ask", "stream"])
def test_sync_is_async_whatever_the_servers_do(pair: tuple[Ask, Ask], servers: Open, seed: int) -> None:
    dice = random.Random(seed)
    scripts = [[dice.choice(_SCENES) for _ in range(dice.randint(1, 3))] for _ in range(3)]
    retries = dice.randint(0, 2)

    def run(ask: Ask) -> tuple[Any, ...]:
        opened = servers(*scripts)
        outcome = ask(opened, MODELS, retries=retries)
        reply, error = outcome.reply, outcome.error
        return (
            None if reply is None else (reply.text, reply.thinking and reply.thinking.text, reply.warnings),
            None if error is None else (type(error), [type(other) for other in error.earlier], error.partial is None),
            opened.requests(),
        )

    assert run(pair[0]) == run(pair[1])
