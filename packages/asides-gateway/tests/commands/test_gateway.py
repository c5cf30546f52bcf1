"""`asides gateway key`: a key is shown once, listed without its secret, and revoked for good."""

from __future__ import annotations

import json
import re
import sys
import time
from pathlib import Path

import pytest

from asides.database.postgres_url import describe_url
from asides_gateway.access.budget_store import make_reservation, reserve, settle
from asides_gateway.access.key_store import KEY_FORM, digest_key, find_key
from asides_gateway.gateway_database import GATEWAY_FILE, open_database
from asides_gateway.gateway_settings import GatewaySettings
from tests.cli.children import here

Captured = pytest.CaptureFixture[str]


@pytest.fixture(params=["sqlite", "postgres"])
def settings(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GatewaySettings:
    """The settings of a gateway whose database the command finds."""
    if request.param == "sqlite":
        monkeypatch.setenv("ASIDES_STATE", str(tmp_path / "state"))
        return GatewaySettings(folder=tmp_path / "state")
    url = request.getfixturevalue("postgres_url")
    monkeypatch.setenv("ASIDES_STORE", url)
    return GatewaySettings(store=url)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ASIDES_STATE", str(tmp_path / "state"))
    return tmp_path / "state"


def test_a_key_is_shown_once_and_listed_with_what_it_may_and_did(settings: GatewaySettings, capsys: Captured) -> None:
    words = ("--name", "build server", "--rpm", "60", "--tpm", "9000", "--budget-day", "$2.50", "--budget-month", "40")
    made = here(capsys, "gateway", "key", "create", *words, "-m", "anthropic:*", "-m", "fast", "--tenant", "team")
    key = made.out.strip()
    assert (made.code, made.out.count("\n")) == (0, 1)
    assert KEY_FORM.fullmatch(key)
    assert key not in made.err
    assert "shown only now" in made.err
    place = str(settings.folder / GATEWAY_FILE) if settings.folder is not None else describe_url(str(settings.store))
    assert f"with the name build server in {place}: 60 requests/min" in made.err
    assert "note: " not in made.err
    database = open_database(settings)
    record = database.run(lambda: find_key(digest_key(key)), writes=False)
    assert record is not None
    wanted = make_reservation(record.id, 10**9)
    database.run(lambda: reserve(wanted, time.time()))
    database.run(lambda: settle(wanted, 25 * 10**7))
    listed = here(capsys, "gateway", "key", "list")
    assert listed.code == 0
    for part in (record.id, "build server", "valid", "$0.2500", "never", "60 requests/min", "9000 tokens/min", "$2.5"):
        assert part in listed.out
    assert "anthropic:* fast" in listed.out
    assert key[20:] not in listed.out + listed.err
    [found] = json.loads(here(capsys, "gateway", "key", "list", "--json").out)
    assert (found["spent_day"], found["spent_month"], found["tenant"]) == (0.25, 0.25, "team")
    assert (found["models"], found["state"], found["budget_month"]) == (["anthropic:*", "fast"], "valid", 40.0)
    assert "key" not in found
    assert "digest" not in found
    database.close()


def test_a_key_says_when_it_expires(folder: Path, capsys: Captured) -> None:
    made = here(capsys, "gateway", "key", "create", "--name", "guest", "--expires", "2099-01-31")
    listed = here(capsys, "gateway", "key", "list")
    for shown in (made.err, listed.out):
        assert re.search(r"no limits, expires 2099-01-3\d \d\d:\d\d", shown)


def test_what_may_be_a_mistake_is_noted(folder: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    patterns = ("antropic:*", "a*:x", "claude-*", "anthropic:*", "gemini:*", "nobody-knows:x")
    words = [word for pattern in patterns for word in ("-m", pattern)]
    made = here(capsys, "gateway", "key", "create", "--name", "guest", *words, "--budget-day", "5")
    notes = [line for line in made.err.splitlines() if line.startswith("note: ")]
    assert made.code == 0
    assert len(notes) == 3
    assert notes[0].endswith("no provider is called 'antropic' here; did you mean anthropic?")
    assert notes[1].endswith("no provider is called 'nobody-knows' here; `asides providers` lists those that are.")
    assert "pip install 'asides[prices]' where the gateway runs" in notes[2]


def test_a_key_is_revoked_where_redis_is_not_installed(
    folder: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    here(capsys, "gateway", "key", "create", "--name", "guest")
    monkeypatch.setenv("ASIDES_GATEWAY_REDIS", "redis://127.0.0.1:1/0")
    for name in ("redis", "redis.exceptions"):
        monkeypatch.setitem(sys.modules, name, None)
    done = here(capsys, "gateway", "key", "revoke", "guest", "--yes")
    assert done.code == 0
    assert "warning: Redis needs the package redis, which is not installed. Run pip install 'asides" in done.err
    assert "revoked the key" in done.err


def test_a_revoked_key_stays_in_the_list_and_its_name_is_free(settings: GatewaySettings, capsys: Captured) -> None:
    first = json.loads(here(capsys, "gateway", "key", "create", "--name", "guest", "--json").out)
    assert KEY_FORM.fullmatch(first["key"])
    taken = here(capsys, "gateway", "key", "create", "--name", "guest")
    assert (taken.code, taken.out) == (2, "")
    assert first["id"] in taken.err
    unasked = here(capsys, "gateway", "key", "revoke", "guest")
    assert unasked.code == 2
    assert "--yes" in unasked.err
    done = here(capsys, "gateway", "key", "revoke", "guest", "--yes")
    assert done.code == 0
    again = here(capsys, "gateway", "key", "revoke", first["id"], "--yes")
    assert (again.code, "already" in again.err) == (0, True)
    second = here(capsys, "gateway", "key", "create", "--name", "guest").out.strip()
    by_key = here(capsys, "gateway", "key", "revoke", second, "-y", "--json")
    assert json.loads(by_key.out)["revoked"] in second
    states = [each["state"] for each in json.loads(here(capsys, "gateway", "key", "list", "--json").out)]
    assert states == ["revoked", "revoked"]


def test_expiry_is_a_span_or_a_date(folder: Path, capsys: Captured) -> None:
    for number, (text, least, most) in enumerate(
        (("30d", 29.9, 30.1), ("12h", 0.4, 0.6), ("4w", 27.9, 28.1), ("90m", 0.05, 0.07), ("2999-01-31", 1e5, 1e6))
    ):
        made = here(capsys, "gateway", "key", "create", "--name", f"k{number}", "--expires", text, "--json")
        days = (json.loads(made.out)["expires"] - time.time()) / 86400
        assert least < days < most, text
    assert json.loads(here(capsys, "gateway", "key", "list", "--json").out)[0]["state"] == "valid"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("key", "create"), "--name"),
        (("key", "create", "--name", " "), "--name"),
        (("key", "create", "--name", "a\nb"), "--name"),
        (("key", "create", "--name", "a", "--tenant", " \n"), "--tenant"),
        (("key", "create", "--name", "x" * 101), "--name"),
        (("key", "create", "--name", "sk-asides-abcdefgh-" + "x" * 40), "or a key"),
        (("key", "create", "--name", "a", "--rpm", "0"), "--rpm"),
        (("key", "create", "--name", "a", "--tpm", "-5"), "--tpm"),
        (("key", "create", "--name", "a", "--budget-day", "0"), "--budget-day"),
        (("key", "create", "--name", "a", "--budget-day", "NaN"), "--budget-day"),
        (("key", "create", "--name", "a", "--budget-month", "lots"), "--budget-month"),
        (("key", "create", "--name", "a", "--budget-month", "1e99"), "--budget-month"),
        (("key", "create", "--name", "a", "--expires", "2020-01-01"), "--expires"),
        (("key", "create", "--name", "a", "--expires", "soon"), "--expires"),
        (("key", "create", "--name", "a", "--expires", "0d"), "--expires"),
        (("key", "create", "--name", "a", "-m", " "), "--model"),
        (("key", "create", "extra", "--name", "a"), "takes no name or id"),
        (("key", "list", "--rpm", "5"), "--rpm belongs"),
        (("key", "revoke"), "name one key"),
        (("key", "revoke", "a", "b"), "name one key"),
        (("key", "revoke", "nobody", "--yes"), "'nobody'"),
        (("key", "rename"), "create, list or revoke"),
        (("lock",), "invalid choice"),
    ],
)
def test_mistakes_change_nothing_and_say_what_to_do(
    folder: Path, capsys: Captured, words: tuple[str, ...], told: str
) -> None:
    ended = here(capsys, "gateway", *words)
    assert (ended.code, ended.out) == (2, "")
    assert told in ended.err
    if "create" in words:
        assert not (folder / GATEWAY_FILE).exists()


@pytest.mark.parametrize("words", [("revoke", "--yes"), ("list",), ()])
def test_a_pasted_key_is_not_repeated(folder: Path, capsys: Captured, words: tuple[str, ...]) -> None:
    ended = here(capsys, "gateway", "key", *words, f"sk-asides-abcdefgh-{'s3cr3t' * 8}")
    assert ended.code == 2
    assert "s3cr3t" not in ended.err


def test_another_folder(tmp_path: Path, capsys: Captured, folder: Path) -> None:
    other = tmp_path / "other"
    assert here(capsys, "gateway", "key", "create", "--name", "a", "--folder", str(other)).code == 0
    assert (other / GATEWAY_FILE).exists()
    empty = here(capsys, "gateway", "key", "list")
    assert (empty.code, empty.out) == (0, "")
    assert "there are no keys" in empty.err


def test_a_server_that_is_down_is_named_without_its_password(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASIDES_STORE", "postgresql://me:s3cret@127.0.0.1:1/x")
    for words in (("list",), ("create", "--name", "a"), ("revoke", "a", "--yes")):
        ended = here(capsys, "gateway", "key", *words)
        assert ended.code != 0
        assert "127.0.0.1:1" in ended.err
        assert "s3cret" not in ended.err + ended.out
