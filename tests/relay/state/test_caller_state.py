"""The state of a request: a store that fails costs no answer."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from asides.relay.relay_request import RelayRequest
from asides.relay.steps import StoredRecord
from asides.relay.vault.memory_vault import MemoryVault
from asides.relay.vault.open_vault import open_vault
from asides_stage import Stage
from asides_stage.stage import Say
from tests.relay.relaying import Door


class _Broken(MemoryVault):
    def read(self, tenant: str, keys: Sequence[str]) -> Sequence[StoredRecord]:
        raise OSError

    def write(self, tenant: str, record: StoredRecord) -> None:
        raise OSError

    def delete(self, tenant: str, keys: Sequence[str]) -> int:
        raise OSError


def test_a_store_that_fails_costs_no_answer() -> None:
    with Stage(Say(thinking="t", text="Hi")) as stage:
        door = Door(stage, records=_Broken())
        response = door.send(
            RelayRequest("", "POST", "/v1/responses", body=b'{"model":"deepseek:deepseek-v4-pro","input":"?"}')
        )
    assert response.status == 200
    assert response.json["output"][-1]["content"][0]["text"] == "Hi"
    assert response.outcome is not None
    assert any(notice.code == "relay_store_failed" for notice in response.outcome.notices)
    assert "relay_store_failed" in response.headers["x-asides-notice"]


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
@pytest.mark.parametrize(
    ("headers", "more", "is_retry"),
    [
        ({}, {}, False),
        ({"user-agent": "one/1", "x-app": "cli"}, {}, False),
        ({}, {"prompt_cache_key": "all", "user": "one"}, False),
        ({"x-session-id": ""}, {}, False),
        ({"x-session-id": "one"}, {}, True),
        ({"x-claude-code-session-id": "one"}, {}, True),
    ],
    ids=["no-session", "only-the-client", "fields-of-the-body", "an-empty-session", "a-session", "claude-code"],
)
def test_only_a_session_shows_that_an_equal_request_is_a_retry(
    kind: str, headers: dict[str, str], more: dict[str, Any], is_retry: bool, tmp_path: Path
) -> None:
    """The process is killed after the first reply, before it is confirmed; the same request gets the same words, and
    other thinking. Without a session, neither thinking goes back, and a notice says so."""
    scenes = [Say(thinking="plan A", text="Hi"), Say(thinking="plan B", text="Hi"), Say(text="Bye")]
    vault = open_vault("store" if kind == "sqlite" else "memory", tmp_path / "vault.db" if kind == "sqlite" else None)
    with closing(vault), Stage(scenes) as stage:
        door = Door(stage, records=vault.store, keys=vault.keys, state_mode=vault.mode)

        def ask(*messages: dict[str, str], confirms: bool = True) -> str:
            body = {"model": "anthropic:claude-sonnet-4-5", "messages": messages, "reasoning_effort": "low", **more}
            request = RelayRequest("", "POST", "/v1/chat/completions", headers=headers, body=msgspec.json.encode(body))
            stream, start = door.open(request)
            assert start.status == 200
            assert b"".join(stream)
            if confirms:
                stream.confirm()
            return start.headers.get("x-asides-notice", "")

        first = {"role": "user", "content": "Hello"}
        ask(first, confirms=False)
        time.sleep(0.2)
        ask(first)
        notice = ask(first, {"role": "assistant", "content": "Hi"}, {"role": "user", "content": "And?"})
        sent = stage.requests[-1].body.decode()
    assert "plan A" not in sent
    assert ("plan B" in sent) == is_retry
    assert ("relay_state_ambiguous" in notice) != is_retry
