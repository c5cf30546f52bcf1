"""Files of every source that an audit reads, with given answers inside, as their programs write them.

Each source also has what must not be reported: quoted tags in the messages of users, systems and tools, and thinking in
a place of its own.
"""

from __future__ import annotations

import csv
import json
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from asides import Conversation, user
from asides.conversations.store.sqlite import SqliteStore
from asides.values.messages import Message
from asides.values.parts import Text
from asides.values.thinking import Thought

Writer = Callable[[Path, Sequence[str]], Path]

QUESTION = "Why does <think>this</think> appear? I saw </think> alone."
PLACED = "The user wants to know it. I answer with a number, since one is enough here."


def _write_lines(path: Path, rows: Sequence[Any]) -> Path:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def write_completions(folder: Path, answers: Sequence[str]) -> Path:
    rows = [{"id": n, "prompt": QUESTION, "response": text, "score": 0.5} for n, text in enumerate(answers)]
    return _write_lines(folder / "completions.jsonl", rows)


def write_chat_messages(folder: Path, answers: Sequence[str]) -> Path:
    rows = [
        {
            "messages": [
                {"role": "system", "content": "Think in <think> tags."},
                {"role": "user", "content": [{"type": "text", "text": QUESTION}]},
                {"role": "assistant", "content": text, "reasoning_content": PLACED},
            ]
        }
        for text in answers
    ]
    return _write_lines(folder / "chat.jsonl", rows)


def write_sharegpt(folder: Path, answers: Sequence[str]) -> Path:
    rows = [
        {"conversations": [{"from": "human", "value": QUESTION}, {"from": "gpt", "value": text}]} for text in answers
    ]
    path = folder / "sharegpt.json"
    path.write_text(json.dumps(rows, indent=2), encoding="utf-8")
    return path


def write_csv(folder: Path, answers: Sequence[str]) -> Path:
    path = folder / "answers.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["question", "answer"])
        writer.writerows([QUESTION, text] for text in answers)
    return path


def write_claude_code(folder: Path, answers: Sequence[str]) -> Path:
    about = {"sessionId": "3f6c", "cwd": "/code", "version": "2.1.12", "isSidechain": False, "userType": "external"}
    rows: list[Any] = [{"type": "file-history-snapshot", "snapshot": {"trackedFileBackups": {}}}]
    for number, text in enumerate(answers):
        rows += [
            {**about, "type": "user", "uuid": f"u{number}", "message": {"role": "user", "content": QUESTION}},
            {
                **about,
                "type": "assistant",
                "uuid": f"a{number}",
                "message": {
                    "role": "assistant",
                    "model": "claude-opus-4-5",
                    "content": [
                        {"type": "thinking", "thinking": PLACED, "signature": "c2lnbmVk"},
                        {"type": "text", "text": text},
                        {"type": "tool_use", "id": "t", "name": "Write", "input": {"content": "<think>a</think>b"}},
                    ],
                },
            },
            {
                **about,
                "type": "user",
                "message": {
                    "role": "user",
                    "content": [{"type": "tool_result", "tool_use_id": "t", "content": "<think>a</think>b"}],
                },
                "toolUseResult": {"type": "text", "file": {"content": "<think>a</think>b"}},
            },
        ]
    return _write_lines(folder / "3f6c.jsonl", rows)


def write_codex(folder: Path, answers: Sequence[str]) -> Path:
    def record(kind: str, payload: Any) -> Any:
        return {"timestamp": "2026-11-19T00:00:00.000Z", "type": kind, "payload": payload}

    rows = [
        record("session_meta", {"id": "x", "instructions": "Use <think>tags</think>.", "cli_version": "0.65.0"}),
        record("turn_context", {"model": "gpt-5-codex", "effort": "high", "summary": "auto"}),
    ]
    for text in answers:
        rows += [
            record(
                "response_item",
                {"type": "message", "role": "user", "content": [{"type": "input_text", "text": QUESTION}]},
            ),
            record("event_msg", {"type": "user_message", "message": QUESTION}),
            record("event_msg", {"type": "agent_reasoning", "text": f"<think>{PLACED}</think>"}),
            record(
                "response_item",
                {"type": "reasoning", "summary": [{"type": "summary_text", "text": PLACED}], "encrypted_content": "Z"},
            ),
            record(
                "response_item",
                {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]},
            ),
            record(
                "response_item",
                {"type": "function_call_output", "call_id": "c", "output": "<think>a</think>b"},
            ),
        ]
    return _write_lines(folder / "rollout-2026-11-19T00-00-00-x.jsonl", rows)


def write_otlp(folder: Path, answers: Sequence[str]) -> Path:
    def attribute(key: str, value: Any) -> Any:
        return {"key": key, "value": {"stringValue": value}}

    def messages(role: str, text: str, thought: str = "") -> str:
        parts = [{"type": "reasoning", "content": thought}] if thought else []
        return json.dumps([{"role": role, "parts": [*parts, {"type": "text", "content": text}]}])

    spans = [
        {
            "traceId": "0af7651916cd43dd8448eb211c80319c",
            "name": "chat",
            "attributes": [
                attribute("gen_ai.request.model", "qwen3"),
                attribute("gen_ai.input.messages", messages("user", QUESTION)),
                attribute("gen_ai.output.messages", messages("assistant", text, PLACED)),
            ],
        }
        for text in answers
    ]
    rows = [{"resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {}, "spans": [span]}]}]} for span in spans]
    return _write_lines(folder / "traces.jsonl", rows)


def write_structured_otlp(folder: Path, answers: Sequence[str]) -> Path:
    """Records of OTLP logs with structured bodies, in one JSON document."""

    def pairs(**fields: str) -> Any:
        return {"kvlistValue": {"values": [{"key": k, "value": {"stringValue": v}} for k, v in fields.items()]}}

    records: list[Any] = []
    for text in answers:
        records += [
            {"eventName": "gen_ai.user.message", "body": pairs(role="user", content=QUESTION)},
            {"eventName": "gen_ai.assistant.message", "body": pairs(role="assistant", content=text)},
        ]
    path = folder / "logs.json"
    document = {"resourceLogs": [{"scopeLogs": [{"logRecords": records}]}]}
    path.write_text(json.dumps(document, indent=1), encoding="utf-8")
    return path


def write_log(folder: Path, answers: Sequence[str]) -> Path:
    path = folder / "server.log"
    lines: list[str] = ["[2026-11-19 00:00:00] INFO started"]
    for text in answers:
        lines += [
            f"2026-11-19 00:00:01 INFO answer: {text}",
            f"2026-11-19 00:00:02 DEBUG body={json.dumps({'prompt': QUESTION, 'reasoning': PLACED})} sent",
        ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def write_log_with_json(folder: Path, answers: Sequence[str]) -> Path:
    path = folder / "requests.log"
    bodies = [{"choices": [{"message": {"role": "assistant", "content": text}}]} for text in answers]
    path.write_text("".join(f"INFO received {json.dumps(body)} in 3 ms\n" for body in bodies), encoding="utf-8")
    return path


def write_stream_log(folder: Path, answers: Sequence[str]) -> Path:
    """Recorded events of streams, a few characters each, with a tag cut anywhere."""
    path = folder / "stream.log"
    lines: list[str] = []
    for number, text in enumerate(answers):
        pieces = [text[at : at + 3] for at in range(0, len(text), 3)]
        for piece in pieces:
            body = {"id": f"chatcmpl-{number}", "choices": [{"index": 0, "delta": {"content": piece}}]}
            lines += [f"data: {json.dumps(body)}", ""]
        end = {"id": f"chatcmpl-{number}", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
        lines += [f"data: {json.dumps(end)}", "", "data: [DONE]", ""]
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def _to_message(text: str) -> Message:
    return Message("assistant", (Thought(PLACED), Text(text)))


def write_saved_conversation(folder: Path, answers: Sequence[str]) -> Path:
    messages = [message for text in answers for message in (user(QUESTION), _to_message(text))]
    chat = Conversation("groq:qwen/qwen3-32b", system="Use <think>tags</think>.", messages=messages)
    chat.save(folder / "saved.json", keep_thinking=True)
    return folder / "saved.json"


def write_store(folder: Path, answers: Sequence[str]) -> Path:
    path = folder / "conversations.db"
    with closing(SqliteStore(path)) as store:
        for number, text in enumerate(answers):
            store.append(f"chat {number}", [user(QUESTION), Message("assistant", (Text(text),))])
    return path


# simonw/llm 0.31, llm/migrations.py, read on 2026-11-19; only what an audit meets.
_LLM = """
CREATE TABLE conversations (id TEXT PRIMARY KEY, name TEXT, model TEXT);
CREATE TABLE responses (
    id TEXT PRIMARY KEY, model TEXT, prompt TEXT, system TEXT, prompt_json TEXT, options_json TEXT, response TEXT,
    response_json TEXT, conversation_id TEXT REFERENCES conversations(id), duration_ms INTEGER, datetime_utc TEXT
);
CREATE VIRTUAL TABLE responses_fts USING FTS5 (prompt, response, content=responses);
CREATE TRIGGER responses_ai AFTER INSERT ON responses BEGIN
    INSERT INTO responses_fts (rowid, prompt, response) VALUES (new.rowid, new.prompt, new.response);
END;
CREATE TRIGGER responses_au AFTER UPDATE ON responses BEGIN
    INSERT INTO responses_fts (responses_fts, rowid, prompt, response)
        VALUES ('delete', old.rowid, old.prompt, old.response);
    INSERT INTO responses_fts (rowid, prompt, response) VALUES (new.rowid, new.prompt, new.response);
END;
CREATE TABLE tool_results (id INTEGER PRIMARY KEY, response_id TEXT, name TEXT, output TEXT);
"""


def write_llm(folder: Path, answers: Sequence[str]) -> Path:
    path = folder / "logs.db"
    with closing(sqlite3.connect(path)) as database:
        database.executescript(_LLM)
        for number, text in enumerate(answers):
            inner = json.dumps({"messages": [{"role": "user", "content": QUESTION}]})
            database.execute(
                "INSERT INTO responses (id, model, prompt, prompt_json, response, response_json) VALUES (?,?,?,?,?,?)",
                (f"01ab{number}", "ollama/qwen3", QUESTION, inner, text, json.dumps({"usage": {}})),
            )
            database.execute("INSERT INTO tool_results (name, output) VALUES ('read', '<think>a</think>b')")
        database.commit()
    return path


def write_llm_messages(folder: Path, answers: Sequence[str]) -> Path:
    """From 0.32 on: the message store (llm/message_store.py, read on 2026-11-19)."""
    path = folder / "new-logs.db"
    with closing(sqlite3.connect(path)) as database:
        database.executescript(
            "CREATE TABLE messages (id TEXT PRIMARY KEY, role TEXT, parts TEXT, provider_metadata TEXT,"
            " first_seen_utc TEXT) WITHOUT ROWID;"
        )
        for number, text in enumerate(answers):
            asked = json.dumps([{"type": "text", "text": QUESTION}])
            answered = json.dumps([{"type": "reasoning", "text": PLACED}, {"type": "text", "text": text}])
            database.execute("INSERT INTO messages (id, role, parts) VALUES (?, 'user', ?)", (f"q{number}", asked))
            database.execute(
                "INSERT INTO messages (id, role, parts) VALUES (?, 'assistant', ?)", (f"a{number}", answered)
            )
        database.commit()
    return path


# open-webui/open-webui, backend/open_webui/models/chats.py and chat_messages.py, read on 2026-11-19.
_WEBUI = """
CREATE TABLE chat (
    id VARCHAR PRIMARY KEY, user_id VARCHAR NOT NULL, title TEXT NOT NULL, chat JSON, share_id TEXT UNIQUE,
    archived INTEGER, created_at BIGINT, updated_at BIGINT, meta JSON
);
CREATE TABLE chat_message (
    id TEXT PRIMARY KEY, chat_id TEXT NOT NULL, user_id TEXT, role TEXT NOT NULL, content JSON, output JSON,
    model_id TEXT, created_at BIGINT
);
CREATE TABLE prompt (id INTEGER PRIMARY KEY, command VARCHAR, content TEXT);
"""
PLACED_DETAILS = (
    f'<details type="reasoning" done="true" duration="3">\n<summary>Thought for 3 seconds</summary>\n> {PLACED}\n'
    "</details>\nIt is 42."
)


def _open_webui(path: Path) -> sqlite3.Connection:
    database = sqlite3.connect(path)
    database.executescript(_WEBUI)
    database.execute("INSERT INTO prompt (command, content) VALUES ('/think', '<think>{{x}}</think>y')")
    return database


def write_open_webui(folder: Path, answers: Sequence[str]) -> Path:
    path = folder / "webui.db"
    with closing(_open_webui(path)) as database:
        for number, text in enumerate([*answers, PLACED_DETAILS]):
            messages = {
                "u": {"id": "u", "role": "user", "content": QUESTION, "childrenIds": ["a"]},
                "a": {"id": "a", "role": "assistant", "content": text, "model": "qwen3:8b", "done": True},
            }
            chat = {"title": "Chat", "models": ["qwen3:8b"], "history": {"messages": messages, "currentId": "a"}}
            database.execute(
                "INSERT INTO chat (id, user_id, title, chat) VALUES (?, 'me', 'Chat', ?)",
                (f"c{number}", json.dumps(chat)),
            )
        database.commit()
    return path


def write_open_webui_messages(folder: Path, answers: Sequence[str]) -> Path:
    path = folder / "new-webui.db"
    with closing(_open_webui(path)) as database:
        for number, text in enumerate([*answers, PLACED_DETAILS]):
            for role, content in (("user", QUESTION), ("assistant", text)):
                database.execute(
                    "INSERT INTO chat_message (id, chat_id, role, content, model_id) VALUES (?, 'c', ?, ?, 'qwen3:8b')",
                    (f"c-{role}{number}", role, json.dumps(content)),
                )
        database.commit()
    return path


LINES: dict[str, Writer] = {
    "completions": write_completions,
    "chat messages": write_chat_messages,
    "ShareGPT": write_sharegpt,
    "CSV": write_csv,
    "Claude Code": write_claude_code,
    "Codex": write_codex,
    "OTLP traces": write_otlp,
    "OTLP logs": write_structured_otlp,
    "saved conversation": write_saved_conversation,
}
DATABASES: dict[str, Writer] = {
    "store": write_store,
    "llm": write_llm,
    "llm messages": write_llm_messages,
    "Open WebUI": write_open_webui,
    "Open WebUI messages": write_open_webui_messages,
}
LOGS: dict[str, Writer] = {
    "log": write_log,
    "log with JSON": write_log_with_json,
    "stream": write_stream_log,
}
SOURCES: dict[str, Writer] = {**LINES, **DATABASES, **LOGS}
