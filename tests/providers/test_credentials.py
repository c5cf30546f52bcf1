"""Keys from callers and variables, which no output may show."""

from __future__ import annotations

import copy
import logging
import pickle
import traceback

import msgspec
import pytest

from asides.providers.credentials import AwsCredentials, Secret, find_key, is_loopback
from asides.providers.find import find_provider
from asides.providers.provider import Provider, Quirks
from asides.values.errors import ConfigError, MissingKey

CANARY = "sk-canary-0123456789"
ROW = Provider(name="mine", base_url="https://mine.example/v1", key_env=("MINE_KEY", "MINE_OTHER_KEY"))


def test_only_reveal_shows_a_secret() -> None:
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
        MissingKey,
        match="mine needs an API key: set MINE_KEY or MINE_OTHER_KEY, or run `asides keys set mine`, or pass api_key=",
    ) as problem:
        find_key(ROW, None, {})
    assert problem.value.variables == ROW.key_env


@pytest.mark.parametrize(
    "address",
    [
        "http://localhost:8000/v1",
        "http://LOCALHOST",
        "http://127.0.0.1:1",
        "https://127.9.9.9/",
        "http://[::1]:80",
        "http://[::ffff:127.0.0.1]",
        "http://0.0.0.0:8000",
    ],
)
def test_a_server_on_this_machine_needs_no_key(address: str) -> None:
    assert is_loopback(address)
    assert find_key(ROW, None, {}, base_url=address) is None
    assert find_key(ROW, None, {"MINE_KEY": "k"}, base_url=address) == Secret("k")


@pytest.mark.parametrize(
    "address",
    [
        "https://localhost.example",
        "http://128.0.0.1",
        "https://mine.example",
        "https://notlocalhost",
        "",
        "localhost",
        "http://127.evil.com/v1",
        "http://127.0.0.1.evil.com",
        "http://127.0.0.1:1@evil.com",
        "http://api.localhost",
        "http://localhost.",
        "http://0.0.0.0.evil.com",
        "http://[::1.evil]",
        "http://127.1",
    ],
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
        with pytest.raises(ConfigError, match=r"[Cc]opy it again") as problem:
            find_key(ROW, explicit, environ)
        assert CANARY not in "".join(traceback.format_exception(problem.value))


# --- AWS --------------------------------------------------------------------------------------------------------------

SECRET = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"


def credentials(service: str = "service", token: str = "") -> AwsCredentials:
    return AwsCredentials("AKIDEXAMPLE", SECRET, token, region="us-east-1", service=service)


ENVIRONMENT = {"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": SECRET}
BASE_URL = "https://bedrock-runtime.eu-central-1.amazonaws.com"


def test_a_bearer_key_comes_before_credentials_that_sign() -> None:
    bedrock = find_provider("bedrock")
    both = {**ENVIRONMENT, "AWS_BEARER_TOKEN_BEDROCK": "bearer-key"}
    assert find_key(bedrock, environ=both, base_url=BASE_URL) == Secret("bearer-key")
    assert find_key(bedrock, "given", environ=both, base_url=BASE_URL) == Secret("given")


def test_credentials_know_the_region_of_the_address_and_else_of_the_environment() -> None:
    bedrock = find_provider("bedrock")
    environ = {**ENVIRONMENT, "AWS_SESSION_TOKEN": "token", "AWS_DEFAULT_REGION": "us-west-2"}
    assert find_key(bedrock, environ=environ, base_url=BASE_URL) == AwsCredentials(
        "AKIDEXAMPLE", SECRET, "token", region="eu-central-1", service="bedrock"
    )
    elsewhere = find_key(bedrock, environ=environ, base_url="http://127.0.0.1:9")
    assert isinstance(elsewhere, AwsCredentials)
    assert elsewhere.region == "us-west-2"


def test_credentials_that_no_header_takes_are_refused_without_showing_them() -> None:
    with pytest.raises(ConfigError, match="AWS_SESSION_TOKEN") as caught:
        find_key(find_provider("bedrock"), environ={**ENVIRONMENT, "AWS_SESSION_TOKEN": "to\nken"}, base_url=BASE_URL)
    assert "to\nken" not in str(caught.value)


def test_half_of_the_credentials_are_none_and_the_error_says_what_is_missing() -> None:
    with pytest.raises(MissingKey, match="AWS_BEARER_TOKEN_BEDROCK or AWS_ACCESS_KEY_ID with AWS_SECRET_ACCESS_KEY"):
        find_key(find_provider("bedrock"), environ={"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE"}, base_url=BASE_URL)


def test_credentials_do_not_show_their_values() -> None:
    mine = credentials(token="session")
    for shown in (repr(mine), str(mine), f"{mine}", f"{mine:>20}"):
        assert SECRET not in shown
        assert "session" not in shown
    assert mine == credentials(token="session")
    assert mine != credentials()
    assert len({mine, credentials(token="session"), Secret(SECRET)}) == 2
