"""Places are folders, files and URLs. What is read is opened for reading alone."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest

from asides.database import Queries, Query, StoreError
from asides_gateway.maintenance.open_stores import ReadOnlyFile, open_stores, open_target
from tests.maintenance.filled_stores import fill_conversations, fill_gateway, fill_vault


def test_a_folder_has_the_areas_of_its_files(tmp_path: Path) -> None:
    fill_vault(tmp_path, 1)
    fill_gateway(tmp_path)
    with open_stores(str(tmp_path)) as stores:
        assert set(stores.areas) == {"vault", "gateway"}


def test_a_file_is_known_by_its_tables(tmp_path: Path) -> None:
    fill_conversations(tmp_path, 1)
    fill_vault(tmp_path, 1)
    fill_gateway(tmp_path)
    for name in ("conversations", "vault", "gateway"):
        with open_stores(str((tmp_path / f"{name}.db").rename(tmp_path / f"{name}.other"))) as stores:
            assert set(stores.areas) == {name}


def test_a_place_without_a_store_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no database at all, whatever it is called")
    for place, words in ((tmp_path / "nowhere", "no store at"), (tmp_path, "no store"), (tmp_path / "text", "damaged")):
        with pytest.raises(StoreError, match=words):
            open_stores(str(place))
    with pytest.raises(StoreError, match="is a file"):
        open_target(str(tmp_path / "text"))


def test_nothing_can_be_written_to_what_is_read(tmp_path: Path) -> None:
    fill_vault(tmp_path, 1)

    def work() -> Queries[None]:
        yield Query("DELETE FROM records")

    file = ReadOnlyFile(tmp_path / "vault.db")
    with pytest.raises(StoreError, match="readonly"):
        file.run(work)
    file.close()


@pytest.mark.skipif(os.name != "posix", reason="modes of POSIX")
def test_a_new_target_is_for_its_owner_alone(tmp_path: Path) -> None:
    fill_vault(tmp_path, 1)
    with open_target(str(tmp_path / "deep" / "to")) as stores:
        stores.areas["vault"].run(lambda: (yield Query("SELECT 1")), writes=False)  # type: ignore[arg-type, return-value]
    assert stat.S_IMODE((tmp_path / "deep" / "to").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "deep" / "to" / "vault.db").stat().st_mode) == 0o600


def test_a_server_shows_no_password() -> None:
    with open_stores("postgresql://u:secret@127.0.0.1:1/d") as stores:
        assert "secret" not in stores.name + repr(stores.areas)


@pytest.mark.parametrize("open_it", [open_stores, open_target])
def test_a_url_that_is_misspelt_is_no_folder(open_it: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StoreError, match=r"postgress:// is neither.*To do: write postgresql://") as caught:
        open_it("postgress://me:canary@127.0.0.1/asides")
    assert "canary" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []
