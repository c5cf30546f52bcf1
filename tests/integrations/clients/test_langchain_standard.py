"""LangChain's own suite for chat models passes; what it leaves out, it leaves out for a reason."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

pytest.importorskip("langchain_tests")

_ROOT = Path(__file__).resolve().parents[3]
_SUITE = "tests/integrations/clients/langchain_standard.py"
_OPTIONS = (
    # The options of the project, without those that leave out the plugins of the suite.
    *("-o", "addopts=--import-mode=importlib --strict-markers", "-p", "no:randomly", "-p", "no:cacheprovider"),
    *("-p", "no:xdist", "--benchmark-disable", "-q", "--tb=short"),
    *("-W", "ignore::langchain_core._api.beta_decorator.LangChainBetaWarning"),
    *("-W", "ignore::langchain_core._api.deprecation.LangChainDeprecationWarning"),
)
_LEFT_OUT = {
    "VCR not set up.": 9,  # it would play recorded requests again; the stage answers real ones
    "Model does not support audio inputs.": 8,  # only Gemini takes sounds among these
    "Test requires tool choice.": 4,  # Claude while it thinks, at two hosts, DeepSeek likewise, and Ollama
    "Model does not support PDF inputs.": 3,  # DeepSeek, Ollama, Cohere
    "Model does not support PDF tool message.": 3,
    "Model does not support image message.": 1,  # DeepSeek
    "Model does not support image tool message.": 1,
}


@pytest.mark.timeout(400)
def test_the_standard_suite_of_langchain_passes(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    environment = {**os.environ, "PYTHONPATH": str(_ROOT / "src")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *_OPTIONS, f"--junitxml={report}", _SUITE],
        cwd=_ROOT, env=environment, capture_output=True, text=True, timeout=390, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Unclosed" not in done.stderr
    cases = ET.parse(report).findall(".//testcase")
    reasons = [skipped for case in cases for skipped in case.findall("skipped")]
    assert Counter(str(each.get("message")) for each in reasons if each.get("type") == "pytest.skip") == _LEFT_OUT
    (expected,) = (each for each in reasons if each.get("type") == "pytest.xfail")
    assert "a table in langchain-core" in str(expected.get("message"))
    assert len(cases) - len(reasons) > 400
