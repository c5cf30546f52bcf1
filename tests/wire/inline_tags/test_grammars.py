"""Grammars: how each tag may be written, where an unfinished one is told from none, and which set `tags=` names."""

from __future__ import annotations

from typing import Any

import pytest

from asides.wire.inline_tags.grammars import (
    DEFAULT_TAGS,
    GRAMMARS,
    Channel,
    Grammar,
    Matcher,
    Role,
    find_rules,
    read_channel,
)


def find(matcher: Matcher, text: str) -> tuple[Role, str, str] | None:
    """The tag at the beginning of a complete text: its role, its grammar and how it is written."""
    found = matcher.whole(text)
    if found is None:
        return None
    tag = matcher.find_tag(found)
    assert tag is not None
    return tag.role, tag.grammar.name, found[0]


@pytest.mark.parametrize(
    ("name", "opening", "closing"),
    [
        ("think", "<think>", "</think>"),
        ("think", "< THINK\t>", "< / Think >"),
        ("think", '<think t="3" n=1>', "</think>"),
        ("think", "<think/>", "</think>"),
        ("thinking", "<thinking>", "</thinking>"),
        ("thought", "<thought>", "</thought>"),
        ("reasoning", "<reasoning>", "</reasoning>"),
        ("analysis", "<analysis>", "</analysis>"),
        ("[think]", "[THINK]", "[/THINK]"),
        ("gemma", "<|channel>thought", "<channel|>"),
        ("seed", "<seed:think>", "</seed:think>"),
        ("mm", "<mm:think>", "</mm:think>"),
        ("kimi", "◁think▷", "◁/think▷"),
        ("reason", "<reason>", "</reason>"),
        ("kimi-k3", "<|open|>think<|sep|>", "<|close|>think<|sep|>"),
        ("kimi-k3", "<|open|>think<|sep|>", "<|open|>response<|sep|>"),
        ("command", "<|START_THINKING|>", "<|END_THINKING|>"),
        ("granite", "Here's my thought process:", "Here is my response:"),
        ("apertus", "<|inner_prefix|>", "<|inner_suffix|>"),
        ("begin-of-thought", "<|begin_of_thought|>", "<|end_of_thought|>"),
    ],
)
def test_each_grammar_opens_and_closes_a_block(name: str, opening: str, closing: str) -> None:
    rules = find_rules((name,))
    (grammar,) = rules.grammars
    assert find(rules.opens, f"{opening} x") == (Role.OPEN, name, opening)
    assert find(rules.within(grammar), f"{closing} x") == (Role.CLOSE, name, closing)
    assert find(rules.opens, closing) is None


@pytest.mark.parametrize(
    "text",
    [
        "<thin>",
        "<thinker>",
        "think>",
        "<think`>",
        "<" + " " * 9 + "think>",
        "<think " + "a" * 201 + ">",
        "[Think]",
        "<>",
    ],
)
def test_what_only_looks_like_a_tag_is_none(text: str) -> None:
    opens = find_rules(None).opens
    assert find(opens, text) is None
    assert opens.growing(f"{text} and on") is None


@pytest.mark.parametrize(
    ("text", "grows"),
    [
        ("<", True),
        ("< ", True),
        ("<thi", True),
        ("<THINK a=1", True),
        ("[THI", True),
        ("<|channel|>anal", True),
        ("<|start|>assistant<|chan", True),
        ("[Thi", False),
        ("<thx", False),
        ("a<thi", False),
        ("<thi more", False),
        ("<|channel|>" + "a" * 97, False),
    ],
)
def test_a_text_that_may_become_a_tag_is_told_from_one_that_cannot(text: str, grows: bool) -> None:
    opens = find_rules(None).opens
    found = opens.growing(text)
    assert (found is not None) is grows
    if found is not None:
        assert (found[0], opens.find_tag(found)) == (text, None)


def test_of_two_tags_that_begin_alike_the_longer_one_is_meant() -> None:
    opens = find_rules([("<t", "</t"), ("<think>", "</think>")]).opens
    assert find(opens, "<think>") == (Role.OPEN, "<think>", "<think>")
    assert find(opens, "<thing") == (Role.OPEN, "<t", "<t")
    growing = opens.growing("<thin")
    assert growing is not None
    assert opens.find_tag(growing) is None


@pytest.mark.parametrize(
    ("header", "channel"),
    [
        ("<|channel|>analysis<|message|>", Channel.THINKING),
        ("<|start|>assistant<|channel|>Analysis<|message|>", Channel.THINKING),
        ("<|channel|>hunch<|message|>", Channel.THINKING),
        ("<|channel|>final<|message|>", Channel.ANSWER),
        ("<|start|>assistant<|message|>", Channel.ANSWER),
        ("<|channel|>commentary<|message|>", Channel.COMMENTARY),
        ("<|channel|>commentary to=functions.f <|constrain|>json<|message|>", Channel.TOOL),
        ("<|start|>assistant to=functions.f<|channel|>commentary<|message|>", Channel.TOOL),
        ("<|channel|>analysis to=python<|message|>", Channel.THINKING),
    ],
)
def test_a_harmony_header_says_what_follows(header: str, channel: Channel) -> None:
    assert find(find_rules(["harmony"]).opens, header) == (Role.HEADER, "harmony", header)
    assert read_channel(header) is channel


def test_each_matcher_finds_its_roles() -> None:
    rules = find_rules(["harmony", "think"])
    harmony, think = rules.grammars
    header, orphan = "<|channel|>final<|message|>", "<|end|><|start|>assistant"
    expected: dict[str, list[Role | None]] = {
        # a header, <think>, </think>, <|end|>, <|call|>, an end with the start of the next message
        "opens": [Role.HEADER, Role.OPEN, None, None, None, None],
        "opens_and_controls": [Role.HEADER, Role.OPEN, None, Role.CONTROL, None, Role.CONTROL],
        "controls": [Role.HEADER, None, None, Role.CONTROL, None, Role.CONTROL],
        "orphans": [Role.HEADER, Role.OPEN, Role.ORPHAN, None, None, Role.ORPHAN],
    }
    texts = [header, "<think>", "</think>", "<|end|>", "<|call|>", orphan]
    matchers = {
        "opens": rules.opens,
        "opens_and_controls": rules.opens_and_controls(harmony),
        "controls": rules.controls(harmony),
        "orphans": rules.orphans,
    }
    for name, roles in expected.items():
        found = [find(matchers[name], text) for text in texts]
        assert [tag and tag[0] for tag in found] == roles, name
    assert rules.controls(harmony) is rules.controls(harmony)
    within: dict[Any, list[Role | None]] = {
        harmony: [Role.HEADER, None, None, Role.CLOSE, Role.CLOSE, Role.CLOSE],
        think: [None, Role.OPEN, Role.CLOSE, None, None, None],
        None: [Role.HEADER, Role.OPEN, Role.CLOSE, Role.CLOSE, Role.CLOSE, Role.CLOSE],
    }
    for grammar, roles in within.items():
        found = [find(rules.within(grammar), text) for text in texts]
        assert [tag and tag[0] for tag in found] == roles, grammar
    assert rules.within(think) is rules.within(think)


@pytest.mark.parametrize(
    ("tag", "complete"), [("<think/>", True), ("<think a=1 / >", True), ("<think>", False), ("</think>", False)]
)
def test_a_tag_may_close_itself(tag: str, complete: bool) -> None:
    assert GRAMMARS["think"].closes_itself(tag) is complete
    assert not GRAMMARS["kimi"].closes_itself("◁think/▷")


@pytest.mark.parametrize(
    ("tags", "names"),
    [
        (None, DEFAULT_TAGS),
        ([], ()),
        ((), ()),
        ("think", ("think",)),
        (" Think ", ("think",)),
        (["think", "harmony"], ("think", "harmony")),
        (("think", "harmony"), ("think", "harmony")),
        (("<a>", "</a>"), ("<a>",)),
        ([("<a>", "</a>"), "think"], ("<a>", "think")),
        ([["<a>", " </a> "]], ("<a>",)),
        (("[think]", "think"), ("[think]", "think")),
    ],
)
def test_tags_name_grammars_or_are_pairs(tags: Any, names: tuple[str, ...]) -> None:
    rules = find_rules(tags)
    assert tuple(grammar.name for grammar in rules.grammars) == names
    assert find_rules(tags) is rules


def test_a_pair_with_one_tag_for_both_ends_does_not_nest() -> None:
    (same,), (other,) = find_rules([("%%", "%%")]).grammars, find_rules([("<a>", "</a>")]).grammars
    assert isinstance(same, Grammar)
    assert (same.nests, other.nests) == (False, True)
    assert find(find_rules([("%%", "%%")]).within(same), "%%") == (Role.CLOSE, "%%", "%%")


@pytest.mark.parametrize(
    ("tags", "says"),
    [
        (["thnk"], "no tag grammar is called 'thnk'; known: think, .*give pairs"),
        ([("<a>",)], "needs an opening and a closing text"),
        ([("<a>", " ")], "both not blank"),
    ],
)
def test_tags_that_are_none_are_refused(tags: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        find_rules(tags)
