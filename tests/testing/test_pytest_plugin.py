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
from asides.testing import Say

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
    with pytest.raises(TypeError, match="To do: write stage"):
        stage(odd)

def test_d_a_script_that_raises_fails_its_test(stage):
    with pytest.raises(urllib.error.HTTPError):
        ask(stage(lambda request: 1 / 0).url)
"""

UNUSED = """
import sys

def test_nothing_is_loaded():
    assert "asides.testing.pytest_plugin" in sys.modules
    assert not [name for name in sys.modules if name.startswith(("asides.testing.stage", "asides.dialects", "msgspec"))]
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
        "asides.testing.pytest_plugin",
        "test_theirs.py",
    ]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=50, check=False)
    return done.stdout


def test_the_fixture_opens_stages_and_closes_them(tmp_path: Path) -> None:
    output = run_pytest(tmp_path, TESTS)
    assert "10 passed, 1 error" in output, output
    assert "ERROR at teardown of test_d_a_script_that_raises_fails_its_test" in output
    assert "ZeroDivisionError" in output


def test_the_plugin_loads_nothing_until_it_is_used(tmp_path: Path) -> None:
    output = run_pytest(tmp_path, UNUSED)
    assert "1 passed" in output, output
