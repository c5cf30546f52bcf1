"""Google's own SDK against the stage, over real sockets: thoughts apart, tool loops with signatures, errors, counts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

import pytest

from asides.values.messages import OutputSchema
from asides.values.model_info import ModelInfo, ThinkingInfo
from asides.values.parts import ToolCall, ToolResult
from asides_stage import Fail, OpenStage, Say, Stage

pytest.importorskip("google.genai")

from google import genai
from google.genai import errors, types

# The SDK's own class for aiohttp, which aiohttp discourages.
pytestmark = pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession:DeprecationWarning")

MODEL = "gemini-3-pro-preview"
SHOWN = types.GenerateContentConfig(thinking_config=types.ThinkingConfig(include_thoughts=True))
Responses = list[types.GenerateContentResponse]


def connect(stage: Stage) -> genai.Client:
    address = stage.url.removesuffix("/v1")
    return genai.Client(api_key="any", http_options=types.HttpOptions(base_url=address))


async def _collect(client: genai.Client, question: str, config: types.GenerateContentConfig) -> Responses:
    async with client.aio as awaited:
        stream = await awaited.models.generate_content_stream(model=MODEL, contents=question, config=config)
        return [chunk async for chunk in stream]


async def _ask(client: genai.Client, question: str, config: types.GenerateContentConfig) -> Responses:
    async with client.aio as awaited:
        return [await awaited.models.generate_content(model=MODEL, contents=question, config=config)]


# Each asks one question and returns the responses: one, or the chunks of a stream.
Asking = Callable[[genai.Client, str, types.GenerateContentConfig], Responses]
WAYS: dict[str, Asking] = {
    "whole": lambda client, question, config: [
        client.models.generate_content(model=MODEL, contents=question, config=config)
    ],
    "streamed": lambda client, question, config: list(
        client.models.generate_content_stream(model=MODEL, contents=question, config=config)
    ),
    "awaited": lambda client, question, config: asyncio.run(_ask(client, question, config)),
    "awaited stream": lambda client, question, config: asyncio.run(_collect(client, question, config)),
}


def list_parts(responses: Iterable[types.GenerateContentResponse]) -> list[types.Part]:
    return [part for response in responses for part in response.parts or []]


def join_texts(parts: Iterable[types.Part], *, thought: bool) -> str:
    return "".join(part.text or "" for part in parts if bool(part.thought) == thought)


@pytest.mark.parametrize("way", WAYS)
def test_thoughts_are_apart_from_the_answer(stage: OpenStage, way: str) -> None:
    opened = stage(Say(thinking="Six times seven, by steps.", text="It is forty-two.", piece=5))
    responses = WAYS[way](connect(opened), "What is 6 * 7?", SHOWN)
    parts = list_parts(responses)
    assert join_texts(parts, thought=True) == "Six times seven, by steps."
    assert join_texts(parts, thought=False) == "It is forty-two."
    usage = responses[-1].usage_metadata
    assert usage is not None
    assert (usage.prompt_token_count, usage.candidates_token_count, usage.thoughts_token_count) == (5, 3, 5)
    assert (responses[-1].candidates or [])[0].finish_reason == types.FinishReason.STOP
    assert {response.model_version for response in responses} == {MODEL}


def test_a_whole_reply_has_a_part_for_each_run_of_text(stage: OpenStage) -> None:
    opened = stage(Say(thinking="Six times seven.", text="It is forty-two.", piece=2))
    (response,) = WAYS["whole"](connect(opened), "What is 6 * 7?", SHOWN)
    texts = [(part.text, bool(part.thought)) for part in response.parts or []]
    assert texts == [("Six times seven.", True), ("It is forty-two.", False), ("", False)]
    assert response.text == "It is forty-two."


def test_every_reply_has_an_id_of_its_own(stage: OpenStage) -> None:
    client = connect(stage(Say(text="fine")))
    replies = [WAYS[way](client, "?", SHOWN) for way in ("whole", "whole", "streamed", "streamed")]
    ids = [{response.response_id for response in responses} for responses in replies]
    assert [len(found) for found in ids] == [1, 1, 1, 1]
    assert len(set.union(*ids)) == 4


# --- tool loops -------------------------------------------------------------------------------------------------------


def look(at: str) -> str:
    """Look at something."""
    return f"{at} is fine"


TOOLS = types.GenerateContentConfig(
    tools=[look], thinking_config=types.ThinkingConfig(include_thoughts=True, thinking_level=types.ThinkingLevel.LOW)
)


def play_loop(stage: OpenStage) -> Stage:
    """A stage whose signatures hold the characters in which the alphabets of base64 differ, nearly always."""
    call = ToolCall("c1", "look", {"at": "the sky"})
    second = tuple(ToolCall(f"d{n}", "look", {"at": f"tree {n}"}) for n in range(3))
    return stage(
        Say(thinking="I should look.", text="Let me look.", tool_calls=(call,), piece=4),
        Say(thinking="And the trees.", tool_calls=second, piece=4),
        Say(thinking="All fine.", text="All is fine.", piece=4),
        Say(text="You are welcome.", piece=4),
    )


def send(client: genai.Client, messages: list[str]) -> list[str]:
    chat = client.chats.create(model=MODEL, config=TOOLS)
    return [chat.send_message(message).text or "" for message in messages]


def send_streamed(client: genai.Client, messages: list[str]) -> list[str]:
    chat = client.chats.create(model=MODEL, config=TOOLS)
    chunks = [list(chat.send_message_stream(message)) for message in messages]
    return [join_texts(list_parts(answer), thought=False) for answer in chunks]


def send_awaited(client: genai.Client, messages: list[str]) -> list[str]:
    async def run() -> list[str]:
        async with client.aio as awaited:
            chat = awaited.chats.create(model=MODEL, config=TOOLS)
            return [(await chat.send_message(message)).text or "" for message in messages]

    return asyncio.run(run())


def send_awaited_streamed(client: genai.Client, messages: list[str]) -> list[str]:
    async def run() -> list[str]:
        async with client.aio as awaited:
            chat = awaited.chats.create(model=MODEL, config=TOOLS)
            answers = [[chunk async for chunk in await chat.send_message_stream(message)] for message in messages]
        return [join_texts(list_parts(answer), thought=False) for answer in answers]

    return asyncio.run(run())


@pytest.mark.parametrize("way", [send, send_streamed, send_awaited, send_awaited_streamed])
def test_a_chat_calls_functions_and_the_next_turn_is_accepted(
    stage: OpenStage, way: Callable[[genai.Client, list[str]], list[str]]
) -> None:
    opened = play_loop(stage)
    first, second = way(connect(opened), ["Look around.", "Thank you."])
    assert first.removeprefix("Let me look.") == "All is fine."
    assert second == "You are welcome."
    assert [received.problem for received in opened.requests] == [None] * 4
    # What came back: the signatures, and the results of the functions.
    served = opened.requests[2].served
    assert served is not None
    calls = [call for message in served.prompt.messages for call in message.tool_calls]
    assert [bool(call.seals) for call in calls] == [True, True, False, False]
    results = [part for message in served.prompt.messages for part in message.parts if isinstance(part, ToolResult)]
    assert [result.call_id for result in results] == ["c1", "d0", "d1", "d2"]


def test_eight_signatures_come_back_in_the_other_alphabet(stage: OpenStage) -> None:
    calls = [Say(tool_calls=(ToolCall(f"c{n}", "look", {"at": f"{n}"}),)) for n in range(8)]
    opened = stage(*calls, Say(text="Done."))
    config = TOOLS.model_copy(
        update={"automatic_function_calling": types.AutomaticFunctionCallingConfig(maximum_remote_calls=20)}
    )
    client = connect(opened)
    chat = client.chats.create(model=MODEL, config=config)
    assert chat.send_message("Look eight times.").text == "Done."
    assert [received.problem for received in opened.requests] == [None] * 9


# --- refusals and errors ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["whole", "streamed"])
def test_a_refusal_has_its_finish_reason(stage: OpenStage, way: str) -> None:
    responses = WAYS[way](connect(stage(Say(refusal="I would rather not."))), "?", SHOWN)
    (candidate,) = responses[-1].candidates or []
    # The SDK leaves the message itself out for this host.
    assert candidate.finish_reason == types.FinishReason.SAFETY
    assert join_texts(list_parts(responses), thought=False) == ""


@pytest.mark.parametrize(
    ("way", "status", "kind", "error"),
    [
        ("whole", 400, "INVALID_ARGUMENT", errors.ClientError),
        ("whole", 404, "NOT_FOUND", errors.ClientError),
        ("whole", 500, "INTERNAL", errors.ServerError),
        ("whole", 503, "UNAVAILABLE", errors.ServerError),
        *((way, 429, "RESOURCE_EXHAUSTED", errors.ClientError) for way in WAYS),
    ],
)
def test_an_error_is_the_exception_of_its_status(
    stage: OpenStage, way: str, status: int, kind: str, error: type[errors.APIError]
) -> None:
    client = connect(stage(Fail(status=status, message="not today")))
    with pytest.raises(error) as caught:
        WAYS[way](client, "?", SHOWN)
    assert (caught.value.code, caught.value.status, caught.value.message) == (status, kind, "not today")


def test_a_forged_signature_is_refused_as_the_real_servers_do(stage: OpenStage) -> None:
    call = types.FunctionCall(id="c1", name="look", args={"at": "x"})
    response = types.FunctionResponse(id="c1", name="look", response={"result": "fine"})
    contents: list[types.ContentUnion] = [
        types.UserContent("Look."),
        types.ModelContent(types.Part(function_call=call, thought_signature=b"forged")),
        types.UserContent(types.Part(function_response=response)),
    ]
    client = connect(stage(Say(text="42")))
    with pytest.raises(errors.ClientError, match="Corrupted thought signature"):
        client.models.generate_content(model=MODEL, contents=contents)
    placeholder = types.Part(function_call=call, thought_signature=b"skip_thought_signature_validator")
    contents[1] = types.ModelContent(placeholder)
    assert client.models.generate_content(model=MODEL, contents=contents).text == "42"


def test_a_wrong_key_and_an_unknown_path_are_errors_of_the_dialect(stage: OpenStage) -> None:
    client = connect(stage(Say(text="42"), key="right"))
    with pytest.raises(errors.ClientError) as caught:
        WAYS["whole"](client, "?", SHOWN)
    assert caught.value.status == "UNAUTHENTICATED"
    with pytest.raises(errors.ClientError) as caught:
        client.models.embed_content(model=MODEL, contents="a")
    assert (caught.value.code, caught.value.status) == (404, "NOT_FOUND")


# --- counts, models, schemas ------------------------------------------------------------------------------------------


def test_tokens_are_counted_as_the_reply_counts_them(stage: OpenStage) -> None:
    client = connect(stage(Say(text="42")))
    counted = client.models.count_tokens(model=MODEL, contents="one two three")
    reply = client.models.generate_content(model=MODEL, contents="one two three")
    assert reply.usage_metadata is not None
    assert counted.total_tokens == reply.usage_metadata.prompt_token_count == 3


def test_models_are_listed_in_pages_and_shown_one_by_one(stage: OpenStage) -> None:
    known = ModelInfo("gemini-3-pro-preview", "Gemini 3 Pro", None, 1_000_000, 65_536, ThinkingInfo(True))
    client = connect(stage(models=(known, *(f"m{number}" for number in range(5)))))
    pager = client.models.list(config=types.ListModelsConfig(page_size=2))
    assert [model.name for model in pager] == ["models/gemini-3-pro-preview", *(f"models/m{n}" for n in range(5))]
    model = client.models.get(model="gemini-3-pro-preview")
    assert (model.name, model.display_name, model.input_token_limit) == (
        "models/gemini-3-pro-preview",
        "Gemini 3 Pro",
        1_000_000,
    )
    with pytest.raises(errors.ClientError) as caught:
        client.models.get(model="absent")
    assert caught.value.code == 404


def test_a_schema_in_capitals_is_read_as_json_schema(stage: OpenStage) -> None:
    opened = stage()
    schema = types.Schema(type=types.Type.OBJECT, properties={"n": types.Schema(type=types.Type.INTEGER)})
    config = types.GenerateContentConfig(response_mime_type="application/json", response_schema=schema)
    (response,) = WAYS["whole"](connect(opened), "How many are 7?", config)
    assert response.parsed == {"n": 7}
    served = opened.requests[0].served
    assert served is not None
    assert served.prompt.output == OutputSchema("answer", {"type": "object", "properties": {"n": {"type": "integer"}}})
