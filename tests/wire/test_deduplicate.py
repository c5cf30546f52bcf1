"""Text that a server sends twice is returned once."""

from __future__ import annotations

import pytest

from asides.wire.deduplicate import RepeatFilter, SharedText, SnapshotFilter


def test_a_second_channel_adds_only_its_new_text() -> None:
    text = SharedText()
    assert [text.feed("a", "one "), text.feed("b", "on"), text.feed("b", "e two"), text.feed("a", "two three")] == [
        "one ",
        "",
        "two",
        " three",
    ]
    assert "".join(text.pieces) == "one two three"


def test_a_channel_that_contradicts_the_text_is_ignored() -> None:
    text = SharedText()
    text.feed("a", "one two")
    assert (text.feed("b", "one three"), text.feed("b", " two"), text.differing) == ("", "", {"b"})
    assert text.feed("a", " more") == " more"


def test_a_repetition_is_held_and_released_whole_once_it_differs() -> None:
    same = RepeatFilter("plan it")
    assert [same.feed("plan"), same.feed(" it")] == ["", ""]
    other = RepeatFilter("plan it")
    assert [other.feed("plan"), other.feed(" that"), other.feed(" well")] == ["", "plan that", " well"]


def feed(pieces: list[str], *, snapshots: bool = False) -> list[str]:
    texts = SnapshotFilter(snapshots=snapshots)
    return [*(texts.feed(piece) for piece in pieces), texts.finish()]


def test_snapshots_are_recognised_and_become_deltas() -> None:
    assert feed(["The", "The answer", "The answer is 42"]) == ["The", "", " answer is 42", ""]


def test_deltas_pass_and_need_not_be_fed_any_more() -> None:
    texts = SnapshotFilter()
    assert ([texts.feed("The"), texts.feed(" answer")], texts.inactive) == (["The", " answer"], True)


@pytest.mark.parametrize(
    ("snapshots", "released"), [(False, ["a", "", "ab", "c"]), (True, ["a", "", "ab", "c"])], ids=["unknown", "known"]
)
def test_deltas_that_begin_alike_are_released_once_a_text_differs(snapshots: bool, released: list[str]) -> None:
    # "a" then "ab" looks like a snapshot; "c" shows that it was none.
    assert "".join(feed(["a", "ab", "c"], snapshots=snapshots)) == "".join(released)


def test_at_the_end_doubtful_texts_are_deltas_unless_the_row_says_snapshots() -> None:
    assert feed(["a", "ab"]) == ["a", "", "ab"]
    assert feed(["a", "ab"], snapshots=True) == ["a", "", "b"]


def test_deltas_from_a_server_that_sends_snapshots_too() -> None:
    pieces = ["one two three", "one two three four", " five", "one two three four five six", "!", "one two three"]
    assert "".join(feed(pieces, snapshots=True)) == "one two three four five six!one two three"


def test_many_deltas_where_snapshots_are_expected_cost_what_they_hold() -> None:
    pieces = [f"{number} " for number in range(30_000)]
    assert "".join(feed(pieces, snapshots=True)) == "".join(pieces)
