"""Changing one value of a TOML text: everything else stays, letter by letter where it can."""

from __future__ import annotations

import random
import tomllib
from typing import Any

import pytest

from asides.cli.edit_toml import parse_name, remove_table, set_value, unset_value
from asides.values.errors import ConfigError

TEXT = """\
# My settings.
model = "deepseek:deepseek-flash"   # fast
thinking = "medium"

# How long to wait.
[timeouts]
idle = 20 # seconds
total = 3_600

[providers.my-host]                    # my own
base_url = "https://llm.example.com/v1"
"key_env" = 'MY_KEY'
"""


@pytest.mark.parametrize(
    ("name", "value", "old", "new"),
    [
        ("model", "groq:m", 'model = "deepseek:deepseek-flash"   # fast', 'model = "groq:m"   # fast'),
        ("timeouts.idle", 5, "idle = 20 # seconds", "idle = 5 # seconds"),
        ("timeouts.total", 1.5, "total = 3_600", "total = 1.5"),
        ("providers.my-host.key_env", "OTHER", "\"key_env\" = 'MY_KEY'", '"key_env" = "OTHER"'),
        ("model", 'a"b\\c#d', '"deepseek:deepseek-flash"', '"a\\"b\\\\c#d"'),
    ],
)
def test_a_value_is_replaced_in_its_place_and_its_comment_stays(name: str, value: Any, old: str, new: str) -> None:
    assert set_value(TEXT, parse_name(name), value) == TEXT.replace(old, new)


@pytest.mark.parametrize(
    ("name", "value", "after", "line"),
    [
        ("retries", 4, 'thinking = "medium"\n', "retries = 4\n"),
        ("timeouts.connect", 3, "total = 3_600\n", "connect = 3\n"),
        ("providers.my-host.title", "Mine", "\"key_env\" = 'MY_KEY'\n", 'title = "Mine"\n'),
        ("providers.other.base_url", "https://o", "'MY_KEY'\n", '\n[providers.other]\nbase_url = "https://o"\n'),
        ('aliases."a b"', "groq:m", "'MY_KEY'\n", '\n[aliases]\n"a b" = "groq:m"\n'),
    ],
)
def test_a_new_value_stands_where_a_reader_looks_for_it(name: str, value: Any, after: str, line: str) -> None:
    assert set_value(TEXT, parse_name(name), value) == TEXT.replace(after, after + line)


@pytest.mark.parametrize(
    ("before", "name", "value", "after"),
    [
        ("", "retries", 4, "retries = 4\n"),
        ("", "timeouts.idle", 4, "[timeouts]\nidle = 4\n"),
        ("# only words", "retries", 4, "# only words\nretries = 4\n"),
        ("retries = 3", "retries", 4, "retries = 4\n"),
        ("[timeouts]\nidle = 1\n", "retries", 4, "retries = 4\n\n[timeouts]\nidle = 1\n"),
        ("# words\n\n# of it\n[timeouts]\n", "retries", 4, "# words\nretries = 4\n\n# of it\n[timeouts]\n"),
        ("timeouts.idle = 1\n", "timeouts.total", 2, "timeouts.idle = 1\ntimeouts.total = 2\n"),
        ("timeouts.idle = 1\n", "timeouts.idle", 2, "timeouts.idle = 2\n"),
        ("timeouts = { idle = 1 } # x\n", "timeouts.total", 2, "timeouts = { idle = 1, total = 2} # x\n"),
        ("timeouts = {idle=1}\n", "timeouts.idle", 2, "timeouts = {idle=2}\n"),
        ("[a]\nx = 1\n\n# of b\n[b]\n", "a.y", 2, "[a]\nx = 1\ny = 2\n\n# of b\n[b]\n"),
        ("[timeouts]\n# none yet\n", "timeouts.idle", 2, "[timeouts]\n# none yet\nidle = 2\n"),
        ("a = 1\r\n[timeouts]\r\nidle = 1\r\n", "timeouts.idle", 2, "a = 1\r\n[timeouts]\r\nidle = 2\r\n"),
        ("a = 1\r\n", "b", 2, "a = 1\r\nb = 2\r\n"),
        ("l = [ # list\n  1, # one\n  2,\n] # end\n", "l", [3], "l = [3] # end\n"),
        ('s = """a\n= # b\n""" # c\nx = 1\n', "s", "t", 's = "t" # c\nx = 1\n'),
        ('s = """\n[x]\nidle = 1\n"""\n', "idle", 2, 's = """\n[x]\nidle = 1\n"""\nidle = 2\n'),
        ("s = '#=' # c\n", "s", 1, "s = 1 # c\n"),
        ("n = nan # c\n", "n", 1, "n = 1 # c\n"),
        ("'a=b' = 1\n", "'a=b'", 2, "'a=b' = 2\n"),
        ("[[rows]]\nx = 1\n[[rows]]\nx = 2\n", "x", 3, "x = 3\n\n[[rows]]\nx = 1\n[[rows]]\nx = 2\n"),
        ("[a.b]\nc = 1\n", "a.d", 2, "[a]\nd = 2\n\n[a.b]\nc = 1\n"),
        ("[a]\nb.c = 1\n", "a.b.d", 2, "[a]\nb.c = 1\nb.d = 2\n"),
        ("[ t . u ]\nx=1\n", "t.u.x", 2, "[ t . u ]\nx=2\n"),
        ("t = 1979-05-27T07:32:00Z\nu = 07:32:00\n", "v", 1, "t = 1979-05-27T07:32:00Z\nu = 07:32:00\nv = 1\n"),
    ],
)
def test_every_spelling_of_toml_is_changed_as_its_author_would(before: str, name: str, value: Any, after: str) -> None:
    assert set_value(before, parse_name(name), value) == after


@pytest.mark.parametrize(
    ("before", "name", "after"),
    [
        ("a = 1\n# of b\nb = 2 # two\nc = 3\n", "b", "a = 1\n# of b\nc = 3\n"),
        ("[timeouts]\nidle = 1\n", "timeouts.idle", "[timeouts]\n"),
        ("timeouts = { idle = 1, total = 2 }\n", "timeouts.idle", "timeouts = {  total = 2 }\n"),
        ("timeouts = { idle = 1 }\n", "timeouts.idle", "timeouts = {  }\n"),
        ("timeouts.idle = 1\ntimeouts.total = 2\n", "timeouts.idle", "timeouts.total = 2\n"),
        ("l = [\n1,\n]\nx = 1", "l", "x = 1"),
    ],
)
def test_a_value_is_removed_and_nothing_else(before: str, name: str, after: str) -> None:
    assert unset_value(before, parse_name(name)) == after


@pytest.mark.parametrize(
    ("before", "name", "says"),
    [
        ("timeouts = 1\n", "timeouts.idle", "is a value in the file"),
        ("[timeouts]\nidle = 1\n", "timeouts", "is a table.*timeouts.idle"),
        ("[[a]]\nb = 1\n", "a.b", "is a value in the file"),
        ("", "a b", "is not a valid name of a setting"),
        ("", "", "is not a valid name of a setting"),
        ("", "a = 1\nb", "is not a valid name of a setting"),
        ("", "a = 1 # ", "is not a valid name of a setting"),
    ],
)
def test_what_cannot_be_changed_is_an_error(before: str, name: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        set_value(before, parse_name(name), 1)


def test_what_is_not_there_cannot_be_removed() -> None:
    for name in ("a", "timeouts.total", "timeouts.x.y"):
        with pytest.raises(ConfigError, match="is not in the file"):
            unset_value("b = 1\n[timeouts]\nidle = 1\n", parse_name(name))


@pytest.mark.parametrize(
    "value",
    ["", "a\nb\t\x00\x1f\x7f\\\"'", "schön 🙂", True, -3, 1.5, 1e300, float("inf"), [], ["a", 1], {"a b": {"c": []}}],
)
def test_every_value_reads_back(value: Any) -> None:
    assert tomllib.loads(set_value("", ("x",), value))["x"] == value


# Pieces of documents: statements of the top, and tables.
_TOPS = [
    "a = 1",
    "b = 'x#y' # c",
    'c = """m\n[t]\na = 9\n"""',
    "d = [\n 1, # [\n 2\n]",
    "t1.x = 1",
    "e = { x = 1, y = 2 }",
]
_TABLES = ["[t2]\nx = 1\n# end", "[t3]", "[t4.u]\nx = 1 # c\ny = 2", "[[l]]\nx = 1", "[ 't5' ]\n\"x\" = 1\n\n"]
_NAMES = [
    "a",
    "b",
    "c",
    "d",
    "t1.x",
    "t1.y",
    "e.x",
    "e.z",
    "t2.x",
    "t2.y",
    "t3.x",
    "t4.u.x",
    "t4.z",
    "t5.x",
    "n",
    "m.o.p",
]


def test_no_change_of_any_document_touches_another_value() -> None:
    """What a set and an unset leave is what a careful person would: the same document, with one difference."""
    generator = random.Random(7)
    changed = 0
    for _ in range(400):
        tops = generator.sample(_TOPS, generator.randrange(len(_TOPS) + 1))
        tables = generator.sample(_TABLES, generator.randrange(len(_TABLES) + 1))
        text = "\n".join([*tops, *tables]) + generator.choice(["", "\n", "\n\n# end\n"])
        before = tomllib.loads(text)
        name = parse_name(generator.choice(_NAMES))
        after = set_value(text, name, 42)
        inner: Any = tomllib.loads(after)
        comments = [line for line in text.split("\n") if line.startswith("#")]
        assert [line for line in after.split("\n") if line.startswith("#")] == comments
        for part in name[:-1]:
            inner = inner[part]
        assert inner[name[-1]] == 42
        back = tomllib.loads(unset_value(after, name))
        assert _without(back, name) == _without(before, name)
        changed += 1
    assert changed == 400


def _without(document: dict[str, Any], path: tuple[str, ...]) -> Any:
    """The document without the value at this path, and without empty tables."""

    def clean(value: Any, rest: tuple[str, ...] | None) -> Any:
        if not isinstance(value, dict):
            return value
        pairs = {
            key: clean(each, rest[1:] if rest and key == rest[0] else None)
            for key, each in value.items()
            if not (rest and rest == (key,))
        }
        return {key: each for key, each in pairs.items() if each != {}}

    return clean(document, path)


def test_a_table_goes_with_everything_in_it_and_with_its_header() -> None:
    text = 'model = "m" # mine\n\n[providers.other]\na = 1\n\n[providers.gone]\nb = 2\n\n[providers.gone.deep]\nc = 3\n'
    assert remove_table(text, ("providers", "gone")) == text.partition("\n[providers.gone]")[0]
    assert remove_table(text, ("providers", "missing")) == text
