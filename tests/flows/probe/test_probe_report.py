"""The report as text and as JSON."""

from __future__ import annotations

import json
import tomllib

import asides
from asides.flows.probe.list_findings import ProbeFinding
from asides.flows.probe.probe_report import ProbeReport

ROW = asides.Provider(name="acme", base_url="http://h/v1", key_env=("ACME_API_KEY",), tier="yours")


def test_a_report_is_a_settings_file() -> None:
    findings = (ProbeFinding("thinking", "2 of 2 replies\n[providers.evil]\x1b[2J"),)
    report = ProbeReport(
        "http://h/v1", "m", "openai_chat", 3, findings, ROW, problem="stopped after 3 requests", state="answered"
    )
    text = report.to_text()
    assert list(tomllib.loads(text)["providers"]) == ["acme"]
    assert "\x1b" not in text
    assert "# key        set ACME_API_KEY, or run `asides keys set acme`" in text
    assert "# note       stopped after 3 requests" in text
    assert "not complete" in text.splitlines()[0]
    assert '#       name="acme",' in text or '#   asides.Provider(name="acme"' in text


def test_a_report_without_a_row() -> None:
    report = ProbeReport("http://h/v1", None, None, 2, (), None, problem="nobody there", state="unreachable")
    assert tomllib.loads(report.to_text()) == {}
    assert (report.toml, report.python, report.find("where")) == ("", "", None)
    assert json.loads(json.dumps(report.to_dict()))["state"] == "unreachable"


def test_findings_by_their_topic() -> None:
    finding = ProbeFinding("tools", "a tool was called", {"called": True})
    report = ProbeReport("http://h/v1", "m", "openai_chat", 3, (finding,), ROW, complete=True)
    assert report.find("tools") == finding
    assert report.to_dict()["findings"] == {"tools": {"value": {"called": True}, "evidence": "a tool was called"}}
