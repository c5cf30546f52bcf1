"""Members of a JSON object, changed in its bytes."""

from __future__ import annotations

import pytest

from asides.relay.splice_body import splice_body

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
