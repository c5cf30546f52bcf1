"""The files of other programs: they get the settings, keep everything else, and get back what they had."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest

from asides.cli.connect_clients import ConfigFile, FileFormat
from asides.cli.connect_files import BACKUP, format_file, restore_file, write_file
from asides.values.errors import ConfigError

ROW = ("model_providers", "asides")
VALUES: dict[tuple[str, ...], Any] = {("model",): "a:b", (*ROW, "base_url"): "http://127.0.0.1:4242/v1"}
DEFAULTS: dict[tuple[str, ...], Any] = {("check",): False}
MINE: dict[FileFormat, str] = {
    "toml": '# mine\nmodel = "gpt-5" # why\n\n[tools]\nweb = true\n',
    "json": '{\n  // mine\n  "model": "gpt-5", // why\n  "tools": { "web": true },\n}\n',
    "env": "# mine\nMODEL=gpt-5 # why\nTOOLS=web\n",
}
FORMATS: list[FileFormat] = ["toml", "json", "env"]
for_each_format = pytest.mark.parametrize("form", FORMATS)


@pytest.fixture(autouse=True)
def config_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


def make_file(folder: Path, form: FileFormat) -> ConfigFile:
    path = folder / f"settings.{form}"
    if form == "env":
        return ConfigFile(path, form, {("MODEL",): "a:b", ("URL",): "http://127.0.0.1:4242"}, {("CHECK",): "no"})
    return ConfigFile(path, form, VALUES, DEFAULTS, (ROW,))


@for_each_format
def test_a_file_gets_the_values_and_keeps_the_rest(tmp_path: Path, form: FileFormat) -> None:
    file = make_file(tmp_path, form)
    file.path.write_text(MINE[form])
    written = write_file(file)
    text = file.path.read_text()
    assert [word in text for word in ("mine", "why", "web", "a:b", "http://127.0.0.1:4242", "gpt-5")] == [True] * 5 + [
        False
    ]
    assert written.backup is not None
    assert written.backup.name == file.path.name + BACKUP
    assert written.backup.read_text() == MINE[form]
    assert written.changes[0].before == "gpt-5"


@for_each_format
def test_a_second_run_changes_nothing(tmp_path: Path, form: FileFormat) -> None:
    file = make_file(tmp_path, form)
    file.path.write_text(MINE[form])
    write_file(file)
    before = file.path.stat()
    assert write_file(file).changes == ()
    assert (file.path.stat().st_ino, file.path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


@for_each_format
def test_undo_gives_the_file_back_as_it_was_and_leaves_nothing(tmp_path: Path, form: FileFormat) -> None:
    folder = tmp_path / "theirs"
    folder.mkdir()
    file = make_file(folder, form)
    file.path.write_text(MINE[form])
    write_file(file)
    restore_file(file)
    assert file.path.read_text() == MINE[form]
    assert [path.name for path in folder.iterdir()] == [file.path.name]


@for_each_format
def test_undo_keeps_what_others_changed_since(tmp_path: Path, form: FileFormat) -> None:
    file = make_file(tmp_path, form)
    file.path.write_text(MINE[form])
    write_file(file)
    file.path.write_text(file.path.read_text().replace("web", "web2"))
    restore_file(file)
    assert file.path.read_text() == MINE[form].replace("web", "web2")


@for_each_format
def test_a_file_that_was_not_there_comes_and_goes(tmp_path: Path, form: FileFormat) -> None:
    file = make_file(tmp_path / "new", form)
    assert write_file(file).backup is None
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600
    assert file.path.read_text() == format_file(file)
    assert write_file(file._replace(values={**file.values, next(iter(file.values)): "c:d"})).backup is None
    assert restore_file(file).is_removed
    assert list(file.path.parent.iterdir()) == []
    assert restore_file(file).changes == ()


@for_each_format
def test_links_and_modes_stay(tmp_path: Path, form: FileFormat) -> None:
    file = make_file(tmp_path, form)
    real = tmp_path / "dotfiles"
    real.write_text(MINE[form])
    real.chmod(0o644)
    file.path.symlink_to(real)
    written = write_file(file)
    assert file.path.is_symlink()
    assert "a:b" in real.read_text()
    assert stat.S_IMODE(real.stat().st_mode) == 0o644
    assert written.backup is not None
    assert not written.backup.is_symlink()


def test_a_default_does_not_replace_what_somebody_chose(tmp_path: Path) -> None:
    file = make_file(tmp_path, "toml")
    file.path.write_text("check = true\n")
    write_file(file)
    assert file.path.read_text().startswith("check = true\n")


@for_each_format
def test_what_it_may_not_have_goes_and_comes_back(tmp_path: Path, form: FileFormat) -> None:
    file = make_file(tmp_path, form)
    file.path.write_text(MINE[form])
    absent: tuple[tuple[str, ...], ...] = (("TOOLS",),) if form == "env" else (("tools", "web"), ("missing",))
    file = file._replace(absent=absent)
    assert (absent[0], None) in [(change.path, change.after) for change in write_file(file).changes]
    assert "web" not in file.path.read_text()
    assert write_file(file).changes == ()
    restore_file(file)
    assert file.path.read_text() == MINE[form]


def test_the_backup_is_of_the_file_before_the_first_change(tmp_path: Path) -> None:
    file = make_file(tmp_path, "json")
    file.path.write_text(MINE["json"])
    write_file(file)
    write_file(file._replace(values={**VALUES, ("model",): "c:d"}))
    assert file.path.with_name(file.path.name + BACKUP).read_text() == MINE["json"]


@pytest.mark.parametrize(
    ("form", "text", "problem"),
    [
        ("json", '{\n  "a": 1\n  "b": 2\n}', r"line 3, column 3: a comma or } is missing"),
        ("toml", "a = 1\nb = = 2\n", r"at line 2, column 5"),
        ("json", "[1]", "does not contain a JSON object"),
        ("json", '{"model_providers": "x"}', "model_providers is not a JSON object"),
    ],
)
def test_a_broken_file_is_refused_and_not_touched(tmp_path: Path, form: FileFormat, text: str, problem: str) -> None:
    file = make_file(tmp_path, form)
    file.path.write_text(text)
    with pytest.raises(ConfigError, match=problem) as caught:
        write_file(file)
    assert "Nothing was changed" in str(caught.value)
    assert str(file.path) in str(caught.value)
    assert file.path.read_text() == text
    assert not file.path.with_name(file.path.name + BACKUP).exists()


def test_what_is_no_text_is_refused(tmp_path: Path) -> None:
    file = make_file(tmp_path, "json")
    file.path.write_bytes(b'{"a": "\xff"}')
    with pytest.raises(ConfigError, match="byte 7 is not UTF-8"):
        write_file(file)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    file = make_file(tmp_path, "json")
    os.mkfifo(file.path)
    with pytest.raises(ConfigError, match="cannot be read"):
        write_file(file)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
@pytest.mark.parametrize("form", ["json", "toml"])
@pytest.mark.parametrize("kind", ["pipe", "folder", "link", "dangling link"])
def test_a_backup_that_is_none_of_ours_stops_before_anything_changes(
    tmp_path: Path, form: FileFormat, kind: str
) -> None:
    file = make_file(tmp_path, form)
    text = format_file(file).replace("a:b", "c:d")
    file.path.parent.mkdir(parents=True, exist_ok=True)
    file.path.write_text(text)
    backup, other = file.path.with_name(file.path.name + BACKUP), tmp_path / "other"
    if kind == "pipe":
        os.mkfifo(backup)
    elif kind == "folder":
        backup.mkdir()
    else:
        if kind == "link":
            other.write_text("precious")
        backup.symlink_to(other)
    for run in (write_file, restore_file):
        with pytest.raises(ConfigError, match="Nothing was changed"):
            run(file)
        assert file.path.read_text() == text
    assert (other.read_text() if other.exists() else "") == ("precious" if kind == "link" else "")


@pytest.mark.parametrize("inner", ["[" * 50_000 + "]" * 50_000, "9" * 50_000, '{"a":' * 50_000 + "1" + "}" * 50_000])
@pytest.mark.parametrize("form", ["json", "toml"])
def test_a_file_that_no_parser_can_take_is_refused(tmp_path: Path, form: FileFormat, inner: str) -> None:
    file = make_file(tmp_path, form)
    file.path.parent.mkdir(parents=True, exist_ok=True)
    text = f'{{"odd": {inner}}}' if form == "json" else f"odd = {inner}"
    file.path.write_text(text)
    with pytest.raises(ConfigError, match="Nothing was changed"):
        write_file(file)
    assert file.path.read_text() == text
    assert not file.path.with_name(file.path.name + BACKUP).exists()
