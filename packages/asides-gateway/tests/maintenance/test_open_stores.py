"""Places are folders, files and URLs. What is read is opened for reading alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from asides.database import Queries, Query, StoreError
from asides_gateway.maintenance.open_stores import ReadOnlyFile, open_stores
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


def test_nothing_can_be_written_to_what_is_read(tmp_path: Path) -> None:
    fill_vault(tmp_path, 1)

    def work() -> Queries[None]:
        yield Query("DELETE FROM records")

    file = ReadOnlyFile(tmp_path / "vault.db")
    with pytest.raises(StoreError, match="readonly"):
        file.run(work)
    file.close()


def test_a_server_shows_no_password() -> None:
    with open_stores("postgresql://u:secret@127.0.0.1:1/d") as stores:
        assert "secret" not in stores.name + repr(stores.areas)


def test_a_url_that_is_misspelt_is_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StoreError, match=r"postgress:// is neither.*Write postgresql://") as caught:
        open_stores("postgress://me:canary@127.0.0.1/asides")
    assert "canary" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []
