"""The table of whole bodies: each library decodes a response of 2 KB and one of 200 KB. No network.

`python -m bench.whole NAME DIALECT` measures one library in its environment. The table runs all of them, interleaved.
"""

from __future__ import annotations

import inspect
import json
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any

from bench.environments import find_python
from bench.payloads import BODY_SIZES, body
from bench.processes import ContestantFailed, run_module
from bench.tables import Row, Table

Parse = Callable[[bytes], Any]
TYPED = "msgspec, typed decode of the same fields"
OURS = "asides.decode"


def _struct(title: str, /, **fields: Any) -> Any:
    import msgspec

    return msgspec.defstruct(title, [(key, kind, None) for key, kind in fields.items()])


def _list(kind: Any) -> Any:
    return list[kind]


def _typed(dialect: str) -> Parse:
    import msgspec

    text = str | None
    if dialect == "chat":
        function = _struct("Function", name=text, arguments=text)
        call = _struct("Call", id=text, function=function | None)
        calls = _list(call) | None
        message = _struct("Message", content=text, reasoning_content=text, refusal=text, tool_calls=calls)
        choice = _struct("Choice", index=int, message=message, finish_reason=text)
        prompt = _struct("PromptDetails", cached_tokens=int | None)
        completion = _struct("CompletionDetails", reasoning_tokens=int | None)
        usage = _struct(
            "Usage",
            prompt_tokens=int | None,
            completion_tokens=int | None,
            total_tokens=int | None,
            prompt_tokens_details=prompt | None,
            completion_tokens_details=completion | None,
        )
        kind = _struct("Completion", id=text, model=text, choices=_list(choice), usage=usage | None)
    elif dialect == "messages":
        block = _struct("Block", type=text, text=text, thinking=text, signature=text, id=text, name=text)
        kind = _struct("Message", id=text, model=text, content=_list(block), stop_reason=text, usage=dict | None)
    else:
        piece = _struct("Piece", type=text, text=text)
        pieces = _list(piece) | None
        item = _struct("Item", type=text, id=text, summary=pieces, content=pieces, arguments=text)
        kind = _struct("Response", id=text, model=text, output=_list(item), status=text, usage=dict | None)
    return msgspec.json.Decoder(kind).decode


# The names of the table's dialects in asides.
ASIDES_DIALECTS = {"chat": "openai_chat", "responses": "openai_responses"}


def _asides(dialect: str) -> Parse:
    import asides

    name = ASIDES_DIALECTS[dialect]
    return lambda data: asides.decode(name, data, streaming=False)


def _openai(dialect: str) -> Parse:
    from openai._models import construct_type
    from openai.types.chat import ChatCompletion
    from openai.types.responses import Response

    kind = ChatCompletion if dialect == "chat" else Response
    return lambda data: construct_type(type_=kind, value=json.loads(data))


def _anthropic(_dialect: str) -> Parse:
    from anthropic._models import construct_type
    from anthropic.types import Message

    return lambda data: construct_type(type_=Message, value=json.loads(data))


def _litellm(_dialect: str) -> Parse:
    """As its path to an OpenAI-compatible host: dump the SDK's object to a dict, then build its own object."""
    from litellm import ModelResponse
    from litellm.litellm_core_utils.llm_response_utils import convert_dict_to_response

    convert: Any = convert_dict_to_response.convert_to_model_response_object
    parse = _openai("chat")

    def run(data: bytes) -> Any:
        response = parse(data).model_dump()
        return convert(
            response_object=response,
            model_response_object=ModelResponse(),
            response_type="completion",
            _response_headers={},
        )

    return run


def _pydantic_ai(_dialect: str) -> Parse:
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    model = OpenAIChatModel("gpt-5", provider=OpenAIProvider(api_key="x", base_url="http://127.0.0.1/v1"))
    process: Any = model._process_response
    needed = [p for p in inspect.signature(process).parameters.values() if p.kind is p.KEYWORD_ONLY]
    options = {p.name: ModelRequestParameters() for p in needed if p.default is p.empty}
    parse = _openai("chat")
    return lambda data: process(parse(data), **options)


def _langchain(_dialect: str) -> Parse:
    from langchain_openai import ChatOpenAI

    model: Any = ChatOpenAI(model="gpt-5", api_key="x")
    parse = _openai("chat")
    return lambda data: model._create_chat_result(parse(data))


# name → environment, dialects, builder
PARSERS: dict[str, tuple[str, tuple[str, ...], Callable[[str], Parse]]] = {
    TYPED: ("floor", ("chat", "messages", "responses"), _typed),
    OURS: ("asides", tuple(ASIDES_DIALECTS), _asides),
    "json.loads": ("floor", ("chat", "messages", "responses"), lambda _dialect: json.loads),
    "openai": ("openai", ("chat", "responses"), _openai),
    "anthropic": ("anthropic", ("messages",), _anthropic),
    "langchain": ("langchain", ("chat",), _langchain),
    "litellm": ("litellm", ("chat",), _litellm),
    "pydantic-ai": ("pydantic_ai", ("chat",), _pydantic_ai),
}
QUICK = (TYPED, OURS, "json.loads")


def microseconds(parse: Parse, data: bytes) -> float:
    def run(times: int) -> float:
        began = time.process_time()
        for _ in range(times):
            parse(data)
        return (time.process_time() - began) / times

    run(3)
    times = max(1, int(0.03 / max(run(3), 1e-6)))
    return median(run(times) for _ in range(7)) * 1e6


def whole(dialects: tuple[str, ...] = ("chat",), *, rounds: int, quick: bool) -> Table:
    answers: dict[tuple[str, str], list[dict[str, float]]] = {}
    failures: dict[tuple[str, str], str] = {}
    for _ in range(rounds):
        for name, (environment, spoken, _) in PARSERS.items():
            for dialect in dialects:
                absent = find_python(environment) is None or (quick and name not in QUICK)
                if absent or dialect not in spoken or (name, dialect) in failures:
                    continue
                try:
                    answer = run_module(environment, "bench.whole", name, dialect)
                except ContestantFailed as error:
                    failures[name, dialect] = str(error)
                else:
                    answers.setdefault((name, dialect), []).append(answer)
    middles = {key: {size: median(a[size] for a in found) for size in BODY_SIZES} for key, found in answers.items()}
    rows: list[Row] = []
    for (name, dialect), sizes in middles.items():
        row: Row = {"name": name, "dialect": dialect}
        for size, time_taken in sizes.items():
            row[size] = time_taken
            for column, reference in (("typed", TYPED), ("asides", OURS)):
                if (reference, dialect) in middles:
                    row[f"{size} / {column}"] = time_taken / middles[reference, dialect][size]
        rows.append(row)
    rows += [{"name": f"{name}: failed: {error[:100]}", "dialect": d} for (name, d), error in failures.items()]
    columns = {"name": "contestant", "dialect": "dialect"}
    for size in BODY_SIZES:
        columns |= {
            size: f"CPU µs, {size}",
            f"{size} / typed": "÷ typed decode",
            f"{size} / asides": "÷ asides",
        }
    return Table("whole", f"whole bodies: decode only, {rounds} rounds", columns, rows)


def main() -> None:
    name, dialect = sys.argv[1:3]
    parse = PARSERS[name][2](dialect)
    print(json.dumps({size: microseconds(parse, body(dialect, length)[0]) for size, length in BODY_SIZES.items()}))


if __name__ == "__main__":
    main()
