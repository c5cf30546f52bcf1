"""`asides stage`: a provider on this machine."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from asides.cli.app import main
from tests.cli.children import (
    here,
    read_some,
    started,
)


def test_the_stage_prints_its_address_and_plays_until_ctrl_c(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "script.json"
    script.write_text('[{"type": "say", "thinking": "plan", "text": "42"}]')
    with started("stage", "--port", "0", "--script", str(script), "--key", "k") as child:
        url = read_some(child, b"\n").decode().strip()
        asking = ("ask", "-m", "openai-compatible:x", "--base-url", url, "--no-stdin", "-q")
        done = here(capsys, *asking, "--api-key", "k", "?")
        turned_away = here(capsys, *asking, "?")
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=10)
    assert done == (0, "42\n", "")
    assert turned_away.code == 3
    assert child.returncode == 0
    assert out == b""
    assert b"asides ask -m openai-compatible:stage" in err
    assert b"Traceback" not in err


def test_the_stage_says_why_it_cannot_open(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "script.json"
    script.write_text("[]")
    assert main(["stage", "--port", "0", "--script", str(script)]) == 2
    assert "has no scene" in capsys.readouterr().err
    assert main(["stage", "--host", "0.0.0.0", "--port", "0"]) == 2
    assert "use 127.0.0.1" in capsys.readouterr().err
