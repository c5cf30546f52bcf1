"""`asides probe` on the command line: the plan, the lines on stderr, the row on stdout, and how it ends."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import time
import tomllib
from pathlib import Path

import pytest

from asides.cli.exit_codes import Exit
from asides_stage.stage import OpenStage, Say
from tests.cli.children import asides, at_terminal, command, environment, here, show_at_terminal
from tests.flows.probe.costumes import ANSWER, THOUGHT, wearing
from tests.flows.probe.wardrobe import COSTUMES
from tests.loopback import ReceivedRequest, saying, serving, whole_response

BY_NAME = {costume.name: costume for costume in COSTUMES}


def test_the_row_is_pasted_and_asked(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """As people do: probe, append the output to the settings, ask."""
    settings = tmp_path / "asides.toml"
    with wearing(BY_NAME["starts inside"]) as server:
        probed = here(capsys, "probe", server.url, "--name", "mine")
        assert probed.code == Exit.DONE
        settings.write_text(probed.out, encoding="utf-8")
        assert tomllib.loads(probed.out)["providers"]["mine"]["base_url"] == server.url
        ended = asides(
            "ask", "-m", "mine:default", "-t", "--no-stdin", "What is 47 + 85?", env={"ASIDES_CONFIG": str(settings)}
        )
    assert (ended.code, ended.out) == (Exit.DONE, f"{ANSWER}\n")
    assert THOUGHT in ended.err


def test_each_request_is_shown_before_it_is_sent(capsys: pytest.CaptureFixture[str]) -> None:
    with wearing(BY_NAME["toggle"]) as server:
        ended = here(capsys, "probe", server.url, "--quick")
        sent = len(server.heard)
    lines = [line for line in ended.err.splitlines() if "/6 " in line]
    assert len(lines) == sent == 6
    assert lines[1].startswith(f" 2/6 ask a question: POST {server.url}/chat/completions {{")
    assert "(stopped after 6 requests; --thorough sends up to 40)" in ended.err


def test_a_dry_run_prints_the_plan_and_sends_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with wearing(BY_NAME["toggle"]) as server:
        ended = here(capsys, "probe", server.url, "--dry-run", "--api-key", "k-secret")
        listed = here(capsys, "probe", server.url, "--dry-run", "--json")
        assert server.heard == []
    assert ended.code == Exit.DONE
    assert "1. list the models\nGET" in ended.out
    assert '"stream":true' in ended.out
    assert "k-secret" not in ended.out + ended.err
    steps = json.loads(listed.out)
    assert len(steps) == 12
    assert steps[1]["body"]["messages"] == [{"role": "user", "content": "What is 47 + 85?"}]


def test_the_report_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    with wearing(BY_NAME["harmony"]) as server:
        ended = here(capsys, "probe", server.url, "--json", "--quiet")
    report = json.loads(ended.out)
    assert ended.err == ""
    assert (report["dialect"], report["state"]) == ("openai_chat", "answered")
    assert report["findings"]["where"]["value"]["tags"] == ["harmony"]
    assert report["findings"]["effort"]["value"] == {"read": True, "efforts": ["low", "medium", "high"]}
    assert report["row"]["quirks"]["tags"] == ["harmony"]


@pytest.mark.parametrize(
    ("response", "code"),
    [
        (whole_response(b'{"error": {"message": "who are you?"}}', status="401 Unauthorized"), Exit.KEY),
        (whole_response(b"<html>hello</html>", "text/html"), Exit.REJECTED),
    ],
)
def test_a_server_that_gives_no_reply_has_a_code(
    capsys: pytest.CaptureFixture[str], response: bytes, code: Exit
) -> None:
    with serving(saying(response)) as server:
        ended = here(capsys, "probe", server.url)
    assert ended.code == code
    assert "asides: no provider entry: " in ended.err
    assert "[providers" not in ended.out
    assert "api_key=" not in ended.err, "the command line names its own options"


def test_nobody_there(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    assert here(capsys, "probe", f"127.0.0.1:{port}").code == Exit.TRANSPORT


def test_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert here(capsys, "probe").code == Exit.USAGE
    assert here(capsys, "probe", "http://127.0.0.1:1", "--quick", "--thorough").code == Exit.USAGE
    assert here(capsys, "probe", "nonsense://x").code == Exit.USAGE


def test_words_of_a_server_command_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    document = {"error": {"message": "\x1b[2J\x1b[31mpwned\r\nasides: all is well"}}
    with serving(saying(whole_response(json.dumps(document).encode(), status="400 Bad"))) as server:
        ended = here(capsys, "probe", server.url)
    assert "\x1b" not in ended.out + ended.err
    assert not any(line.startswith("asides: all is well") for line in (ended.out + ended.err).splitlines())


def test_a_key_on_the_command_line_is_warned_about_and_never_shown(capsys: pytest.CaptureFixture[str]) -> None:
    with wearing(BY_NAME["toggle"]) as server:
        ended = here(capsys, "probe", server.url, "--quick", "--api-key", "k-secret-4711")
        assert {request.headers["authorization"] for request in server.heard} == {"Bearer k-secret-4711"}
    assert "others on this machine can read a key" in ended.err
    assert "k-secret-4711" not in ended.out + ended.err
    assert tomllib.loads(ended.out)["providers"]["probed"]["key_env"] == ["PROBED_API_KEY"]


def test_the_stage_stands_in(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASIDES_STAGE", "1")
    ended = here(capsys, "probe", "https://llm.acme.example/v1", "--quick")
    assert ended.code == Exit.DONE
    assert tomllib.loads(ended.out)["providers"]["acme"]["base_url"] == "https://llm.acme.example/v1"


def test_a_probe_through_the_stage_fixture(capsys: pytest.CaptureFixture[str], stage: OpenStage) -> None:
    opened = stage(Say(text="<think>plan</think>42"))
    ended = here(capsys, "probe", opened.url)
    assert tomllib.loads(ended.out)["providers"]["probed"]["quirks"]["tags"] == ["think"]


@pytest.mark.parametrize(("keys", "sent"), [("n\n", 0), ("\x04", 0), ("y\n", 6)])
def test_a_person_is_asked_before_anything_is_sent(keys: str, sent: int) -> None:
    with wearing(BY_NAME["toggle"]) as server:
        with at_terminal("probe", server.url, "--quick") as terminal:
            terminal.wait_for("send them? [y]es, [n]o")
            assert server.heard == []
            terminal.type(keys)
            assert terminal.end() == Exit.DONE
        assert len(server.heard) == sent
    assert ("nothing was sent." in terminal.text) is (sent == 0)


def test_yes_asks_nobody() -> None:
    with wearing(BY_NAME["toggle"]) as server:
        shown = show_at_terminal("probe", server.url, "--quick", "--yes")
        assert shown.code == Exit.DONE
        assert len(server.heard) == 6
    assert "send them?" not in shown.text


def test_ctrl_c_ends_clean_with_what_is_known() -> None:
    """The third request hangs; Ctrl-C then prints the row as far as it is known."""
    count = 0

    def answer(request: ReceivedRequest, connection: socket.socket) -> bool:
        nonlocal count
        count += 1
        if count > 2:
            connection.recv(1)
            return False
        document = {"choices": [{"message": {"content": ANSWER, "reasoning": "so be it"}, "finish_reason": "stop"}]}
        connection.sendall(whole_response(json.dumps(document).encode()))
        return True

    with serving(answer) as server:
        child = subprocess.Popen(
            command(["probe", server.url]),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(),
        )
        try:
            deadline = time.monotonic() + 20
            while len(server.heard) < 3 and time.monotonic() < deadline:
                time.sleep(0.05)
            child.send_signal(signal.SIGINT)
            out, err = child.communicate(timeout=20)
        finally:
            if child.poll() is None:
                child.kill()
    assert child.returncode == Exit.INTERRUPTED
    assert tomllib.loads(out.decode())["providers"]["probed"]["quirks"]["thinking_in"] == ["reasoning"]
    assert "interrupted" in err.decode()
    assert "Traceback" not in err.decode()
