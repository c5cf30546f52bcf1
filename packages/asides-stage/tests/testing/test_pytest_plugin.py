"""The fixture `stage` in the tests of another project: its own pytest in its own folder."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import asides

TESTS = """
import json, threading, urllib.request
import pytest
from asides_stage import Say

opened = []

def ask(url):
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}]}).encode()
    with urllib.request.urlopen(urllib.request.Request(url + "/chat/completions", body)) as response:
        return json.load(response)["choices"][0]["message"]["content"]

def test_a_scenes(stage):
    one, other = stage(Say("a"), Say("b")), stage(lambda request: Say("c"), key=None)
    assert [ask(one.url), ask(one.url), ask(other.url)] == ["a", "b", "c"]
    opened.extend([one, other])

def test_b_they_are_closed_afterwards():
    assert len(opened) == 2
    assert not [thread for thread in threading.enumerate() if thread.name == "asides-stage"]

def test_c_functions_and_scenes_do_not_mix(stage):
    with pytest.raises(TypeError, match="one function"):
        stage(Say("a"), lambda request: Say("b"))

def test_c2_a_list_is_a_script_too(stage):
    opened = stage([Say("a"), Say("b")], Say("c"))
    assert [ask(opened.url) for _ in range(4)] == ["a", "b", "c", "c"]

@pytest.mark.parametrize("odd", ["hi", {"text": "hi"}, None, 1, ["hi"]])
def test_c3_anything_else_is_refused_at_once_with_advice(stage, odd):
    with pytest.raises(TypeError, match="Write stage"):
        stage(odd)

def test_d_a_script_that_raises_fails_its_test(stage):
    with pytest.raises(urllib.error.HTTPError):
        ask(stage(lambda request: 1 / 0).url)
"""

EXPECTING = """
import json, urllib.error, urllib.request
import pytest
from asides_stage import Say

def ask(url, **fields):
    body = {"model": "claude-opus-5-5", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}], **fields}
    try:
        urllib.request.urlopen(urllib.request.Request(url + "/messages", json.dumps(body).encode())).close()
    except urllib.error.HTTPError as refused:
        refused.close()

def test_a_none_is_refused(stage):
    stage.expect_no_refusals()
    ask(stage(Say("a")).url)

def test_b_one_is_refused_by_a_stage_opened_later(stage):
    stage.expect_no_refusals()
    stage(Say("a"))
    ask(stage(Say("b"), rules="lenient").url, temperature=1)

def test_c_only_the_block_counts(stage):
    opened, other = stage(Say("a")), stage(Say("b"))
    ask(other.url, temperature=1)
    with stage.expect_no_refusals():
        ask(opened.url)
    with pytest.raises(AssertionError, match="sampling_unsupported"), stage.expect_no_refusals():
        ask(opened.url, top_p=1)

def test_d_leaks(stage):
    one, other = stage(Say("a")), stage(Say("b"))
    ask(other.url, system="canary")
    with pytest.raises(AssertionError, match="body.system"):
        stage.assert_no_leak("canary")
    stage.assert_no_leak("another")
"""

UNUSED = """
import sys

def test_nothing_is_loaded():
    assert "asides_stage.pytest_plugin" in sys.modules
    assert not [name for name in sys.modules if name.startswith(("asides_stage.stage", "asides.dialects", "msgspec"))]
"""


def run_pytest(folder: Path, content: str) -> str:
    (folder / "test_theirs.py").write_text(content)
    (folder / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\n")
    source = str(Path(asides.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": source, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "asides_stage.pytest_plugin",
        "test_theirs.py",
    ]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=50, check=False)
    return done.stdout


def test_the_fixture_opens_stages_and_closes_them(tmp_path: Path) -> None:
    output = run_pytest(tmp_path, TESTS)
    assert "10 passed, 1 error" in output, output
    assert "ERROR at teardown of test_d_a_script_that_raises_fails_its_test" in output
    assert "ZeroDivisionError" in output


def test_the_fixture_fails_a_test_whose_requests_are_refused(tmp_path: Path) -> None:
    output = run_pytest(tmp_path, EXPECTING)
    assert "4 passed, 1 error" in output, output
    assert "ERROR at teardown of test_b_one_is_refused_by_a_stage_opened_later" in output
    assert "request 0 /v1/messages: sampling_unsupported: `temperature` is deprecated for this model." in output


def test_the_plugin_loads_nothing_until_it_is_used(tmp_path: Path) -> None:
    output = run_pytest(tmp_path, UNUSED)
    assert "1 passed" in output, output
