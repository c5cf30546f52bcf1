"""Files of the user: written whole or not at all, for their owner alone, one writer at a time."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from asides.cli import private_files
from asides.cli.private_files import hold_lock, write_private_file
from asides.values.errors import ConfigError
from tests.cli.children import environment


def test_a_new_file_is_its_owners_whatever_the_umask(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "file"
    before = os.umask(0)
    try:
        write_private_file(path, b"content", "it")
    finally:
        os.umask(before)
    assert path.read_bytes() == b"content"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_an_old_file_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    path.chmod(0o640)
    write_private_file(path, b"new", "it")
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"new", 0o640)


@pytest.mark.skipif(os.geteuid() != 0, reason="only the administrator can give files away")
def test_the_file_of_a_user_stays_the_users(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    os.chown(path, 4711, 4712)
    write_private_file(path, b"new", "it")
    assert (path.stat().st_uid, path.stat().st_gid) == (4711, 4712)


def test_what_cannot_be_replaced_stays_and_nothing_is_left_behind(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.mkdir()
    with pytest.raises(ConfigError, match="it cannot be written"):
        write_private_file(path, b"new", "it")
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_of_everyone_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    with pytest.raises(ConfigError, match="chmod o-w"):
        write_private_file(tmp_path / "file", b"new", "it")
    tmp_path.chmod(0o1777)  # sticky, as /tmp is: others cannot replace the file
    write_private_file(tmp_path / "file", b"new", "it")


def test_one_holds_the_lock_and_the_other_waits(tmp_path: Path) -> None:
    path = tmp_path / "file"
    order: list[str] = []

    def wait() -> None:
        with hold_lock(path, "it"):
            order.append("second")

    with hold_lock(path, "it"):
        other = threading.Thread(target=wait)
        other.start()
        time.sleep(0.1)
        order.append("first")
    other.join(10)
    assert order == ["first", "second"]


def test_a_lock_that_is_never_given_back_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(private_files, "_LOCK_SECONDS", 0.1)
    path = tmp_path / "file"
    with hold_lock(path, "it"), pytest.raises(ConfigError, match="in use by another command"), hold_lock(path, "it"):
        pass


def test_a_lock_ends_with_its_process(tmp_path: Path) -> None:
    code = (
        "import os, sys; from pathlib import Path; from asides.cli.private_files import hold_lock\n"
        "with hold_lock(Path(sys.argv[1]), 'it'): os._exit(9)"
    )
    path = tmp_path / "file"
    done = subprocess.run([sys.executable, "-c", code, str(path)], env=environment(), check=False)
    assert done.returncode == 9
    began = time.monotonic()
    with hold_lock(path, "it"):
        assert time.monotonic() - began < 5
