"""Values of a JSON text with comments: one changes, everything else stays as it was written."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from asides.cli.edit_json import look_up, parse_json, remove_values, set_values
from asides.values.errors import ConfigError

COMMENTED = """\
// mine
{
  // about a
  "a": 1, // one
  "env": {
    "X": "http://x//y" /* last */,
  },
  "l": [1, 2,], // tail
}
"""


def test_a_value_changes_and_comments_stay() -> None:
    assert set_values(COMMENTED, {("a",): 2}) == COMMENTED.replace('"a": 1', '"a": 2')


def test_new_values_come_last_in_their_object_and_in_its_style() -> None:
    changed = set_values(COMMENTED, {("env", "Y"): "é", ("new", "deep"): [True, None]})
    inside = COMMENTED.partition("  },\n")[0] + '    "Y": "é",\n  },\n  "l": [1, 2,], // tail\n'
    assert changed == f'{inside}  "new": {{\n    "deep": [\n      true,\n      null\n    ]\n  }},\n}}\n'


def test_what_was_set_can_be_removed_without_a_trace() -> None:
    changed = set_values(COMMENTED, {("env", "Y"): "z", ("new", "deep"): {"k": 1}})
    assert remove_values(changed, [("new", "deep"), ("env", "Y"), ("missing", "too")]) == COMMENTED


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("", '{\n  "b": {\n    "c": "x"\n  }\n}\n'),
        ("{}", '{\n  "b": {\n    "c": "x"\n  }\n}'),
        ("// only this", '// only this\n{\n  "b": {\n    "c": "x"\n  }\n}\n'),
        ("{ // c\n}", '{\n  // c\n  "b": {\n    "c": "x"\n  }\n}'),
        ('{"a": 1}', '{"a": 1, "b": {\n    "c": "x"\n  }}'),
        ('{\r\n\t"a": {}\r\n}\r\n', '{\r\n\t"a": {},\r\n\t"b": {\r\n\t\t"c": "x"\r\n\t}\r\n}\r\n'),
        ('\ufeff{"b": {"c": 0}}', '\ufeff{"b": {"c": "x"}}'),
    ],
    ids=["empty", "no member", "a comment alone", "a comment inside", "one line", "tabs and CRLF", "a byte order mark"],
)
def test_any_style_of_file_gets_the_value(text: str, after: str) -> None:
    assert set_values(text, {("b", "c"): "x"}) == after
    assert set_values(after, {("b", "c"): "x"}) == after


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('{"a": }', "line 1, column 7: a value is missing"),
        ('{"a" 1}', "line 1, column 6: a colon is missing"),
        ('{\n "a": 1\n "b": 2}', "line 3, column 2: a comma or } is missing"),
        ("[1", "line 1, column 3: a comma or ] is missing"),
        ("{a: 1}", "line 1, column 2: a name in quotes is missing"),
        ("{} {}", "line 1, column 4: something follows the end"),
        ('{"a": 1} /* open', "line 1, column 10: something follows the end"),
        ('{"a": 1.2.3}', "line 1, column 7: this is not a JSON value"),
        ("[" * 500, "line 1, column 102: it is nested too deeply"),
    ],
)
def test_a_broken_text_is_refused_with_its_place(text: str, place: str) -> None:
    with pytest.raises(ConfigError, match="^" + place.replace("]", "\\]").replace("}", "\\}") + ".$"):
        parse_json(text)


def test_a_value_is_no_object_to_add_to() -> None:
    with pytest.raises(ConfigError, match=r"env is not a JSON object\. Change the file by hand"):
        set_values('{"env": "x"}', {("env", "A"): "b"})


def test_the_last_of_two_members_counts_as_everybody_reads_it() -> None:
    assert set_values('{"a": 1, "a": 2}', {("a",): 3}) == '{"a": 1, "a": 3}'


def test_random_files_keep_everything_else() -> None:
    generator = random.Random(7)
    for _ in range(300):
        document = _invent(generator, 3)
        text = json.dumps(document, indent=generator.choice([None, 2, "\t"]))
        if generator.random() < 0.5:
            text = text.replace(",\n", ", // why\n").replace("{\n", "{ /* why */\n")
        path = tuple(generator.choice("abcde") for _ in range(generator.randint(1, 3)))
        try:
            after = set_values(text, {path: "new"})
        except ConfigError:
            outer = [look_up(document, path[:end]) for end in range(1, len(path))]
            assert any(value is not None and not isinstance(value, dict) for value in outer) or None in outer
            continue
        assert look_up(parse_json(after), path) == "new"
        if not isinstance(look_up(document, path), (dict, list)):
            assert after.count("why") == text.count("why")
        expected = _drop_empty(_without(document, path))
        assert _drop_empty(_without(parse_json(remove_values(after, [path])), path)) == expected


def _invent(generator: random.Random, depth: int) -> dict[str, Any]:
    def value() -> Any:
        if depth and generator.random() < 0.5:
            return _invent(generator, depth - 1)
        return generator.choice([1, "two", None, [1, {"x": 2}], True, "// no comment", 'a "quoted" word'])

    return {generator.choice("abcde"): value() for _ in range(generator.randint(0, 4))}


def _without(document: Any, path: tuple[str, ...]) -> Any:
    if not isinstance(document, dict):
        return document
    first, *rest = path
    pairs = {key: each for key, each in document.items() if key != first or rest}
    return {key: _without(each, tuple(rest)) if key == first else each for key, each in pairs.items()}


def _drop_empty(document: Any) -> Any:
    if not isinstance(document, dict):
        return document
    inner = {key: _drop_empty(each) for key, each in document.items()}
    return {key: each for key, each in inner.items() if each not in ({}, None)}
