"""The short notation of `--schema`, and the three forms that the option takes."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from asides.agents.outputs.schemas import is_strict_schema
from asides.cli.schema_notation import parse_schema_notation
from asides.values.errors import ConfigError
from asides.values.json_schema import find_schema_fault
from asides_stage.stage import OpenStage, Say, Stage
from tests.cli.children import ask, only_body

TEXT, WHOLE, NUMBER, NULL = {"type": "string"}, {"type": "integer"}, {"type": "number"}, {"type": "null"}


def make_object(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


@pytest.mark.parametrize(
    ("text", "schema"),
    [
        ("name", make_object(name=TEXT)),
        (
            "name, age int, tags list[str],",
            make_object(name=TEXT, age=WHOLE, tags={"type": "array", "items": TEXT}),
        ),
        ("age: int, height: float", make_object(age=WHOLE, height=NUMBER)),
        ("age int: in years", make_object(age={**WHOLE, "description": "in years"})),
        ("age: int: in years", make_object(age={**WHOLE, "description": "in years"})),
        ("email?, age int?", make_object(email={"anyOf": [TEXT, NULL]}, age={"anyOf": [WHOLE, NULL]})),
        ("mood glad|sad", make_object(mood={"type": "string", "enum": ["glad", "sad"]})),
        ("sums int[][]", make_object(sums={"type": "array", "items": {"type": "array", "items": WHOLE}})),
        (
            "people list[{name, age int}]",
            make_object(people={"type": "array", "items": make_object(name=TEXT, age=WHOLE)}),
        ),
        (
            "\n name: first, last\n age int: in years, whole\n",
            make_object(name={**TEXT, "description": "first, last"}, age={**WHOLE, "description": "in years, whole"}),
        ),
    ],
)
def test_fields_become_a_schema_that_strict_modes_take(text: str, schema: dict[str, Any]) -> None:
    assert parse_schema_notation(text, "--schema") == schema
    assert find_schema_fault(schema) is None
    assert is_strict_schema(schema)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name, age itn", "--schema, character 11: 'itn' is not a valid type for the field 'age'; did you mean int?"),
        (
            "name\nage itn",
            "--schema, line 2, character 5: 'itn' is not a valid type for the field 'age'; did you mean int?",
        ),
        ("a, 1b", "--schema, character 4: '1b' is not a field name: a name begins with a letter."),
        ("a, b int, a", "--schema, character 11: the field 'a' comes twice."),
        ("a list[int", "--schema, character 11: a ] is missing here."),
        ("a {b, c int", "--schema, character 12: a } is missing here."),
        ("a {}", "--schema, character 3: the braces hold no field."),
        (
            "a int b",
            "--schema, character 7: 'b' is not expected here; a comma ends a field, and a colon begins a description.",
        ),
        (" , ", '--schema names no field. Write names, such as "name, age int, tags list[str]".'),
    ],
)
def test_an_error_points_at_the_place(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_schema_notation(text, "--schema")
    assert str(caught.value) == message


def test_any_text_is_a_schema_or_a_config_error() -> None:
    pieces = ["a", "b c", "int", "list[", "]", "{", "}", ",", "\n", ":", "?", "|", "[]", " ", "é", "\0", "1", "list"]
    dice = random.Random(7)
    read = 0
    for _ in range(5000):
        text = "".join(dice.choices(pieces, k=dice.randint(0, 12)))
        try:
            schema = parse_schema_notation(text, "--schema")
        except ConfigError:
            continue
        read += 1
        assert find_schema_fault(schema) is None, text
    assert read > 100
    with pytest.raises(ConfigError, match="nested deeper"):
        parse_schema_notation("a {" * 500, "--schema")


def sent_schema(stage: Stage) -> dict[str, Any]:
    return dict(only_body(stage)["response_format"]["json_schema"]["schema"])


@pytest.mark.parametrize("form", ["notation", "json", "file"])
def test_the_option_takes_fields_json_or_a_file(
    form: str, stage: OpenStage, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    schema = make_object(name=TEXT, age=WHOLE)
    path = tmp_path / "person.json"
    path.write_text(json.dumps(schema))
    value = {"notation": "name, age int", "json": json.dumps(schema), "file": str(path)}[form]
    server = stage(Say(text='{"name": "Ada", "age": 36}'))
    assert ask(capsys, server, "--schema", value, "Who?").out == '{"name": "Ada", "age": 36}\n'
    assert sent_schema(server) == schema


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("nowhere.json", "nowhere.json cannot be read"),
        ("some/where", "some/where cannot be read"),
        ('{"type": "objekt"}', "not a JSON schema: $.type is 'objekt'"),
        ('{"type": ', "--schema is not valid JSON"),
        ("name strr", "did you mean str?"),
        ("", "--schema names no field"),
    ],
)
def test_a_bad_schema_is_wrong_usage_and_nothing_is_sent(
    value: str, words: str, stage: OpenStage, capsys: pytest.CaptureFixture[str]
) -> None:
    server = stage()
    done = ask(capsys, server, "--schema", value, "Who?")
    assert (done.code, done.out, len(server.requests)) == (2, "", 0)
    assert words in done.err
