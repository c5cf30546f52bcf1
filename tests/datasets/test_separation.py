"""The verdict of a text: what is certain, and what a person has to look at."""

from __future__ import annotations

import pytest

import asides
from asides.datasets.separation import TagSettings, Verdict, find_tag_settings, separate_text


@pytest.mark.parametrize(
    ("text", "verdict", "answer", "thinking"),
    [
        ("<think>a</think>b", "closed", "b", "a"),
        ("b", "none", "b", None),
        ("a</think>b", "lone_close", "b", "a"),
        ("<think>a", "unclosed", "", "a"),
        ("<think>a</think>", "empty_answer", "", "a"),
        ("", "empty_answer", "", None),
        ("<think>a<think>b</think>c</think>d", "stray_tag", "d", "a\n\nb\n\nc"),
        ("plan it </thi 42", "stray_tag", "plan it </thi 42", None),
        ("plan it. </thiSo 42", "stray_tag", "plan it. </thiSo 42", None),
        ("plan it </thi", "stray_tag", "plan it </thi", None),
        ("/think> 42", "stray_tag", "/think> 42", None),
        ("plan it /think> 42", "stray_tag", "plan it /think> 42", None),
        ("<think>a </thi b</think>c", "stray_tag", "c", "a </thi b"),
        ("<think>a</think>b <thi", "stray_tag", "b <thi", "a"),
        ("<think>a</think>b <TH", "stray_tag", "b <TH", "a"),
        ("b [THI\n", "stray_tag", "b [THI\n", None),
        ("a < b", "none", "a < b", None),
        ("A <this> and </this> <t", "none", "A <this> and </this> <t", None),
        ("Qwen reads /think and /no_think", "none", "Qwen reads /think and /no_think", None),
        ("&lt;think&gt;a&lt;/think&gt;b", "stray_tag", "&lt;think&gt;a&lt;/think&gt;b", None),
        ("a &lt; b &lt;this&gt;", "none", "a &lt; b &lt;this&gt;", None),
        ('<details type="reasoning">a</details>b', "stray_tag", '<details type="reasoning">a</details>b', None),
        ("<details><summary>M</summary>a</details>b", "none", "<details><summary>M</summary>a</details>b", None),
        ("<|begin_of_thought|>a<|end_of_thought|>b", "stray_tag", "<|begin_of_thought|>a<|end_of_thought|>b", None),
        ("<think>use <think> tags</think>A", "stray_tag", "A", "use <think> tags"),
        ("<think>a</think>b</think>c", "stray_tag", "b</think>c", "a"),
        ("<think>`</think>` x</think>A", "stray_tag", "` x</think>A", "`"),
        ("<think>\n```\n</think>\n```\n</think>A", "stray_tag", "```\n</think>A", "\n```\n"),
        ("ink>a</think>b", "stray_tag", "b", "ink>a"),
        ("K>So. </THINK>A", "stray_tag", "A", "K>So. "),
        ("<THI a </THINK>A", "stray_tag", "A", "<THI a "),
        ("Thought about it.</think>A", "lone_close", "A", "Thought about it."),
        ("ght\nI think<channel|>A", "stray_tag", "A", "ght\nI think"),
        ("ght\nI think", "stray_tag", "ght\nI think", None),
        ("t-shirts\nare fine", "none", "t-shirts\nare fine", None),
        ("</think>A", "lone_close", "A", None),
        ("<think></think>A", "none", "A", None),
        ("<|channel|>analysis", "unclosed", "<|channel|>analysis", None),
        ("<|channel|>analysis<|mess", "unclosed", "<|channel|>analysis<|mess", None),
        ("<|channel|>analysis<|message|>t", "unclosed", "", "t"),
        (
            "<think>t</think>The tag <think> opens and </think> closes.",
            "stray_tag",
            "The tag  closes.",
            "t\n\n opens and ",
        ),
        ("<think>t</think>The tag <think></think> is it.", "stray_tag", "The tag  is it.", "t"),
        ("<think>t</think>a<think>u</think>", "stray_tag", "a", "t\n\nu"),
        ("t</think>a <thinking>u</thinking> b", "stray_tag", "a  b", "t\n\nu"),
        ("<think>t</think>\n\n<think>u</think>\n a \n", "closed", "a \n", "t\n\nu"),
        ("<thi a</think>b", "stray_tag", "b", "<thi a"),
        ("<thi a b", "stray_tag", "<thi a b", None),
        ("> quoted, not half a tag", "none", "> quoted, not half a tag", None),
        ("<div>html</div>", "none", "<div>html</div>", None),
        (
            "Use `<think>` here, and\n```\n</think>\n```\n",
            "none",
            "Use `<think>` here, and\n```\n</think>\n```\n",
            None,
        ),
        ("<|channel|>analysis<|message|>t<|end|>lost", "stray_tag", "lost", "t"),
        ("<|channel|>analysis<|message|>t<|channel|>final<|message|>a", "stray_tag", "a", "t"),
        ("<|START_THINKING|>t<|END_THINKING|><|STARa", "stray_tag", "<|STARa", "t"),
        (
            "<|channel|>analysis<|message|>t<|end|><|start|>assistant<|channel|>final<|message|>a<|return|>",
            "closed",
            "a",
            "t",
        ),
    ],
)
def test_a_text_has_a_verdict(text: str, verdict: Verdict, answer: str, thinking: str | None) -> None:
    found = separate_text(text, TagSettings())
    assert (found.verdict, found.answer, found.thinking) == (verdict, answer, thinking)
    assert bool(found.reason) is (verdict in ("unclosed", "empty_answer", "stray_tag"))


def test_a_later_block_is_decided_where_tags_count_anywhere() -> None:
    found = separate_text("<think>t</think>a <think>u</think>b", TagSettings(position="anywhere"))
    assert (found.verdict, found.answer, found.thinking) == ("closed", "a b", "t\n\nu")


@pytest.mark.parametrize("value", [None, 3, ["<think>"]])
def test_a_value_that_is_not_text_is_unreadable(value: object) -> None:
    found = separate_text(value, TagSettings())
    assert (found.verdict, found.answer) == ("unreadable", None)
    assert "is not text" in found.reason or "is null" in found.reason


def test_settings_come_from_a_model() -> None:
    settings = find_tag_settings("vllm:deepseek-ai/DeepSeek-R1")
    assert separate_text("cut in the thought", settings).verdict == "unclosed"
    assert separate_text("cut in the thought", TagSettings()).verdict == "none"
    with pytest.raises(asides.UnknownProvider):
        find_tag_settings("nowhere:model")
