"""Labels and fences are found at the beginning of a line, as soon as enough of the line is there."""

from __future__ import annotations

import pytest

from asides.agents.react.markers import Label, Marker, check_fence_end, find_fence, find_marker


@pytest.mark.parametrize(
    ("line", "label"),
    [
        ("Thought: a", Label.THOUGHT),
        ("**Action:** add", Label.ACTION),
        ("action_input: {}", Label.INPUT),
        ("Observation (add): 3", Label.OBSERVATION),
        ("## Final Answer\n", Label.ANSWER),
        ("Thought 2: a", Label.THOUGHT),
    ],
)
def test_a_label_is_found_however_it_is_written(line: str, label: Label) -> None:
    marker = find_marker(line, complete=True)
    assert isinstance(marker, Marker)
    assert marker.label is label


@pytest.mark.parametrize("line", ["Thoughts: a", "The Action: b", "Final Answer\n", "", "Actionable"])
def test_other_lines_have_no_label(line: str) -> None:
    assert find_marker(line, complete=True) is None


@pytest.mark.parametrize("line", ["", "Act", "**Final", "Thought", "Thought 1"])
def test_a_line_that_may_become_a_label_waits_for_more(line: str) -> None:
    assert find_marker(line, complete=False) == "later"


def test_a_bold_that_does_not_close_with_its_label_belongs_to_the_content() -> None:
    marker = find_marker("**Final Answer: 42**", complete=True)
    assert isinstance(marker, Marker)
    assert marker.emphasis == "**"


def test_a_fence_opens_and_closes_with_the_same_marks() -> None:
    assert find_fence("```json", complete=True) == "```"
    assert find_fence("```code``` inline", complete=True) is None
    assert find_fence("``", complete=False) == "later"
    assert check_fence_end("````", "```", complete=True) == "yes"
    assert check_fence_end("~~~", "```", complete=True) == "no"
    assert check_fence_end("``", "```", complete=False) == "later"
