"""`ChatAsides` as LangChain's users use it: on the strict stage, over real sockets."""

from __future__ import annotations

import asyncio
import copy
import json
import pickle
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import pydantic
import pytest

pytest.importorskip("langchain_core")

from langchain_core.caches import InMemoryCache
from langchain_core.callbacks import AsyncCallbackHandler, BaseCallbackHandler
from langchain_core.language_models import LanguageModelInput
from langchain_core.load import dumps, loads
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    messages_from_dict,
    messages_to_dict,
)
from langchain_core.output_parsers import StrOutputParser
from langchain_core.runnables import Runnable

import asides
from asides.dialects.dialect import ServedRequest
from asides.langchain import ChatAsides
from asides.options import OPTIONS
from asides.values.parts import ToolCall
from asides_stage import Fail, OpenStage, Say, Stage
from tests.integrations.clients.langchain_samples import CLAUDE, KEY, add_up, open_model, weather
from tests.loopback import ReceivedRequest, serving

MODELS = [
    CLAUDE,
    "openai-responses:gpt-5.2",
    "gemini:gemini-3-pro-preview",
    "deepseek:deepseek-reasoner",
    "openrouter:anthropic/claude-opus-4.5",
    "mistral:magistral-medium-latest",
    "moonshot:kimi-k2-thinking",
    "ollama:qwen3",
    "bedrock:us.anthropic.claude-sonnet-4-5-20250929-v1:0",
    "cohere:command-a-reasoning-08-2025",
]
QUESTION = "What is 23 * 47?"

Bound = Runnable[LanguageModelInput, AIMessage]


# --- five steps with tools --------------------------------------------------------------------------------------------


def five_steps(request: ServedRequest) -> Say:
    """Five thoughts and calls, then an answer."""
    done = sum(message.role == "tool" for message in request.prompt.messages)
    if done == 5:
        return Say(thinking="All is known.", text="It is sunny everywhere.")
    call = ToolCall(f"abcdefgh{done}", "weather", {"city": f"City {done}"})
    return Say(thinking=f"Step {done} is next.", text="" if done % 2 else f"I ask {done}.", tool_calls=(call,))


def invoke(bound: Bound, history: list[BaseMessage]) -> AIMessage:
    return bound.invoke(history)


def stream(bound: Bound, history: list[BaseMessage]) -> AIMessage:
    return add_up(list(bound.stream(history)))


def ainvoke(bound: Bound, history: list[BaseMessage]) -> AIMessage:
    return asyncio.run(bound.ainvoke(history))


def astream(bound: Bound, history: list[BaseMessage]) -> AIMessage:
    async def collect() -> list[BaseMessage]:
        return [piece async for piece in bound.astream(history)]

    return add_up(asyncio.run(collect()))


def stream_events(bound: Any, history: list[BaseMessage]) -> AIMessage:
    events = bound.stream_events(history, version="v3")
    message: AIMessage = events.output
    return message


Carry = Callable[[list[BaseMessage]], list[BaseMessage]]
CARRIED: dict[str, Carry] = {
    "as they are": list,
    "saved": lambda history: messages_from_dict(json.loads(json.dumps(messages_to_dict(history)))),
    "dumped": lambda history: loads(dumps(history), allowed_objects="messages"),
    "blocks only": lambda history: [
        AIMessage(content_blocks=message.content_blocks) if isinstance(message, AIMessage) else message
        for message in history
    ],
}
STRIPPED: dict[str, Carry] = {
    "text and calls only": lambda history: [
        AIMessage(message.text, tool_calls=message.tool_calls) if isinstance(message, AIMessage) else message
        for message in history
    ],
    "no extras": lambda history: [
        AIMessage(content=[{**block, "extras": {}} for block in message.content_blocks])
        if isinstance(message, AIMessage)
        else message
        for message in history
    ],
}
CASES = [
    *((model, invoke, carry, None) for model in MODELS for carry in CARRIED),
    *((model, way, "as they are", None) for model in MODELS for way in (stream, ainvoke, astream, stream_events)),
    *((model, way, "as they are", "v1") for model in MODELS for way in (invoke, stream)),
]


def run_agent(bound: Bound, way: Callable[[Bound, list[BaseMessage]], AIMessage], carry: Carry) -> list[AIMessage]:
    history: list[BaseMessage] = [HumanMessage("How is the weather?")]
    said: list[AIMessage] = []
    while not said or said[-1].tool_calls:
        said.append(way(bound, carry(history)))
        history += [said[-1], *(weather.invoke({**call}) for call in said[-1].tool_calls)]
    return said


@pytest.mark.filterwarnings("ignore::langchain_core._api.beta_decorator.LangChainBetaWarning")
@pytest.mark.parametrize(("model", "way", "carry", "version"), CASES)
def test_an_agent_thinks_and_calls_for_five_steps(
    model: str, way: Any, carry: str, version: str | None, stage: OpenStage
) -> None:
    opened = stage(five_steps)
    stage.expect_no_refusals()
    bound = open_model(opened, model, output_version=version).bind_tools([weather])
    said = run_agent(bound, way, CARRIED[carry])
    assert [message.text for message in said] == ["I ask 0.", "", "I ask 2.", "", "I ask 4.", "It is sunny everywhere."]
    for step, message in enumerate(said):
        blocks: list[Any] = message.content_blocks
        thinking = "".join(block["reasoning"] for block in blocks if block["type"] == "reasoning")
        assert thinking == ("All is known." if step == 5 else f"Step {step} is next.")
    # What the provider wants back of the five thoughts is in the last request: their text, or a token for each.
    kept = opened.requests[-1].body.count(b"is next.") or opened.requests[-1].body.count(b'"thoughtSignature"')
    assert kept == 5


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("carry", STRIPPED)
def test_an_agent_whose_messages_lost_all_they_carried_goes_on(model: str, carry: str, stage: OpenStage) -> None:
    opened = stage(five_steps)
    stage.expect_no_refusals()
    said = run_agent(open_model(opened, model).bind_tools([weather]), invoke, STRIPPED[carry])
    assert said[-1].text == "It is sunny everywhere."


def test_a_conversation_changes_its_model_and_comes_back(stage: OpenStage) -> None:
    opened = stage()
    stage.expect_no_refusals()
    history: list[BaseMessage] = []
    for model in (CLAUDE, "deepseek:deepseek-reasoner", CLAUDE, "openai-responses:gpt-5.2", CLAUDE):
        history += [HumanMessage(QUESTION)]
        history += [open_model(opened, model).invoke(history)]
    sent = json.loads(opened.requests[-1].body)["messages"]
    thoughts = [block["type"] for message in sent for block in message["content"] if isinstance(block, dict)]
    # Claude gets its own two thoughts back, and no other's.
    assert thoughts.count("thinking") == 2


# --- one call ---------------------------------------------------------------------------------------------------------


async def collect(pieces: AsyncIterator[BaseMessage]) -> list[BaseMessage]:
    return [piece async for piece in pieces]


@pytest.mark.parametrize("model", MODELS)
async def test_every_way_gives_the_same_message(model: str, stage: OpenStage) -> None:
    llm = open_model(stage(), model)
    said = [
        llm.invoke(QUESTION),
        await llm.ainvoke(QUESTION),
        add_up(list(llm.stream(QUESTION))),
        add_up(await collect(llm.astream(QUESTION))),
        *llm.batch([QUESTION, QUESTION]),
        *await llm.abatch([QUESTION]),
    ]
    for message in said:
        assert message.content == message.text == "23 × 47 = 1081"
        shown: list[Any] = message.content_blocks
        assert [block["type"] for block in shown][:2] == ["reasoning", "text"]
        assert "920 + 161 = 1081" in shown[0]["reasoning"]
        # Mistral's streams report no tokens on the stage.
        assert message.usage_metadata == said[0].usage_metadata or "mistral" in model
        assert {**message.response_metadata, "id": ""} == {**said[0].response_metadata, "id": ""}


def test_a_chain_gets_the_answer_and_no_thinking(stage: OpenStage) -> None:
    chain = open_model(stage()) | StrOutputParser()
    assert chain.invoke(QUESTION) == "".join(chain.stream(QUESTION)) == "23 × 47 = 1081"


def test_pieces_have_text_or_blocks_and_the_last_one_the_figures(stage: OpenStage) -> None:
    opened = stage(Say(thinking="Hmm, so.", text="A B.", piece=4))
    pieces = list(open_model(opened).stream("?"))
    texts = [piece.content for piece in pieces]
    assert [text for text in texts if text] == ["A B."]
    blocks: list[Any] = [block for piece in pieces for block in piece.content_blocks]
    assert [block["reasoning"] for block in blocks if block.get("reasoning")] == ["Hmm,", " so."]
    assert [piece.chunk_position for piece in pieces][-2:] == [None, "last"]
    assert [piece.usage_metadata is None for piece in pieces] == [True] * (len(pieces) - 1) + [False]


class Tokens(BaseCallbackHandler):
    def __init__(self) -> None:
        self.tokens: list[Any] = []
        self.errors: list[BaseException] = []
        self.started: list[Any] = []

    def on_chat_model_start(self, serialized: dict[str, Any], messages: Any, **kwargs: Any) -> None:
        self.started.append((serialized, kwargs))

    def on_llm_new_token(self, token: Any, **_: Any) -> None:
        self.tokens.append(token)

    def on_llm_error(self, error: BaseException, **_: Any) -> None:
        self.errors.append(error)


class AsyncTokens(AsyncCallbackHandler):
    def __init__(self) -> None:
        self.tokens: list[Any] = []

    async def on_llm_new_token(self, token: Any, *, run_id: UUID, **_: Any) -> None:
        self.tokens.append(token)


async def test_callbacks_get_text_and_never_thinking(stage: OpenStage) -> None:
    llm = open_model(stage(Say(thinking="CANARY " * 9, text="A B C D E.", piece=4)))
    heard, awaited = Tokens(), AsyncTokens()
    list(llm.stream("?", config={"callbacks": [heard]}))
    await collect(llm.astream("?", config={"callbacks": [awaited]}))
    for tokens in (heard.tokens, awaited.tokens):
        assert "".join(tokens) == "A B C D E."
        assert len([token for token in tokens if token]) == 3


def test_nothing_shows_the_key(stage: OpenStage) -> None:
    llm = open_model(stage(), system="You are CANARY.")
    heard = Tokens()
    llm.invoke("?", config={"callbacks": [heard]})
    shown = [repr(llm), str(llm), dumps(llm), str(llm.model_dump()), llm.model_dump_json(), str(llm.asdict())]
    assert not any(KEY in text for text in [*shown, str(heard.started)])
    assert "CANARY" not in repr(llm)
    with pytest.raises(pydantic.ValidationError) as caught:
        open_model(stage(), temperature="hot")
    assert KEY not in str(caught.value)


@pytest.mark.filterwarnings("ignore::langchain_core._api.beta_decorator.LangChainBetaWarning")
def test_a_model_can_be_saved_without_its_key(stage: OpenStage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    llm = open_model(stage(), top_k=None, min_p=0.5, max_tokens=9000, timeout=asides.Timeout(idle=5.0))
    saved = dumps(llm)
    again = loads(saved, allowed_objects=[ChatAsides], valid_namespaces=["asides"], secrets_from_env=True)
    assert (again.asdict(), again.api_key) == (llm.asdict(), llm.api_key)
    assert again.invoke(QUESTION).content == "23 × 47 = 1081"


@pytest.mark.parametrize("copied", [pickle.dumps, copy.deepcopy, lambda llm: llm.model_copy(deep=True)])
async def test_a_model_that_was_used_can_be_copied(copied: Callable[[Any], Any], stage: OpenStage) -> None:
    row = asides.Provider(name="mine", base_url=stage().url, key_env=())
    llm = ChatAsides("mine:m", providers=[row], api_key=KEY)
    assert llm.invoke(QUESTION).content == (await llm.ainvoke(QUESTION)).content == "23 × 47 = 1081"
    made = copied(llm)
    again = pickle.loads(made) if isinstance(made, bytes) else made
    assert again.invoke(QUESTION).content == (await again.ainvoke(QUESTION)).content == "23 × 47 = 1081"


def test_a_cached_message_is_the_same_and_goes_back(stage: OpenStage) -> None:
    opened = stage()
    stage.expect_no_refusals()
    llm = open_model(opened, cache=InMemoryCache())
    first, again = llm.invoke(QUESTION), llm.invoke(QUESTION)
    assert len(opened.requests) == 1
    assert first.content_blocks == again.content_blocks
    llm.invoke([HumanMessage(QUESTION), again, HumanMessage("And 6 * 7?")])
    assert "thinking" in {block["type"] for block in read_body(opened)["messages"][1]["content"]}


@pytest.mark.parametrize("nothing", ["", [], [("system", "Be brief.")], [HumanMessage(content=[])]])
def test_nothing_is_never_sent(nothing: Any, stage: OpenStage) -> None:
    opened = stage()
    with pytest.raises(asides.ConfigError, match="no message has content"):
        open_model(opened).invoke(nothing)
    assert opened.requests == []


# --- options ----------------------------------------------------------------------------------------------------------


def read_body(stage: Stage) -> Any:
    return json.loads(stage.requests[-1].body)


def test_options_reach_the_request(stage: OpenStage) -> None:
    opened = stage()
    llm = open_model(
        opened,
        "openai-chat:gpt-4.1",
        thinking=None,
        temperature=0.5,
        max_tokens=50,
        stop=["END"],
        seed=7,
        presence_penalty=0.25,
        request_metadata={"team": "a"},
        extra={"prediction": {"type": "content", "content": "x"}},
    )
    llm.invoke("hi")
    body = read_body(opened)
    assert (body["temperature"], body["stop"], body["seed"], body["presence_penalty"]) == (0.5, ["END"], 7, 0.25)
    assert (body["metadata"], body["prediction"]["content"]) == ({"team": "a"}, "x")
    llm.bind(temperature=0.75, extra={"service_tier": "flex"}).invoke("hi", stop=["NOW"], max_tokens=60)
    body = read_body(opened)
    assert (body["temperature"], body["stop"], body["service_tier"]) == (0.75, ["NOW"], "flex")
    assert body["prediction"]["content"] == "x"
    assert 60 in (body.get("max_tokens"), body.get("max_completion_tokens"))


def test_thinking_of_a_call_replaces_that_of_the_model_under_any_name(stage: OpenStage) -> None:
    opened = stage()
    open_model(opened, "openai-responses:gpt-5.2", thinking="high").invoke("hi", reasoning_effort="low")
    assert read_body(opened)["reasoning"]["effort"] == "low"


def test_the_names_of_other_chat_models_are_known() -> None:
    llm = ChatAsides(model_name=CLAUDE, max_retries=5, request_timeout=9, stop_sequences=["x"])
    assert (llm.model, llm.retries, llm.timeout, llm.stop) == (CLAUDE, 5, 9, ["x"])
    with pytest.raises(asides.ConfigError, match="retries and max_retries are the same option"):
        ChatAsides(CLAUDE, retries=1, max_retries=2)


@pytest.mark.parametrize("name", sorted(OPTIONS - {"cache", "metadata"}))
def test_every_option_of_ask_is_known(name: str) -> None:
    if name in ("files", "output", "stream", "tool_choice", "tools"):
        with pytest.raises(TypeError, match=f"{name} is an option of one call"):
            ChatAsides(CLAUDE, **{name: None})
    else:
        assert name in {*ChatAsides.model_fields, *ChatAsides(CLAUDE, **{name: None}).options}


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"temprature": 1}, "did you mean temperature"),
        ({"reasoning_budget": 1}, "did you mean thinking"),
        ({"tools": [weather]}, "Use bind_tools"),
        ({"output": dict}, "Use with_structured_output"),
    ],
)
def test_a_name_that_is_no_option_is_told(options: dict[str, Any], told: str) -> None:
    with pytest.raises(TypeError, match=told):
        ChatAsides(CLAUDE, **options)


def test_a_wrong_value_is_told_at_once() -> None:
    with pytest.raises(asides.ConfigError, match="on_conflict is not valid"):
        ChatAsides(CLAUDE, on_conflict="perhaps")


def test_a_bare_name_is_another_model_of_the_provider(stage: OpenStage) -> None:
    opened = stage()
    open_model(opened).invoke("hi", model="claude-sonnet-4-5")
    assert read_body(opened)["model"] == "claude-sonnet-4-5"
    open_model(opened).invoke("hi", model="deepseek:deepseek-reasoner")
    assert read_body(opened)["model"] == "deepseek-reasoner"
    llm = open_model(opened, "bedrock:a.b-v1:0", thinking=None)
    assert llm._get_ls_params(model="us.amazon.nova-lite-v1:0").get("ls_model_name") == "us.amazon.nova-lite-v1:0"


def test_the_next_model_is_asked_when_one_fails(stage: OpenStage) -> None:
    opened = stage([Fail(status=400), Say(text="hi")])
    llm = open_model(opened, [CLAUDE, "anthropic:claude-sonnet-4-5"], retries=0)
    assert llm.invoke("hi").content == "hi"
    assert llm._get_ls_params().get("ls_model_name") == "claude-opus-5-5"


def test_langsmith_is_told_the_provider_and_the_model() -> None:
    params = ChatAsides(CLAUDE, temperature=1, max_tokens=9, stop=["x"])._get_ls_params()
    assert params == {
        "ls_provider": "anthropic",
        "ls_model_name": "claude-opus-5-5",
        "ls_model_type": "chat",
        "ls_temperature": 1,
        "ls_max_tokens": 9,
        "ls_stop": ["x"],
    }


async def test_clients_and_rows_of_yours_are_used(stage: OpenStage) -> None:
    url = stage().url
    row = asides.Provider(name="mine", base_url=url, key_env=())
    options: dict[str, Any] = {"api_key": KEY, "thinking": None}
    assert ChatAsides("mine:m", providers=[row], **options).invoke(QUESTION).content == "23 × 47 = 1081"
    message = await ChatAsides("mine:m", providers=[row], **options).ainvoke(QUESTION)
    assert message.content == "23 × 47 = 1081"
    with asides.Client(providers=[row]) as client:
        llm = ChatAsides("mine:m", client=client, **options)
        assert llm.invoke(QUESTION).content == (await llm.ainvoke(QUESTION)).content == "23 × 47 = 1081"
        assert add_up(await collect(llm.astream(QUESTION))).content == "23 × 47 = 1081"
    async with asides.AsyncClient(providers=[row]) as async_client:
        llm = ChatAsides("mine:m", async_client=async_client, **options)
        assert (await llm.ainvoke(QUESTION)).content == "23 × 47 = 1081"
        with pytest.raises(asides.ConfigError, match="has an async_client only"):
            llm.invoke(QUESTION)


@pytest.mark.parametrize("setting", [True, "tool_calling"])
def test_streaming_can_be_disabled(setting: Any, stage: OpenStage) -> None:
    opened = stage()
    bound = open_model(opened, disable_streaming=setting).bind_tools([weather])
    assert len(list(bound.stream("How is the weather in Rome?"))) == 1
    assert read_body(opened).get("stream") in (None, False)


def test_streaming_makes_invoke_stream(stage: OpenStage) -> None:
    opened = stage()
    assert open_model(opened, streaming=True).invoke(QUESTION).content == "23 × 47 = 1081"
    assert read_body(opened)["stream"] is True


def test_tokens_are_estimated() -> None:
    assert ChatAsides(CLAUDE).get_num_tokens("12345678 ") == 3
    assert ChatAsides(CLAUDE).get_num_tokens_from_messages([HumanMessage("x" * 40)]) > 9
    assert ChatAsides(CLAUDE, custom_get_token_ids=lambda text: list(range(len(text)))).get_num_tokens("abc") == 3


# --- errors -----------------------------------------------------------------------------------------------------------


async def test_errors_are_ours(stage: OpenStage) -> None:
    llm = open_model(stage(Fail(status=401)), retries=0)
    heard = Tokens()
    with pytest.raises(asides.AuthError):
        llm.invoke("?", config={"callbacks": [heard]})
    with pytest.raises(asides.AuthError):
        await llm.ainvoke("?")
    with pytest.raises(asides.AuthError):
        list(llm.stream("?"))
    with pytest.raises(asides.AuthError):
        await collect(llm.astream("?"))
    assert isinstance(heard.errors[0], asides.AuthError)
    fallback = llm.with_fallbacks([open_model(stage(Say(text="still here")))])
    assert fallback.invoke("?").content == "still here"


def test_a_stream_that_breaks_raises_with_what_had_come(stage: OpenStage) -> None:
    opened = stage(Say(thinking="Hm.", text="Half of it " * 50, cut_after=900))
    got: list[Any] = []
    with pytest.raises(asides.ConnectionLost) as caught:
        got.extend(piece.content for piece in open_model(opened, retries=0).stream("?"))
    assert caught.value.partial is not None
    assert "".join(got) == caught.value.partial.text


def test_a_stream_that_is_left_closes_its_connection() -> None:
    ended: list[bool] = []

    def answer(_: ReceivedRequest, connection: Any) -> bool:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
        connection.sendall(b'data: {"choices": [{"index": 0, "delta": {"content": "half"}}]}\n\n')
        ended.append(connection.recv(1) == b"")
        return False

    with serving(answer) as server:
        llm = ChatAsides("openai-compatible:m", base_url=server.url, api_key=KEY)
        pieces: Any = llm.stream("?")
        assert next(pieces).content == "half"
        pieces.close()
    assert ended == [True]


def test_without_langchain_core_the_error_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "langchain_core.py").write_text("raise ModuleNotFoundError('no', name='langchain_core')")
    code = "import asides\ntry:\n    import asides.langchain\nexcept ImportError as problem:\n    print(problem)"
    source = str(Path(asides.__file__).parent.parent)
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": f"{tmp_path}:{source}"}, capture_output=True, text=True, check=True, timeout=30,
    )  # fmt: skip
    assert done.stdout == (
        "asides.langchain needs langchain-core, which is not installed. Run pip install 'asides[langchain]', or pip "
        "install langchain-core.\n"
    )


def test_importing_asides_loads_nothing_of_langchain() -> None:
    code = "import sys, asides; asides.Client(); print([name for name in sys.modules if 'langchain' in name])"
    source = str(Path(asides.__file__).parent.parent)
    done = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": source}, capture_output=True, text=True, check=True, timeout=30
    )
    assert done.stdout == "[]\n"
