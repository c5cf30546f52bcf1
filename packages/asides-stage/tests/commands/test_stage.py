"""`asides stage`: a provider on this machine."""

from __future__ import annotations

import http.client
import json
import signal
from pathlib import Path
from urllib.parse import urlsplit

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


@pytest.mark.parametrize(
    ("rules", "status", "words"), [("strict", 400, b"refused: "), ("lenient", 200, b"would be refused: ")]
)
def test_the_stage_says_what_the_rules_refuse(rules: str, status: int, words: bytes) -> None:
    with started("stage", "--port", "0", "--rules", rules, "--date", "2026-11-15") as child:
        address = urlsplit(read_some(child, b"\n").decode().strip())
        connection = http.client.HTTPConnection(address.netloc, timeout=10)
        body = {
            "model": "claude-opus-5-5",
            "max_tokens": 9,
            "top_k": 3,
            "messages": [{"role": "user", "content": "hi"}],
        }
        connection.request("POST", "/v1/messages", json.dumps(body))
        assert connection.getresponse().status == status
        connection.close()
        child.send_signal(signal.SIGINT)
        _, err = child.communicate(timeout=10)
    assert words + b"/v1/messages: sampling_unsupported: `top_k` is deprecated for this model." in err
    assert child.returncode == 0


def test_the_stage_says_why_it_cannot_open(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "script.json"
    script.write_text("[]")
    assert main(["stage", "--port", "0", "--script", str(script)]) == 2
    assert "has no scene" in capsys.readouterr().err
    assert main(["stage", "--date", "soon", "--port", "0"]) == 2
    assert 'Write a day as "2026-11-15"' in capsys.readouterr().err
    assert main(["stage", "--host", "0.0.0.0", "--port", "0"]) == 2
    assert "use 127.0.0.1" in capsys.readouterr().err
