"""ASIDES_STAGE moves every row to the stage, takes its keys away, and leaves alone what answers on this machine."""

from __future__ import annotations

import msgspec
import pytest

import asides
from asides.providers.find import find_target
from asides.providers.provider import LAUNCH_URL, Provider
from asides.providers.stage_switch import move_to_stage, read_stage_switch
from asides_stage import Say, Stage

_REMOTE = [row for row in asides.list_providers() if not row.launcher]


@pytest.mark.parametrize(
    ("value", "read"),
    [
        ("", None),
        ("0", None),
        ("Off", None),
        ("1", ""),
        (" TRUE ", ""),
        ("http://127.0.0.1:8765/v1", "http://127.0.0.1:8765/v1"),
        ("http://localhost:8765/v1/", "http://localhost:8765/v1"),
        ("http://[::1]:8765/v1", "http://[::1]:8765/v1"),
    ],
)
def test_the_switch_is_off_on_or_an_address(value: str, read: str | None) -> None:
    assert read_stage_switch({"ASIDES_STAGE": value}) == read


@pytest.mark.parametrize(
    "value", ["2", "stage", "http://stage.example/v1", "http://127.0.0.1.evil.example/v1", "https://10.0.0.1/v1"]
)
def test_any_other_value_is_refused_before_a_byte_is_sent(value: str) -> None:
    with pytest.raises(asides.ConfigError, match=r"ASIDES_STAGE .* Set it to 1"):
        find_target("openai:gpt-5.2", environ={"ASIDES_STAGE": value})


@pytest.mark.parametrize("row", _REMOTE, ids=lambda row: row.name)
def test_no_provider_is_reached_and_no_variable_is_needed(row: Provider) -> None:
    target = find_target(f"{row.name}:m", environ={"ASIDES_STAGE": "1"})
    assert (target.base_url, target.launches, target.foreign) == (f"{LAUNCH_URL}/v1", True, False)
    assert (target.provider.key_env, target.provider.key, target.provider.signing) == ((), "optional", "nothing")


def test_the_secrets_of_a_row_stay_at_home() -> None:
    row = Provider(
        name="mine",
        base_url="https://mine.example/v1?key=of-the-address",
        headers=(("X-Auth-Token", "of-the-header"), ("X-Team", "blue")),
        query=(("key", "of-the-row"),),
    )
    moved = move_to_stage(row, None, {"ASIDES_STAGE": "1"})
    assert moved is not None
    assert moved.headers == (("X-Team", "blue"),)
    assert "of-the" not in msgspec.json.encode(moved).decode()


def test_a_model_on_this_machine_answers_itself() -> None:
    assert move_to_stage(asides.find_provider("local"), None, {"ASIDES_STAGE": "1"}) is None


def test_a_stage_that_the_program_opened_is_left_alone_until_it_closes() -> None:
    environ = {"ASIDES_STAGE": "1"}
    with Stage([Say(text="mine")]) as stage:
        row = Provider(name="mine", base_url=stage.url)
        assert move_to_stage(asides.find_provider("openai"), stage.url, environ) is None
        assert move_to_stage(row, None, environ) is None
        assert move_to_stage(row, "https://elsewhere.example/v1", environ) is not None
    assert move_to_stage(row, None, environ) is not None


def test_a_target_follows_the_switch(monkeypatch: pytest.MonkeyPatch) -> None:
    addresses: list[str] = []
    for value in ("", "1", "0"):
        monkeypatch.setenv("ASIDES_STAGE", value)
        addresses.append(find_target("openai:gpt-5.2").base_url)
    assert addresses == ["https://api.openai.com/v1", f"{LAUNCH_URL}/v1", "https://api.openai.com/v1"]


def test_explain_shows_the_request_that_ask_would_send(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASIDES_STAGE", "1")
    request = asides.explain("openai:gpt-5.2", "hi")
    assert request.url == f"{LAUNCH_URL}/v1/responses"
    assert [notice.code for notice in request.notices] == ["answered_by_stage"]
