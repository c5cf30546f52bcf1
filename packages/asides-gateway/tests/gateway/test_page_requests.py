"""Requests of the page: errors as JSON, with what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from asides.conversations.store import StoreConflict
from asides.conversations.store.conversation_names import STORE_FILE
from asides.database import StoreError
from asides.values.errors import AsidesError, ConfigError, ConnectionLost, MissingKey, RateLimited, UnknownModel
from asides_gateway.page_requests import describe_error, find_status, name_error
from asides_gateway.page_store import PageStore
from tests.gateway.page_client import page_gateway


@pytest.mark.parametrize(
    ("problem", "code", "status"),
    [
        (UnknownModel("no"), "unknown_model", 400),
        (MissingKey("Acme", ("ACME_KEY",)), "missing_key", 400),
        (ConfigError("no"), "config_error", 400),
        (StoreError("no"), "store_error", 503),
        (StoreConflict("no", name="x", expected=1, found=2), "store_conflict", 409),
        (ConnectionLost("no"), "connection_lost", 502),
    ],
)
def test_an_error_has_a_code_and_a_status(problem: AsidesError, code: str, status: int) -> None:
    assert (name_error(problem), find_status(problem)) == (code, status)
    described = describe_error(problem)
    assert described["code"] == code
    assert described["message"] == str(problem) or code == "store_error"


def test_an_error_of_a_provider_has_its_status_too() -> None:
    problem = RateLimited("too many", status=429)
    described = describe_error(problem)
    assert (described["code"], described["status"]) == ("rate_limited", 429)


def test_a_client_learns_nothing_about_files_of_the_gateway(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / STORE_FILE).write_bytes(b"no database at all" * 100)
    with page_gateway(tmp_path) as page:
        answer = page.send("GET", "/conversations")
    assert (answer.status, answer.body["error"]["code"]) == (503, "store_error")
    assert str(tmp_path) not in repr(answer)
    assert str(tmp_path) in caplog.text


def test_a_folder_that_cannot_be_is_an_error_before_anything_is_served(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="folder for conversations"):
        PageStore(tmp_path / "file" / "folder")
