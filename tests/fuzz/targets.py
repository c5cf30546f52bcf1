"""The targets of fuzzing. Each draws an input; anything but a value or an AsidesError is a `Finding`.

`CRASHES` counts what the guard of the decoders turned into a ProtocolError: no finding, but worth a look.
"""

from __future__ import annotations

import asyncio
import json
import random
import socket
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager, suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest.mock import patch

import asides
from asides.agents.tools.executor import BadArguments
from asides.agents.tools.function_tool import tool
from asides.conversations.store.sqlite import SqliteStore
from asides.datasets.parquet import clean_row, iterate_parquet
from asides.dialects import DIALECTS, plain_row
from asides.flows.call import Call, Policy
from asides.flows.exchange import Exchange
from asides.flows.list_models import ModelListCall, list_models
from asides.flows.steps import Done, Flow, Head, Open, Read, advance
from asides.providers.provider import Provider, Target
from asides.values.errors import AsidesError, ConnectionLost
from asides.values.messages import Message, Prompt, user
from asides.values.parts import Text, ToolCall, ToolResult, read_arguments
from asides.values.reply import Reply
from asides.values.thinking import Seal, Thought
from asides_batch.batches import AsyncBatch, Batch
from asides_batch.parquet_rows import read_parquet
from asides_stage import Fail, Say, Stage
from asides_stage.conformance.response_bodies import add_unknown_fields, read_documents, replace_documents
from tests.fuzz.bodies import SECRET, Body, draw_body, draw_error, draw_model_list, mutate_body
from tests.fuzz.mutations import draw_value, mutate_bytes, mutate_document, split_randomly, write_json
from tests.fuzz.relayed import MODELS, fuzz_relayed_replies, fuzz_relayed_requests, list_seeds
from tests.loopback import ReceivedRequest, serving

CRASHES: Counter[str] = Counter()
pa: Any = import_module("pyarrow")
parquet: Any = import_module("pyarrow.parquet")
_TIMEOUT = asides.Timeout(connect=2, first_byte=2, idle=2, total=4)


class Finding(AssertionError):
    """An input that leads to something that must not be."""


@contextmanager
def _typed_errors(what: str) -> Generator[None, None, None]:
    try:
        yield
    except AsidesError as error:
        if error.__cause__ is not None:
            CRASHES[f"{what}: {type(error.__cause__).__name__}"] += 1
    except Finding:
        raise
    except Exception as problem:
        raise Finding(f"{what}: {type(problem).__name__}: {str(problem)[:200]}") from problem


def _use(reply: Reply) -> None:
    """Touch everything that is decoded when it is asked for."""
    for read in (repr, str, Reply.to_message, Reply.with_tags, lambda it: it.metadata, lambda it: it.raw):
        read(reply)
    for part in reply.parts:
        repr(part)
    if (message := reply.to_message()) is not None:
        json.loads(asides.Conversation(messages=[message]).to_json(keep_thinking=True))


# --- replies ----------------------------------------------------------------------------------------------------------

_Outcome = tuple[Reply | None, Any, str | None]


def _decode(body: Body, pieces: list[bytes]) -> _Outcome:
    row = body.row or plain_row(body.dialect)
    try:
        reply = asides.decode(body.dialect, pieces, provider=row, model=body.model)
        return reply, reply.raw, None
    except AsidesError as error:
        if error.__cause__ is not None:
            CRASHES[f"{body.dialect}: {type(error.__cause__).__name__}: {error.__cause__}"[:100]] += 1
        return error.partial, None if error.partial is None else error.partial.raw, f"{type(error).__name__}: {error}"


def _drive(flow: Flow[Any], answers: list[Any]) -> Any:
    """Drive a flow with these answers; the connection ends after them."""
    waiting = iter(answers)
    step = advance(flow)
    while not isinstance(step, Done):
        answer: Any = None
        if isinstance(step, (Open, Read)):
            answer = next(waiting, b"" if isinstance(step, Read) else Head(404, {}))
        step = advance(flow, error=answer) if isinstance(answer, Exception) else advance(flow, answer)
    return step.result


def _ask(body: Body, answers: list[Any]) -> _Outcome:
    row: Provider = body.row or plain_row(body.dialect)
    target = Target(row, body.model, row.base_url or "http://127.0.0.1:9", row.rule(body.model))
    exchange = Exchange(Call(Prompt((user("?"),)), target, Policy(retries=0, on_conflict="adjust")), nonce=str)
    try:
        # Ids of calls are different in every reply; here only the bytes shall make a difference.
        with patch("asides.flows.exchange.make_nonce", return_value="0|"):
            reply = _drive(exchange.steps(), [Head(200, {}), *answers])
        return reply, reply.raw, None
    except AsidesError as error:
        return error.partial, None if error.partial is None else error.partial.raw, f"{type(error).__name__}: {error}"


def _compare(what: str, first: _Outcome, second: _Outcome) -> None:
    if repr(first[0]) != repr(second[0]) or first[0] != second[0] or first[1] != second[1] or first[2] != second[2]:
        raise Finding(f"{what}: the chunking made a difference: {first[0]} {first[2]} / {second[0]} {second[2]}")


def fuzz_decoders(rng: random.Random) -> None:
    """A changed body, whole and in pieces, read by `decode`."""
    body = draw_body(rng)
    body = body._replace(data=mutate_body(rng, body.data))
    with _typed_errors(f"decode {body.dialect}"):
        first = _decode(body, [body.data])
        if first[0] is not None:
            _use(first[0])
        _compare(f"decode {body.dialect}", first, _decode(body, split_randomly(rng, body.data)))


def fuzz_calls(rng: random.Random) -> None:
    """A changed body, whole and in pieces, read by the flow of a live call; the connection ends or breaks."""
    body = draw_body(rng)
    body = body._replace(data=mutate_body(rng, body.data))
    end = rng.choice((b"", ConnectionLost("it broke.")))
    with _typed_errors(f"call {body.dialect}"):
        first = _ask(body, [body.data, end] if body.data else [end])
        _compare(f"call {body.dialect}", first, _ask(body, [*split_randomly(rng, body.data), end]))


def fuzz_unbroken(rng: random.Random) -> None:
    """A valid body, perhaps with unknown fields: no text of the reply holds its thinking."""
    body = draw_body(rng, dialect=rng.choice(DIALECTS))
    documents = read_documents(body.data)
    if documents is not None and rng.random() < 0.5:
        body = body._replace(data=replace_documents(body.data, [add_unknown_fields(item) for item in documents]))
    reply, _, error = _decode(body, split_randomly(rng, body.data))
    if error is not None or reply is None or SECRET[:6] in reply.text or SECRET[:6] in repr(reply.refusal):
        raise Finding(f"unbroken {body.dialect}: {reply!r} {error}")


# --- errors and lists -------------------------------------------------------------------------------------------------


def fuzz_errors(rng: random.Random) -> None:
    """A changed error body with any status."""
    name, body = draw_error(rng)
    status = rng.choice((301, 400, 401, 403, 404, 408, 413, 422, 429, 451, 500, 503, 529, 599, 600, 999))
    headers = {"retry-after": str(draw_value(rng))[:60], "x-amzn-errortype": str(draw_value(rng))[:60], "date": "x"}
    with _typed_errors(f"error {name}"):
        asides.decode(name, body, status=status, headers=headers)
        raise Finding(f"error {name}: no error")


def fuzz_model_lists(rng: random.Random) -> None:
    """A changed list of models."""
    name, body = draw_model_list(rng)
    row = plain_row(name)
    target = Target(row, "", "http://127.0.0.1:9/v1", row.rule(""))
    with _typed_errors(f"models {name}"):
        repr(_drive(list_models(ModelListCall(target, Policy(retries=0))), [Head(200, {}), body, b""]))


# --- saved conversations ----------------------------------------------------------------------------------------------

_MESSAGES = (
    user("What is it?"),
    Message(
        "assistant",
        (
            Thought("a thought", seals=(Seal("signature", "c2VhbA=="),)),
            Text("An answer."),
            ToolCall("call_1", "look_up", {"place": "Paris"}),
        ),
    ),
    Message("tool", (ToolResult("call_1", "42"),)),
)


def fuzz_conversations(rng: random.Random) -> None:
    """A changed document of a saved conversation, read as text and from a file."""
    saved = asides.Conversation("openai-compatible:m", messages=_MESSAGES, system="Be brief.").to_json(
        keep_thinking=True
    )
    document = write_json(mutate_document(rng, json.loads(saved)))
    if rng.random() < 0.25:
        document = mutate_bytes(rng, document)
    with _typed_errors("conversation"):
        read = asides.Conversation.from_json(document)
        json.loads(read.to_json(keep_thinking=True))
        repr(read)
    with tempfile.TemporaryDirectory() as folder, _typed_errors("conversation file"):
        path = Path(folder) / "saved.json"
        path.write_bytes(document)
        asides.Conversation.load(path)


def fuzz_doctor(rng: random.Random) -> None:
    """A changed request of a client, or a changed saved conversation, examined and repaired."""
    if rng.random() < 0.25:
        chat = asides.Conversation("openai-compatible:m", messages=_MESSAGES)
        given = json.loads(chat.to_json(keep_thinking=True))
    else:
        given = rng.choice(list_seeds(rng.choice(MODELS))).body
    history = mutate_document(rng, given)
    model = rng.choice(MODELS)
    with _typed_errors(f"doctor for {model}"):
        found = asides.diagnose(history, model, base_url="https://upstream.test", other_account=rng.random() < 0.2)
        repr(found)
        json.dumps(found.repaired)
        asides.diagnose(found.repaired, model, base_url="https://upstream.test")


def fuzz_stores(rng: random.Random) -> None:
    """A store with a changed row, or with changed bytes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store.db"
        with SqliteStore(path) as store:
            store.append("a", _MESSAGES)
        if rng.random() < 0.3:
            path.write_bytes(mutate_bytes(rng, path.read_bytes()))
        else:
            with closing(sqlite3.connect(path)) as connection, suppress(sqlite3.Error):
                _change_row(rng, connection)
                connection.commit()
        with _typed_errors("store"), SqliteStore(path, patience=0.1) as store:
            for name in (*store.names(), "a"):
                store.about(name)
                store.load(name)
            store.append("a", _MESSAGES[:1])
            store.delete("a")


def _change_row(rng: random.Random, connection: sqlite3.Connection) -> None:
    tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    table = rng.choice(tables)
    columns = [row[1] for row in connection.execute(f'PRAGMA table_info("{table}")')]
    if not columns:
        return
    column = rng.choice(columns)
    (value,) = connection.execute(f'SELECT "{column}" FROM "{table}" LIMIT 1').fetchone() or (None,)
    other: Any = rng.choice((None, 7, -1, 2**62, 1.5, "x", b"\xff", "", b"", float("inf")))
    if isinstance(value, (bytes, str)) and rng.random() < 0.8:
        encoded = value.encode() if isinstance(value, str) else value
        with suppress(ValueError):
            encoded = write_json(mutate_document(rng, json.loads(encoded)))
        other = encoded if isinstance(value, bytes) else encoded.decode("utf-8", "replace")
    connection.execute(f'UPDATE "{table}" SET "{column}" = ?', (other,))


# --- data sets --------------------------------------------------------------------------------------------------------


@cache
def _make_ledger() -> bytes:
    """The ledger of a batch with two answers and a question that failed."""
    with tempfile.TemporaryDirectory() as folder, Stage([Say(text="4"), Say(text="6"), Fail(400)]) as stage:
        rows = [{"id": "a", "prompt": "2 + 2"}, {"id": "b", "prompt": "3 + 3", "own": 1}, {"id": "c", "prompt": "?"}]
        output = Path(folder) / "out.jsonl"
        with closing(Batch(rows, output=output, model="vllm:m", base_url=stage.url, retries=0)) as batch:
            batch.run()
        return (Path(folder) / "out.jsonl.ledger").read_bytes()


def fuzz_ledgers(rng: random.Random) -> None:
    """The ledger of a batch with changed rows, or with changed bytes: its status, its results, and it resumed."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "out.jsonl"
        path = Path(folder) / "out.jsonl.ledger"
        path.write_bytes(_make_ledger())
        if rng.random() < 0.3:
            path.write_bytes(mutate_bytes(rng, path.read_bytes()))
        else:
            with closing(sqlite3.connect(path)) as connection, suppress(sqlite3.Error):
                for _ in range(rng.choice((1, 1, 3))):
                    _change_row(rng, connection)
                connection.commit()
        with _typed_errors("ledger, status"), closing(Batch(output=output)) as batch:
            repr(batch.status)
        with _typed_errors("ledger, results"), closing(Batch(output=output)) as batch:
            list(map(repr, batch))
        with _typed_errors("ledger, resumed"):
            asyncio.run(_resume(output))


async def _resume(output: Path) -> None:
    batch = AsyncBatch(output=output)
    try:
        await asyncio.wait_for(batch.resume(), 3)
    except TimeoutError:
        # A row may say that another process has it.
        CRASHES["ledger, resumed: waits"] += 1
    finally:
        await batch.close()


def fuzz_parquet(rng: random.Random) -> None:
    """A Parquet file of any values with changed bytes, read as questions, audited, and read as rows."""
    values = [
        {"id": "a", "prompt": "2 + 2", "messages": [{"role": "user", "content": "<think>?"}], "n": 1.5, "at": None}
    ]
    changed = mutate_document(rng, values) if rng.random() < 0.5 else values
    rows = [row for row in changed if isinstance(row, dict)] if isinstance(changed, list) else []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        try:
            parquet.write_table(pa.Table.from_pylist(rows or values), path)
        except (pa.ArrowException, ValueError, TypeError, OverflowError, UnicodeError):
            return  # no table has these values
        if rng.random() < 0.6:
            path.write_bytes(mutate_bytes(rng, path.read_bytes()))
        with _typed_errors("parquet, questions"):
            for question in read_parquet(path, "rows.parquet"):
                repr(question)
        with _typed_errors("parquet, rows"):
            for some, _ in iterate_parquet(path, "rows.parquet"):
                for row in some:
                    json.dumps(clean_row(row, "row"))


# --- arguments of tools -----------------------------------------------------------------------------------------------


@tool
def look_up(place: str, days: list[int], *, exact: bool = False, more: dict[str, float] | None = None) -> str:
    """Look something up."""
    return f"{place} {days} {exact} {more}"


def fuzz_arguments(rng: random.Random) -> None:
    """The arguments of a call, as any text, given to a tool."""
    document = {"place": "Paris", "days": [1, 2], "exact": True, "more": {"a": 1.5}}
    raw = write_json(mutate_document(rng, document))
    if rng.random() < 0.3:
        raw = mutate_bytes(rng, raw)
    text = raw.decode("utf-8", rng.choice(("replace", "surrogateescape")))
    with _typed_errors("arguments"), suppress(BadArguments):
        arguments = read_arguments(text)
        look_up.run(ToolCall("1", "look_up", arguments or {}, text if arguments is None else None))


# --- sockets ----------------------------------------------------------------------------------------------------------


def _draw_response(rng: random.Random) -> bytes:
    body = draw_body(rng, dialect="openai_chat").data
    if rng.random() < 0.3:
        body = mutate_body(rng, body)
    status = rng.choice(
        ("200 OK", "200 OK", "200", "103 Early Hints", "500 No", "299 Odd", "99 x", "1000 x", "abc", "")
    )
    headers = ["Content-Type: text/event-stream", f"X-Odd: {str(draw_value(rng))[:50]}"]
    form = rng.randrange(4)
    if form == 0:
        headers.append(f"Content-Length: {rng.choice((len(body), len(body) + 5, 1, 0, -1, 'x', '1, 2', 10**30))}")
    elif form == 1:
        headers.append("Transfer-Encoding: chunked")
        size = rng.choice((f"{len(body):x}", f"{len(body) + 9:x}", "zz", "-1", "0", "f" * 40, f"{len(body):x};a=b"))
        body = f"{size}\r\n".encode() + body + rng.choice((b"\r\n0\r\n\r\n", b"0\r\n\r\n", b"\r\n", b""))
    elif form == 2:
        headers += ["Content-Encoding: " + rng.choice(("gzip", "deflate", "br", "identity", "zstd", "gzip, gzip"))]
    head = "\r\n".join([f"HTTP/1.1 {status}", *headers, "", ""]).encode("utf-8", "replace")
    response = head + body
    return mutate_bytes(rng, response) if rng.random() < 0.4 else response


def fuzz_sockets(rng: random.Random) -> None:
    """A response whose HTTP is changed, over a real socket, read by both shells."""
    response = _draw_response(rng)

    def answer(_: ReceivedRequest, connection: socket.socket) -> bool:
        with suppress(OSError):
            connection.sendall(response)
            connection.shutdown(socket.SHUT_WR)
        return False

    options: dict[str, Any] = {"retries": 0, "timeout": _TIMEOUT, "api_key": "none"}
    with serving(answer) as server:
        options["base_url"] = server.url
        with _typed_errors("socket, sync"):
            _stream_sync(options)
        with _typed_errors("socket, async"):
            asyncio.run(_stream(options))


def _stream_sync(options: dict[str, Any]) -> None:
    with asides.Client() as client, client.stream("openai-compatible:m", "?", **options) as stream:
        list(stream)


async def _stream(options: dict[str, Any]) -> None:
    async with asides.AsyncClient() as client, client.stream("openai-compatible:m", "?", **options) as stream:
        async for _ in stream:
            pass


def _find(fuzz: Callable[[random.Random], None]) -> Callable[[random.Random], None]:
    """The same, with everything that the relay raises as a finding."""

    def run(rng: random.Random) -> None:
        try:
            fuzz(rng)
        except Exception as problem:
            raise Finding(f"relay: {type(problem).__name__}: {str(problem)[:200]}") from problem

    return run


TARGETS: dict[str, Callable[[random.Random], None]] = {
    "decoders": fuzz_decoders,
    "calls": fuzz_calls,
    "unbroken": fuzz_unbroken,
    "errors": fuzz_errors,
    "model lists": fuzz_model_lists,
    "conversations": fuzz_conversations,
    "doctor": fuzz_doctor,
    "stores": fuzz_stores,
    "parquet": fuzz_parquet,
    "ledgers": fuzz_ledgers,
    "arguments": fuzz_arguments,
    "sockets": fuzz_sockets,
    "relayed requests": _find(fuzz_relayed_requests),
    "relayed replies": _find(fuzz_relayed_replies),
}
