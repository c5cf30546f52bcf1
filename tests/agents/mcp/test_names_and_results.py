"""Names that every provider takes, the same in every run; which tools are selected; and results of servers."""

from __future__ import annotations

import re
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.types import (
    BlobResourceContents,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)

from asides.agents.mcp.names_and_results import (
    build_error,
    build_public_names,
    convert_result,
    is_selected,
    sanitize_name,
)
from asides.agents.tools.results import NOTHING
from asides.values.parts import File, Image, Text, ToolCall, ToolResult

TAKEN_BY_PROVIDERS = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def test_the_name_of_a_tool_starts_with_its_server() -> None:
    assert build_public_names("files", ["read_file"]) == {"read_file": "files__read_file"}


def test_without_a_server_a_tool_keeps_its_name() -> None:
    assert build_public_names("", ["read_file"]) == {"read_file": "read_file"}


def test_characters_that_providers_refuse_become_underscores() -> None:
    assert build_public_names("s", ["admin.tools/list"]) == {"admin.tools/list": "s__admin_tools_list"}


def test_names_that_would_be_the_same_get_a_digest_in_any_order() -> None:
    own = ["a.b", "a_b", "a/b"]
    names = build_public_names("s", own)
    assert names["a_b"] == "s__a_b"
    assert re.fullmatch(r"s__a_b_[0-9a-f]{8}", names["a.b"])
    assert len(set(names.values())) == 3
    assert all(build_public_names("s", order) == names for order in permutations(own))


def test_a_name_that_is_too_long_is_cut_and_stays_unique() -> None:
    first, second = "x" * 70 + "1", "x" * 70 + "2"
    names = build_public_names("s", [first, second])
    assert {len(name) for name in names.values()} == {64}
    assert names[first] != names[second]
    assert build_public_names("s", [second])[second] == names[second]


@given(st.lists(st.text(min_size=1, max_size=90), max_size=8), st.from_regex(r"[a-zA-Z0-9_-]{1,32}", fullmatch=True))
def test_every_provider_takes_every_name(own: list[str], server: str) -> None:
    names = build_public_names(server, own)
    assert set(names) == set(own)
    assert all(TAKEN_BY_PROVIDERS.fullmatch(name) for name in names.values())
    assert len(set(names.values())) == len(names)


def test_a_server_may_have_any_name() -> None:
    assert sanitize_name("Wetter für Köln") == "Wetter_f_r_K_ln"


@pytest.mark.parametrize(
    ("name", "allow", "deny", "selected"),
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
def test_allow_selects_and_deny_excludes(
    name: str, allow: tuple[str, ...], deny: tuple[str, ...], selected: bool
) -> None:
    assert is_selected(name, allow, deny) is selected


CALL = ToolCall("call_1", "s__tool")


def content_of(
    *blocks: ContentBlock, structured: Any = None, is_error: bool = False
) -> str | tuple[Text | Image | File, ...]:
    result = CallToolResult(content=list(blocks), structured_content=structured, is_error=is_error)
    return convert_result(CALL, result).content


def test_texts_become_lines_of_one_text() -> None:
    result = CallToolResult(content=[TextContent(text="one"), TextContent(text="two")])
    assert convert_result(CALL, result) == ToolResult("call_1", "one\ntwo", "s__tool")


def test_an_error_of_the_tool_is_an_error_result() -> None:
    result = CallToolResult(content=[TextContent(text="no such file")], is_error=True)
    assert convert_result(CALL, result) == ToolResult("call_1", "no such file", "s__tool", is_error=True)
    assert build_error(CALL, "gone") == ToolResult("call_1", "gone", "s__tool", is_error=True)


def test_an_empty_result_says_so() -> None:
    assert content_of() == NOTHING
    assert content_of(is_error=True) == "the tool failed, and the server gave no reason"


@pytest.mark.parametrize(
    ("texts", "structured"),
    [
        (['{"a": 1}'], {"a": 1}),
        (["3"], {"result": 3}),
        (["plain words"], {"result": "plain words"}),
        (["one", "two"], {"result": ["one", "two"]}),
        (["[1, 2]"], [1, 2]),
    ],
)
def test_structured_content_that_the_text_repeats_is_left_out(texts: list[str], structured: Any) -> None:
    blocks = [TextContent(text=text) for text in texts]
    assert content_of(*blocks, structured=structured) == "\n".join(texts)


@pytest.mark.parametrize(
    ("texts", "structured", "content"),
    [
        ([], {"a": "ä"}, '{"a":"ä"}'),
        (["Two rows."], {"rows": [1, 2]}, 'Two rows.\n{"rows":[1,2]}'),
        (['{"a": 1}'], {"a": 2}, '{"a": 1}\n{"a":2}'),
        (["one"], {"result": ["one", "two"]}, 'one\n{"result":["one","two"]}'),
        (["1"], {"result": 1, "more": 2}, '1\n{"result":1,"more":2}'),
    ],
)
def test_structured_content_is_added_as_json(texts: list[str], structured: Any, content: str) -> None:
    blocks = [TextContent(text=text) for text in texts]
    assert content_of(*blocks, structured=structured) == content


def test_pictures_and_files_become_parts_in_their_order() -> None:
    blocks: list[ContentBlock] = [
        TextContent(text="see"),
        ImageContent(data="iVBO\nRw==", mime_type="image/png"),
        EmbeddedResource(resource=BlobResourceContents(uri="x://a/b.gif", blob="R0lG", mime_type="image/gif")),
        EmbeddedResource(resource=BlobResourceContents(uri="x://a/", blob="AAAA")),
    ]
    assert content_of(*blocks) == (
        Text("see"),
        Image(data=b"\x89PNG"[:4], media_type="image/png"),
        Image(data=b"GIF", media_type="image/gif"),
        File("a", b"\0\0\0", media_type="application/octet-stream"),
    )


def test_a_resource_of_text_follows_its_address() -> None:
    resource = TextResourceContents(uri="file:///notes.txt", text="a note")
    assert content_of(EmbeddedResource(resource=resource)) == "file:///notes.txt\na note"


def test_a_link_becomes_text_that_no_provider_follows() -> None:
    link = ResourceLink(uri="https://example.test/log", name="log", description="what happened", mime_type="text/plain")
    assert content_of(link) == "log (text/plain) at https://example.test/log: what happened"
    assert content_of(ResourceLink(uri="x:y", name="log", title="The log")) == "The log at x:y"


@pytest.mark.parametrize("data", ["§", "a", "?!"])
def test_data_that_does_not_decode_is_named(data: str) -> None:
    block = ImageContent(data=data, mime_type="image/png")
    assert content_of(block) == "(image: the data that the server sent cannot be decoded)"
