"""The values of a diagnosis."""

from __future__ import annotations

import json

import asides


def test_a_diagnosis_shows_no_content_unless_it_is_asked_for() -> None:
    history = [{"role": "user", "content": "canary"}, {"role": "tool", "tool_call_id": "a", "content": "canary"}]
    found = asides.diagnose(history, "deepseek:deepseek-flash")
    assert isinstance(found, asides.Diagnosis)
    assert "canary" not in repr(found)
    assert "canary" not in json.dumps(found.to_dict())
    assert found.to_dict(thinking=True, seals=True)["repaired"] == history[:1]
    (finding,) = found.findings
    assert isinstance(finding, asides.Finding)
    assert str(finding).startswith("messages[1]: refused (tool_result_orphaned): ")
