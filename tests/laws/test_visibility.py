"""The law of sinks: with defaults a canary thought and its seals are in the reply and in what goes back, and nowhere
else; with any other policy, a sink has exactly what the policy and the switch allow.
"""

from __future__ import annotations

import itertools
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest

import asides
from asides.conversations.store.sqlite import SqliteStore
from asides.testing.stage import OpenStage, Say, Stage
from tests.cli.children import here

RAW, SUMMARY, SEAL = "canary-raw-thinking", "canary-summary-thinking", "canaryseal0123456789"
Kind = Literal["raw", "summary", "sealed"]
CANARIES: dict[Kind, str] = {"raw": RAW, "summary": SUMMARY, "sealed": SEAL}
ALL: tuple[Kind, ...] = ("raw", "summary", "sealed")
EVERY_SET: list[tuple[Kind, ...]] = [kinds for size in range(4) for kinds in itertools.combinations(ALL, size)]
READABLE: list[tuple[Kind, ...]] = [kinds for kinds in EVERY_SET if "sealed" not in kinds]
QUESTION = "Why?"


def scene(kind: Kind) -> Say:
    """A reply whose thinking is of this kind, with a seal."""
    text = RAW if kind == "raw" else SUMMARY
    shown: Any = "raw" if kind == "raw" else "summary"
    return Say(
        events=(
            asides.ReplyStarted("m", "r1"),
            asides.ThinkingDelta(text, 0, shown, "block"),
            asides.ThoughtSealed(asides.Seal("signature", SEAL), 0),
            asides.TextDelta("Because.", 1),
            asides.ReplyEnded(asides.StopReason("stop", "end_turn")),
        )
    )


RULE = {"raw": "claude-3-7-sonnet-20250219", "summary": "claude-sonnet-4-5"}


def found(written: object) -> set[Kind]:
    """The canaries in something that was written."""
    text = written if isinstance(written, str) else repr(written)
    return {kind for kind, canary in CANARIES.items() if canary in text}


def ask(stage: Stage, **client: Any) -> tuple[asides.Client, dict[str, Any]]:
    return asides.Client(settings=asides.Settings(), **client), {"base_url": stage.url, "api_key": "k"}


@pytest.fixture(autouse=True)
def _silent_logs(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    with caplog.at_level(logging.DEBUG):
        yield
    assert found("".join(record.getMessage() for record in caplog.get_records("call"))) == set()


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ASIDES_STATE", str(tmp_path / "state"))
    return tmp_path / "state"


def model_of(kind: Kind) -> str:
    return f"anthropic:{RULE[kind]}"


both_kinds = pytest.mark.parametrize("kind", ["raw", "summary"])


# --- defaults ---------------------------------------------------------------------------------------------------------


@both_kinds
def test_with_defaults_no_sink_has_any_of_it(stage: OpenStage, kind: Kind, tmp_path: Path) -> None:
    server = stage(scene(kind), scene(kind), scene(kind))
    client, options = ask(server)
    store = SqliteStore(tmp_path / "store.db")
    chat = asides.Conversation(model_of(kind), client=client, store=store, name="talk")
    reply = chat.ask(QUESTION, **options)
    assert reply.thinking
    assert found(reply.thinking.text) == {kind}
    assert found([seal.value for seal in reply.seals]) == {"sealed"}
    saved = tmp_path / "saved.json"
    chat.save(saved)
    sinks: dict[str, object] = {
        "text": reply.text,
        "repr": f"{reply!r}{reply.parts!r}{chat.messages!r}",
        "to_dict": reply.to_dict(),
        "to_json": reply.to_json(),
        "events": [event.to_dict() for event in asides.simulate(reply)],
        "message": chat.messages[-1].to_dict(),
        "saved": saved.read_text(encoding="utf-8"),
        "stored": (tmp_path / "store.db").read_bytes().decode("latin-1"),
        "openai": chat.to_openai(),
        "anthropic": chat.to_anthropic(),
        "responses": chat.to_responses(),
        "agent": asides.Agent(model_of(kind), client=client, **options).run(QUESTION).to_json(),
    }
    assert {name: found(sink) for name, sink in sinks.items()} == {name: set() for name in sinks}
    chat.ask("And?", thinking=2048, max_tokens=4096, **options)
    assert found(server.requests[-1].json) <= {kind, "sealed"}  # what goes back to the provider that made it


@both_kinds
def test_with_defaults_the_command_line_shows_none_of_it(
    stage: OpenStage, kind: Kind, state: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server = stage(*[scene(kind)] * 3)
    to = ["-m", model_of(kind), "--base-url", server.url, "--api-key", "k"]
    ended = here(capsys, "ask", *to, "--no-stdin", "--conversation", "talk", QUESTION)
    assert (ended.out, found(ended.err)) == ("Because.\n", set())
    shown = [here(capsys, "history", *words) for words in (["show", "talk"], ["export", "talk"])]
    assert [found(each.out + each.err) for each in shown] == [set(), set()]
    rows = tmp_path / "rows.jsonl"
    rows.write_text(json.dumps({"prompt": QUESTION}) + "\n", encoding="utf-8")
    each = here(capsys, "ask", *to, "--each", str(rows), "-o", str(tmp_path / "out.jsonl"))
    assert each.code == 0, each.err
    assert found((tmp_path / "out.jsonl").read_text(encoding="utf-8") + each.out + each.err) == set()
    assert found((state / "conversations.db").read_bytes().decode("latin-1")) == set()


# --- every other policy -----------------------------------------------------------------------------------------------


@both_kinds
@pytest.mark.parametrize("app", EVERY_SET, ids=str)
def test_what_a_program_writes_has_what_app_allows(stage: OpenStage, kind: Kind, app: tuple[Kind, ...]) -> None:
    client, options = ask(stage(scene(kind)), visibility={"app": app})
    chat = asides.Conversation(model_of(kind), client=client)
    reply = chat.ask(QUESTION, thinking_encrypted=True, **options)
    readable = {kind} & set(app)
    everything = reply.to_dict(thinking=True, seals=True, raw=True)
    assert found(everything) == {kind, "sealed"} & set(app)
    assert found(reply.to_json(thinking=True, seals=True)) == {kind, "sealed"} & set(app)
    assert found(reply.to_dict(thinking=True)) == readable
    assert found(dict(reply.metadata)) <= {kind, "sealed"} & set(app)
    assert found(reply.with_tags()) == readable
    assert found(chat.to_anthropic(thinking=True)) <= {kind, "sealed"} & set(app)
    assert reply.thinking
    assert found(reply.thinking.text) == {kind}  # the program's own


@both_kinds
@pytest.mark.parametrize("keep_thinking", [False, True])
@pytest.mark.parametrize("history", EVERY_SET, ids=str)
def test_what_is_saved_has_what_history_allows(
    stage: OpenStage, kind: Kind, history: tuple[Kind, ...], keep_thinking: bool, tmp_path: Path
) -> None:
    client, options = ask(stage(scene(kind), scene(kind)), visibility=asides.Visibility(history=history))
    if keep_thinking and not {"raw", "summary"} & set(history):
        with pytest.raises(asides.ConfigError, match="visibility of history"):
            asides.Conversation(model_of(kind), client=client, keep_thinking=True)
        return
    store = SqliteStore(tmp_path / "store.db")
    chat = asides.Conversation(model_of(kind), client=client, store=store, name="talk", keep_thinking=keep_thinking)
    chat.ask(QUESTION, **options)
    chat.save(tmp_path / "saved.json")
    # The signature covers the text, so it is of no use without it.
    kept = {kind, "sealed"} & set(history) if keep_thinking and kind in history else set[str]()
    assert found((tmp_path / "saved.json").read_text(encoding="utf-8")) == kept
    assert found(repr([message.to_dict(thinking=True, seals=True) for message in store.load("talk").messages])) == kept  # type: ignore[union-attr]
    asides.Conversation(client=client, store=store, name="talk").ask("And?", **options)  # the next turn is accepted


@both_kinds
@pytest.mark.parametrize("user", READABLE, ids=str)
def test_the_command_line_shows_what_user_allows(
    stage: OpenStage,
    kind: Kind,
    user: tuple[Kind, ...],
    state: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ASIDES_VISIBILITY_USER", ",".join(user) or "none")
    monkeypatch.setenv("ASIDES_KEEP_THINKING", "true")
    server = stage(scene(kind), scene(kind))
    to = ["-m", model_of(kind), "--base-url", server.url, "--api-key", "k"]
    ended = here(capsys, "ask", *to, "--no-stdin", "-t", "--conversation", "talk", QUESTION)
    assert ended.out == "Because.\n"
    assert found(ended.err) == {kind} & set(user)
    assert ("[visibility]" in ended.err) == (kind not in user)
    assert found(here(capsys, "history", "show", "talk", "-t").out) == {kind} & set(user)
    rows, out = tmp_path / "rows.jsonl", tmp_path / "out.jsonl"
    rows.write_text(json.dumps({"prompt": QUESTION}) + "\n", encoding="utf-8")
    assert here(capsys, "ask", *to, "-t", "--each", str(rows), "-o", str(out)).code == 0
    assert found(out.read_text(encoding="utf-8")) == {kind} & set(user)


@both_kinds
@pytest.mark.parametrize("app", EVERY_SET, ids=str)
def test_json_and_exports_of_the_command_line_have_what_app_allows(
    stage: OpenStage,
    kind: Kind,
    app: tuple[Kind, ...],
    state: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ASIDES_VISIBILITY_APP", ",".join(app) or "none")
    monkeypatch.setenv("ASIDES_KEEP_THINKING", "true")
    to = ["-m", model_of(kind), "--base-url", stage(scene(kind)).url, "--api-key", "k"]
    printed = json.loads(here(capsys, "ask", *to, "--no-stdin", "--json", "--conversation", "talk", QUESTION).out)
    assert found(printed) == {kind} & set(app)
    assert ("thinking_withheld" in [warning["code"] for warning in printed["warnings"]]) == (kind not in app)
    exported = here(capsys, "history", "export", "talk", "-t").out
    assert found(exported) == ({kind, "sealed"} & set(app) if kind in app else set())
    assert found(here(capsys, "history", "show", "talk", "-t", "--json").out) <= {kind, "sealed"} & set(app)


# --- settings ---------------------------------------------------------------------------------------------------------


def test_a_file_that_came_with_a_folder_may_only_take_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "config" / "asides"
    own.mkdir(parents=True)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (own / "asides.toml").write_text('[visibility]\nuser = ["summary"]\ntrace = ["raw", "summary"]\n', encoding="utf-8")
    there = tmp_path / "there"
    there.mkdir()
    monkeypatch.chdir(there)
    (there / "asides.toml").write_text(
        '[visibility]\nuser = ["raw", "summary"]\nlog = ["raw"]\ntrace = ["summary"]\nhistory = ["sealed"]\n',
        encoding="utf-8",
    )
    settings = asides.load_settings({"XDG_CONFIG_HOME": str(tmp_path / "config")})
    assert settings.visibility == asides.Visibility(user=("summary",), trace=("summary",), history=("sealed",))
    assert settings.origin("visibility.history") == "file asides.toml"


def test_code_wins_over_settings(stage: OpenStage) -> None:
    strict = asides.Settings(visibility=asides.Visibility(app=()))
    server = stage(scene("raw"), scene("raw"))
    options: dict[str, Any] = {"base_url": server.url, "api_key": "k"}
    limited = asides.Client(settings=strict).ask(model_of("raw"), QUESTION, **options)
    free = asides.Client(settings=strict, visibility=asides.Visibility()).ask(model_of("raw"), QUESTION, **options)
    assert (found(limited.to_dict(thinking=True)), found(free.to_dict(thinking=True))) == (set(), {"raw"})
