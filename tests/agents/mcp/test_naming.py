"""Names that providers take, the same in every run, and which tools are taken."""

from __future__ import annotations

import re
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asides.agents.mcp.naming import public_names, spelled, wanted

TAKEN_BY_PROVIDERS = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def test_a_tool_is_named_behind_its_server() -> None:
    assert public_names("files", ["read_file"]) == {"read_file": "files__read_file"}


def test_without_a_server_a_tool_keeps_its_name() -> None:
    assert public_names("", ["read_file"]) == {"read_file": "read_file"}


def test_strange_characters_are_respelled() -> None:
    assert public_names("s", ["admin.tools/list"]) == {"admin.tools/list": "s__admin_tools_list"}


def test_names_that_would_be_alike_are_told_apart_whatever_the_order() -> None:
    own = ["a.b", "a_b", "a/b"]
    names = public_names("s", own)
    assert names["a_b"] == "s__a_b"
    assert re.fullmatch(r"s__a_b_[0-9a-f]{8}", names["a.b"])
    assert len(set(names.values())) == 3
    assert all(public_names("s", order) == names for order in permutations(own))


def test_a_name_that_is_too_long_is_cut_to_one_of_its_own() -> None:
    first, second = "x" * 70 + "1", "x" * 70 + "2"
    names = public_names("s", [first, second])
    assert {len(name) for name in names.values()} == {64}
    assert names[first] != names[second]
    assert public_names("s", [second])[second] == names[second]


@given(st.lists(st.text(min_size=1, max_size=90), max_size=8), st.from_regex(r"[a-zA-Z0-9_-]{1,32}", fullmatch=True))
def test_every_provider_takes_every_name(own: list[str], server: str) -> None:
    names = public_names(server, own)
    assert set(names) == set(own)
    assert all(TAKEN_BY_PROVIDERS.fullmatch(name) for name in names.values())
    assert len(set(names.values())) == len(names)


def test_a_server_may_call_itself_anything() -> None:
    assert spelled("Wetter für Köln") == "Wetter_f_r_K_ln"


@pytest.mark.parametrize(
    ("name", "allow", "deny", "taken"),
    [
        ("read_file", ("*",), (), True),
        ("read_file", ("read_*",), (), True),
        ("write_file", ("read_*",), (), False),
        ("write_file", ("read_*", "write_file"), (), True),
        ("read_secret", ("read_*",), ("*secret*",), False),
        ("Read_file", ("read_*",), (), False),
        ("read_file", (), (), False),
    ],
)
def test_allow_takes_and_deny_takes_away(name: str, allow: tuple[str, ...], deny: tuple[str, ...], taken: bool) -> None:
    assert wanted(name, allow, deny) is taken
