"""The table of whole bodies: each library decodes a response of 2, 20 and 200 KB, in every dialect. No network.

`python -m bench.whole NAME DIALECT` is the process of one library, in its environment.
"""

from __future__ import annotations

import inspect
import json
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from statistics import median
from typing import Any

from bench.contestant import Sink
from bench.environments import find_python
from bench.payloads import BODY_SIZES, DIALECTS, body
from bench.processes import ContestantFailed, Process
from bench.streams import progress, ratio
from bench.tables import Row, Table

Parse = Callable[[bytes], Any]
# How the bytes become the library's own object, and how that object gives its thinking and text.
Parser = tuple[Parse, Callable[[Sink, Any], None]]
TYPED = "msgspec, typed decode of the same fields"
OURS = "asides.decode"
ASIDES_DIALECTS = {"chat": "openai_chat", "messages": "anthropic", "responses": "openai_responses"}


def _typed(dialect: str) -> Parser:
    from bench.floors.bodies import typed_body

    return typed_body(dialect)


def _json(_dialect: str) -> Parser:
    return json.loads, lambda _sink, _document: None


def _asides(dialect: str) -> Parser:
    import asides

    name = ASIDES_DIALECTS.get(dialect, dialect)

    def take(sink: Sink, reply: Any) -> None:
        sink.thinking(reply.thinking.text)
        sink.text(reply.text)

    return lambda data: asides.decode(name, data, streaming=False), take


def _openai(dialect: str) -> Parser:
    from openai._models import construct_type
    from openai.types.chat import ChatCompletion
    from openai.types.responses import Response

    from bench.peers.vendors import take_completion, take_response

    kind, take = (ChatCompletion, take_completion) if dialect == "chat" else (Response, take_response)
    return lambda data: construct_type(type_=kind, value=json.loads(data)), take


def _anthropic(_dialect: str) -> Parser:
    from anthropic._models import construct_type
    from anthropic.types import Message

    from bench.peers.vendors import take_message

    return lambda data: construct_type(type_=Message, value=json.loads(data)), take_message


def _google_genai(_dialect: str) -> Parser:
    from google.genai import models, types

    from bench.peers.vendors import take_gemini

    convert: Any = models._GenerateContentResponse_from_mldev
    build: Any = types.GenerateContentResponse._from_response
    options: dict[str, Any] = {"config": {}}
    return lambda data: build(response=convert(json.loads(data)), kwargs=options), take_gemini


def _cohere(_dialect: str) -> Parser:
    from cohere.core.unchecked_base_model import construct_type
    from cohere.v2.types.v2chat_response import V2ChatResponse

    from bench.peers.vendors import take_cohere

    return lambda data: construct_type(type_=V2ChatResponse, object_=json.loads(data)), take_cohere


def _ollama(_dialect: str) -> Parser:
    from ollama import ChatResponse

    from bench.peers.vendors import take_ollama

    return lambda data: ChatResponse(**json.loads(data)), take_ollama


def _boto3(_dialect: str) -> Parser:
    import boto3
    from botocore.parsers import create_parser

    from bench.peers.vendors import take_converse

    keys = {"aws_access_key_id": "x", "aws_secret_access_key": "x", "region_name": "us-east-1"}
    shape = boto3.client("bedrock-runtime", **keys).meta.service_model.operation_model("Converse").output_shape
    parse: Any = create_parser("rest-json").parse
    response = {"status_code": 200, "headers": {}}
    return lambda data: parse({**response, "body": data}, shape), take_converse


def _litellm(_dialect: str) -> Parser:
    """As its path to an OpenAI-compatible host: dump the SDK's object to a dict, then build its own object."""
    from litellm import ModelResponse
    from litellm.litellm_core_utils.llm_response_utils import convert_dict_to_response

    convert: Any = convert_dict_to_response.convert_to_model_response_object
    parse, take = _openai("chat")
    options = {"response_type": "completion", "_response_headers": {}}

    def run(data: bytes) -> Any:
        response = parse(data).model_dump()
        return convert(response_object=response, model_response_object=ModelResponse(), **options)

    return run, take


def _pydantic_ai(_dialect: str) -> Parser:
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    model = OpenAIChatModel("gpt-5", provider=OpenAIProvider(api_key="x", base_url="http://127.0.0.1/v1"))
    process: Any = model._process_response
    needed = [p for p in inspect.signature(process).parameters.values() if p.kind is p.KEYWORD_ONLY]
    options = {p.name: ModelRequestParameters() for p in needed if p.default is p.empty}
    parse, _ = _openai("chat")

    def take(sink: Sink, response: Any) -> None:
        for part in response.parts:
            (sink.thinking if part.part_kind == "thinking" else sink.text)(part.content)

    return lambda data: process(parse(data), **options), take


def _langchain(_dialect: str) -> Parser:
    from langchain_openai import ChatOpenAI

    model: Any = ChatOpenAI(model="gpt-5", api_key="x")
    parse, _ = _openai("chat")

    def take(sink: Sink, result: Any) -> None:
        message = result.generations[0].message
        sink.thinking(message.additional_kwargs.get("reasoning_content", ""))
        sink.text(message.content)

    return lambda data: model._create_chat_result(parse(data)), take


# name → environment, dialects, builder
PARSERS: dict[str, tuple[str, tuple[str, ...], Callable[[str], Parser]]] = {
    TYPED: ("floor", DIALECTS, _typed),
    OURS: ("asides", DIALECTS, _asides),
    "json.loads": ("floor", DIALECTS, _json),
    "openai": ("openai", ("chat", "responses"), _openai),
    "anthropic": ("anthropic", ("messages",), _anthropic),
    "google-genai": ("google_genai", ("gemini",), _google_genai),
    "cohere": ("cohere", ("cohere",), _cohere),
    "ollama": ("ollama", ("ollama",), _ollama),
    "boto3": ("boto3", ("bedrock",), _boto3),
    "langchain": ("langchain", ("chat",), _langchain),
    "litellm": ("litellm", ("chat",), _litellm),
    "pydantic-ai": ("pydantic_ai", ("chat",), _pydantic_ai),
}
QUICK = (TYPED, OURS)
SECONDS = 0.03


class Bodies:
    """One library's decoder of one dialect."""

    def __init__(self, name: str, dialect: str) -> None:
        self.dialect = dialect
        self.parse, self.take = PARSERS[name][2](dialect)

    def decode(self, size: int) -> dict[str, Any]:
        """Microseconds of one decode, and the characters that its result has."""
        data, expected = body(self.dialect, size)
        parse = self.parse

        def run(times: int) -> float:
            began = time.process_time()
            for _ in range(times):
                parse(data)
            return (time.process_time() - began) / times

        run(3)
        taken = median(run(max(1, int(SECONDS / max(run(3), 1e-6)))) for _ in range(3)) * 1e6
        sink = Sink()
        self.take(sink, parse(data))
        thinking, text, _ = sink.characters()
        return {"us": taken, "lost": [expected.thinking - thinking, expected.text - text]}


def whole(dialects: Sequence[str] = DIALECTS, *, rounds: int, quick: bool) -> Table:
    answers: dict[tuple[str, str, str], list[float]] = {}
    lost: dict[tuple[str, str], str] = {}
    entries = [
        (name, dialect, environment)
        for dialect in dialects
        for name, (environment, spoken, _) in PARSERS.items()
        if dialect in spoken and find_python(environment) is not None and (not quick or name in QUICK)
    ]
    with ExitStack() as stack:
        processes: dict[tuple[str, str], Process] = {}
        for name, dialect, environment in entries:
            try:
                process = Process(environment, "bench.whole", name, dialect, "-")
            except ContestantFailed as error:
                lost[name, dialect] = f"failed: {str(error)[:100]}"
            else:
                processes[name, dialect] = stack.enter_context(process)
        order = list(processes)
        for number in range(rounds):
            shift = number * len(order) // rounds
            for name, dialect in order[shift:] + order[:shift]:
                if (name, dialect) in lost and lost[name, dialect].startswith("failed"):
                    continue
                for label, size in BODY_SIZES.items():
                    try:
                        answer = processes[name, dialect].ask("decode", size=size)
                    except ContestantFailed as error:
                        lost[name, dialect] = f"failed: {str(error)[:100]}"
                        break
                    answers.setdefault((name, dialect, label), []).append(answer["us"])
                    if any(answer["lost"]) and name != "json.loads":
                        lost[name, dialect] = "LOST {} of thinking, {} of text".format(*answer["lost"])
            progress(f"  round {number + 1} of {rounds}")
    rows: list[Row] = []
    for name, dialect, _ in entries:
        row: Row = {"name": name, "dialect": dialect}
        for label in BODY_SIZES:
            taken = answers.get((name, dialect, label))
            if taken is not None and len(taken) == rounds:
                row[label] = median(taken)
                row[f"{label} / typed"] = ratio(taken, answers.get((TYPED, dialect, label)))
                row[f"{label} / asides"] = ratio(taken, answers.get((OURS, dialect, label)))
        row["delivered"] = "not read" if name == "json.loads" else lost.get((name, dialect), "all")
        rows.append(row)
    columns = {"name": "contestant", "dialect": "dialect"}
    for label in BODY_SIZES:
        columns |= {label: f"CPU µs, {label}", f"{label} / typed": "÷ typed", f"{label} / asides": "÷ asides"}
    columns["delivered"] = "delivered"
    return Table("whole", f"whole bodies: decode only, {rounds} rounds", columns, rows)


def main() -> None:
    from bench.worker import serve

    name, dialect = sys.argv[1:3]
    serve(name, lambda: Bodies(name, dialect))


if __name__ == "__main__":
    main()
