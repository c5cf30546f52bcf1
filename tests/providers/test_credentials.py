"""Keys: who has the say, and that nobody sees them."""

from __future__ import annotations

import copy
import logging
import pickle
import traceback

import msgspec
import pytest

from asides.providers.credentials import Secret, find_key, is_loopback
from asides.providers.provider import Provider, Quirks
from asides.values.errors import ConfigError, MissingKey

CANARY = "sk-canary-0123456789"
ROW = Provider(name="mine", base_url="https://mine.example/v1", key_env=("MINE_KEY", "MINE_OTHER_KEY"))


def test_a_secret_shows_itself_to_nobody_but_reveal() -> None:
    secret = Secret(CANARY)
    shown = [
        repr(secret),
        str(secret),
        f"{secret}",
        f"{secret!r:>20}",
        f"{secret:>10}",
        str([secret]),
    ]
    assert [text for text in shown if CANARY in text or "canary" in text] == []
    assert secret.reveal() == CANARY


def test_a_secret_is_not_written_down_by_accident() -> None:
    for write in (pickle.dumps, copy.deepcopy, msgspec.json.encode):
        with pytest.raises(TypeError) as problem:
            write(Secret(CANARY))
        assert CANARY not in str(problem.value)


def test_a_secret_stays_out_of_logs(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        logging.getLogger("test").debug("key %s %r", Secret(CANARY), {"key": Secret(CANARY)})
    assert "***" in caplog.text
    assert CANARY not in caplog.text


def test_secrets_are_equal_by_value() -> None:
    assert Secret("a") == Secret("a")
    assert Secret("a") != Secret("b")
    assert Secret("a") != "a"
    assert len({Secret("a"), Secret("a")}) == 1


def test_the_key_that_was_given_wins_over_the_environment() -> None:
    assert find_key(ROW, "given", {"MINE_KEY": "found"}) == Secret("given")
    assert find_key(ROW, Secret("given"), {"MINE_KEY": "found"}) == Secret("given")


def test_the_first_variable_that_is_set_wins_and_a_blank_one_is_not_set() -> None:
    assert find_key(ROW, None, {"MINE_KEY": "first", "MINE_OTHER_KEY": "second"}) == Secret("first")
    assert find_key(ROW, None, {"MINE_KEY": " ", "MINE_OTHER_KEY": "second\n"}) == Secret("second")
    assert find_key(ROW, "", {"MINE_KEY": "first"}) == Secret("first")


def test_the_environment_is_read_when_asked_and_not_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINE_KEY", "later")
    assert find_key(ROW) == Secret("later")


def test_a_missing_key_names_the_provider_and_what_to_set() -> None:
    with pytest.raises(
        MissingKey, match="mine needs an API key: set MINE_KEY or MINE_OTHER_KEY, or pass api_key="
    ) as problem:
        find_key(ROW, None, {})
    assert problem.value.variables == ROW.key_env


@pytest.mark.parametrize(
    "address",
    ["http://localhost:8000/v1", "http://127.0.0.1:1", "https://127.9.9.9/", "http://[::1]:80", "http://api.localhost"],
)
def test_nobody_needs_a_key_on_this_machine(address: str) -> None:
    assert is_loopback(address)
    assert find_key(ROW, None, {}, base_url=address) is None
    assert find_key(ROW, None, {"MINE_KEY": "k"}, base_url=address) == Secret("k")


@pytest.mark.parametrize(
    "address",
    ["https://localhost.example", "http://128.0.0.1", "https://mine.example", "https://notlocalhost", "", "localhost"],
)
def test_elsewhere_a_key_is_needed(address: str) -> None:
    assert not is_loopback(address)
    with pytest.raises(MissingKey):
        find_key(ROW, None, {}, base_url=address)


def test_an_optional_key_may_be_missing_and_no_auth_never_looks() -> None:
    optional = msgspec.structs.replace(ROW, key="optional")
    assert find_key(optional, None, {}) is None
    open_door = msgspec.structs.replace(ROW, quirks=Quirks(auth="nothing"))
    assert find_key(open_door, "given", {"MINE_KEY": "found"}) is None


@pytest.mark.parametrize("bad", [f"{CANARY}\nX-Other: 1", f"{CANARY} two", f"{CANARY}é", f"{CANARY}\x00"])
def test_a_key_that_no_header_takes_is_refused_without_showing_it(bad: str) -> None:
    for explicit, environ in ((bad, {}), (None, {"MINE_KEY": bad})):
        with pytest.raises(ConfigError, match="copy it again") as problem:
            find_key(ROW, explicit, environ)
        assert CANARY not in "".join(traceback.format_exception(problem.value))
