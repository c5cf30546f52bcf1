"""Members of a JSON object, changed in its bytes."""

from __future__ import annotations

import pytest

from asides.relay.splice_body import keep_bytes, splice_body

_CLAUDE = b"""{ "max_tokens" : 64,
  "model":"anthropic:claude-opus-4-5" , "messages": [ {"role":"user","content":"caf\\u00e9?"} ],
  "new_field_of_2027": {"a": [1, 2.50, 1e3]}, "stream": %b }"""


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b'{"model":"a"}', b'{"model":"b"}'),
        (b' {"x":1 , "model" : "a" , "y":[{"model":"a"}]} ', b' {"x":1 , "model" : "b" , "y":[{"model":"a"}]} '),
        (b'{"model":"a","asides":{"q":1}}', b'{"model":"b"}'),
        (b'{"asides":{"q":1},"model":"a"}', b'{"model":"b"}'),
        (b'{"asides":{}}', b"{}"),
        (b'{"m\\u006fdel":"a","z":"\\""}', b'{"m\\u006fdel":"b","z":"\\""}'),
        (b'{"model":"b","a":1.0}', b'{"model":"b","a":1.0}'),
        (b'{"a":1,"a":2,"model":"a"}', None),
        (b'{"model":"a"', None),
        (b"[]", None),
        (b'{"model":"a"} {}', None),
        (b"{}", b"{}"),
        (b'{"t":"\xff"}', b'{"t":"\xff"}'),
    ],
)
def test_a_body_is_changed_in_its_bytes(body: bytes, expected: bytes | None) -> None:
    assert splice_body(body, "b", ("asides",)) == expected


_KEPT = b'{ "model": "a" , "n" : 1.50, "stop":null,\n "messages": [ {"role":"user", "content":"?"} ] }'


@pytest.mark.parametrize(
    ("planned", "expected"),
    [
        (b'{"model":"a","messages":[{"role":"user","content":"?"}],"n":1.5}', _KEPT),
        (b'{"model":"a","messages":[{"role":"user","content":[{"type":"text","text":"?"}]}],"n":1.5}', _KEPT),
        (
            b'{"model":"a","messages":[{"role":"user","content":"?"}],"n":1.5,"stream":true,"more":{"a":[]}}',
            _KEPT.replace(b"] }", b'],"stream":true,"more":{"a":[]} }'),
        ),
        (b'{"model":"a","messages":[{"role":"user","content":"?"}]}', _KEPT.replace(b' , "n" : 1.50', b"")),
        (
            b'{"model":"a","messages":[{"role":"user","content":"!"}],"n":2}',
            b'{ "model": "a" , "n" : 2, "stop":null,\n "messages": [{"role":"user","content":"!"}] }',
        ),
        (b'{"n":1.5}', b'{ "n" : 1.50, "stop":null }'),
        (b"{}", b'{ "stop":null }'),
    ],
)
def test_a_planned_body_keeps_the_bytes_of_what_says_the_same(planned: bytes, expected: bytes) -> None:
    assert keep_bytes(_KEPT, planned) == expected


def test_what_is_refused_does_not_stay_though_it_says_nothing() -> None:
    assert keep_bytes(b'{"a":1, "top_k":null}', b'{"a":1}', ("top_k",)) == b'{"a":1}'


@pytest.mark.parametrize("body", [b'{"a":1,"a":2}', b"{}", b"[]", b'{"a":'])
def test_a_body_that_cannot_be_kept_is_replaced(body: bytes) -> None:
    assert keep_bytes(body, b'{"a":2}') == b'{"a":2}'


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (b'{"a":{"content":""}}', b'{"a":{}}'),
        (b'{"a":{"reasoning_content":null}}', b'{"a":{}}'),
        (b'{"a":{"reasoning_content":"so"}}', b'{"a":{}}'),
        (b'{"a":[{"type":"text","text":"?","cache_control":{}}]}', b'{"a":"?"}'),
        (b'{"a":["?"]}', b'{"a":"?"}'),
    ],
)
def test_other_words_are_not_kept(one: bytes, other: bytes) -> None:
    assert keep_bytes(one, other) == other
