"""Redaction: a secret in every spelling, and what a text quotes of others."""

from __future__ import annotations

import base64
import html
import json
import random
import string
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest

from asides.values.messages import Message, Prompt, user
from asides.values.parts import Refusal, Text, ToolCall, ToolResult, UnknownPart
from asides.values.redaction import build_redactor, hide_quotes, list_texts, redact_bytes
from asides.values.thinking import Seal, Thought

SPELLINGS: dict[str, Callable[[str], str]] = {
    "plain": str,
    "upper case": str.upper,
    "lower case": str.lower,
    "in a URL": quote,
    "in a URL, all of it": lambda key: quote(key, safe=""),
    "in a form": quote_plus,
    "in a URL, twice": lambda key: quote(quote(key, safe=""), safe=""),
    "as JSON": lambda key: json.dumps(key)[1:-1],
    "as JSON with escaped slashes": lambda key: json.dumps(key)[1:-1].replace("/", "\\/"),
    "as JSON inside JSON": lambda key: json.dumps(json.dumps(key))[3:-3],
    "in HTML": html.escape,
    "in hexadecimal": lambda key: key.encode().hex(),
    "in hexadecimal, upper case": lambda key: key.encode().hex().upper(),
    "every character percent-encoded": lambda key: "".join(f"%{ord(character):02X}" for character in key),
    "every character escaped": lambda key: "".join(f"\\u{ord(character):04x}" for character in key),
    "every character an entity": lambda key: "".join(f"&#{ord(character)};" for character in key),
    "in base64": lambda key: base64.b64encode(key.encode()).decode(),
    "in base64 without padding": lambda key: base64.b64encode(key.encode()).decode().rstrip("="),
    "in URL-safe base64": lambda key: base64.urlsafe_b64encode(key.encode()).decode(),
    "in URL-safe base64 without padding": lambda key: base64.urlsafe_b64encode(key.encode()).decode().rstrip("="),
}
KEYS = [
    "sk-canary-3141592653589793",
    "AIzaSyD-9tSrke72PouQMnMX-a7eZSW0jkFMBWY",
    "abcdefgh",
    "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
    "a/b+c=d:e~f$g!h@i#j&k*l(m)n'o\"p",
    "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0NTY3ODkwIn0" * 40 + ".signature-0123",
    "12345678",
]


@pytest.mark.parametrize("key", KEYS, ids=range(len(KEYS)))
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_secret_is_taken_out_in_every_spelling(spelling: str, key: str) -> None:
    shown = SPELLINGS[spelling](key)
    text = f"Wrong key <{shown}> for /v1?key={shown}&a=1."
    redacted = build_redactor([key])(text)
    assert redacted == "Wrong key <***> for /v1?key=***&a=1." or len(key) > 128
    assert shown[:40] not in redacted
    assert redact_bytes(b"\xff\xfe" + text.encode(), build_redactor([key])) == b"\xff\xfe" + redacted.encode()


@pytest.mark.parametrize("key", KEYS, ids=range(len(KEYS)))
@pytest.mark.parametrize("user_name", ["", "u:", "me:", "you:", "someone@example.com:"])
@pytest.mark.parametrize("after", ["", ":", "ab", "\n"])
def test_a_secret_is_taken_out_of_a_longer_text_in_base64(key: str, user_name: str, after: str) -> None:
    encoded = base64.b64encode(f"{user_name}{key}{after}".encode()).decode()
    for shown in (encoded, encoded.rstrip("="), encoded.replace("+", "-").replace("/", "_")):
        redacted = build_redactor([key])(f"Basic {shown} is wrong")
        left = "".join(redacted.removeprefix("Basic ").removesuffix(" is wrong").split("***"))
        assert len(left) <= len(user_name) * 8 / 6, redacted
        assert redacted.startswith("Basic ")
        assert redacted.endswith(" is wrong")


def test_random_secrets_are_taken_out_of_random_surroundings() -> None:
    dice = random.Random(11)
    alphabet = string.ascii_letters + string.digits + "-_.~+/=!$%&"
    for _ in range(100):
        key = "".join(dice.choices(alphabet, k=dice.randrange(8, 90)))
        around = ["".join(dice.choices(" abc,.xyz019<>%", k=30)) for _ in range(2)]
        spelling = dice.choice(list(SPELLINGS))
        shown = SPELLINGS[spelling](key)
        redacted = build_redactor([key])(shown.join(around))
        assert shown not in redacted, (spelling, key)
        assert "***" in redacted


def test_the_beginning_of_a_long_secret_is_taken_out_too() -> None:
    key = "sk-canary-3141592653589793"
    assert build_redactor([key])(f"the key {key[:20]}... is wrong") == "the key *** is wrong"
    assert build_redactor([key])("the key sk-canary is wrong") == "the key sk-canary is wrong"


def test_a_short_secret_is_a_word_and_a_very_short_one_stays() -> None:
    assert build_redactor(["none"])("none, and nonetheless one-none") == "***, and nonetheless one-none"
    assert build_redactor(["abc", "", "é" * 20])("abc é") == "abc é"
    assert build_redactor([])("as it was") == "as it was"


def test_a_secret_inside_another_leaves_nothing_of_the_longer_one() -> None:
    assert build_redactor(["secret-one", "secret-one-and-two"])("secret-one-and-two") == "***"


# --- quotes -----------------------------------------------------------------------------------------------------------

PROMPT = (
    'My name is Ada Lovelace, born in 1815, and my card is 4111111111111111.\n\tPlease "help" me with Grüße, quickly!'
)


@pytest.mark.parametrize(
    ("message", "left"),
    [
        (f"invalid value: {PROMPT}", "invalid value: …!"),
        (f"invalid value: {json.dumps(PROMPT)} in messages[0]", 'invalid value: "…!" in messages[0]'),
        (f"invalid value: {json.dumps(PROMPT, ensure_ascii=False)}.", 'invalid value: "…!".'),
        (f"invalid value: {PROMPT.upper()}", "invalid value: …!"),
        (f"cannot parse {' '.join(PROMPT.split())[:40]}…", "cannot parse ……"),
        ("4111111111111111 is no number", "… is no number"),
        ("unknown word Lovelace", "unknown word Lovelace"),
        ("the model gpt-5.1-codex does not exist", "the model gpt-5.1-codex does not exist"),
        ("max_tokens is too large: 4096", "max_tokens is too large: 4096"),
        ("", ""),
    ],
)
def test_what_a_message_quotes_of_a_prompt_is_cut_out(message: str, left: str) -> None:
    assert hide_quotes(message, [PROMPT, "Use gpt-5.1-codex."], ["gpt-5.1-codex"]) == left


@pytest.mark.parametrize(
    ("prompt", "message", "left"),
    [
        ("Hello", "bad content 'Hello' at 0", "bad content '…' at 0"),
        ("SECRETWORD", "token SECRETWORD is odd", "token … is odd"),
        ("the code is XK-2231-QQ", "I do not know XK-2231-QQ.", "I do not know …."),
        ("one\ntwo\nthree", "got one\\ntwo\\nthree", "got …"),
        ("Hi", "Highly odd", "Highly odd"),
        ("a?", "what is a?", "what is a?"),
        ("", "nothing", "nothing"),
    ],
)
def test_a_short_prompt_is_cut_out_as_a_whole(prompt: str, message: str, left: str) -> None:
    assert hide_quotes(message, [prompt]) == left


def test_a_long_history_costs_little() -> None:
    """A step for each letter of the message, and none for each letter of the history."""
    history = [" ".join(f"word{number}" for number in range(50_000))] * 4
    assert hide_quotes("x" * 2000 + " word100 word101 word102", history) == "x" * 2000 + " …"


def test_everything_that_was_said_counts_as_content() -> None:
    seal = Seal("signature", "SEALED")
    parts = (
        Thought("a thought", seals=(seal,)),
        Text("an answer"),
        Refusal("a refusal"),
        ToolCall("c1", "look", {"at": ["the sea", {"deep": "down"}], "n": 5}),
        UnknownPart('{"odd": 1}'),
    )
    messages = (user("a question"), Message("assistant", parts), Message("tool", (ToolResult("c1", "a result"),)))
    assert set(list_texts(Prompt(messages, system="a rule", user="ada", metadata={"team": "blue"}))) == {
        "a rule",
        "ada",
        "blue",
        "a question",
        "a thought",
        "SEALED",
        "an answer",
        "a refusal",
        "the sea",
        "down",
        '{"odd": 1}',
        "a result",
    }
