"""Results of servers, as the model is told."""

from __future__ import annotations

from typing import Any

import pytest
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

from asides.agents.mcp.content import convert_result, failed
from asides.agents.tools.results import NOTHING
from asides.values.messages import File, Image, Text, ToolCall, ToolResult

CALL = ToolCall("call_1", "s__tool")


def content_of(
    *blocks: ContentBlock, structured: Any = None, is_error: bool = False
) -> str | tuple[Text | Image | File, ...]:
    given = CallToolResult(content=list(blocks), structured_content=structured, is_error=is_error)
    return convert_result(CALL, given).content


def test_texts_are_lines_of_one_text() -> None:
    given = CallToolResult(content=[TextContent(text="one"), TextContent(text="two")])
    assert convert_result(CALL, given) == ToolResult("call_1", "one\ntwo", "s__tool")


def test_an_error_of_the_tool_is_one() -> None:
    given = CallToolResult(content=[TextContent(text="no such file")], is_error=True)
    assert convert_result(CALL, given) == ToolResult("call_1", "no such file", "s__tool", is_error=True)
    assert failed(CALL, "gone") == ToolResult("call_1", "gone", "s__tool", is_error=True)


def test_nothing_is_said_to_be_nothing() -> None:
    assert content_of() == NOTHING
    assert content_of(is_error=True) == "it failed, and the server does not say why"


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
def test_structured_content_that_the_text_says_already_is_not_said_twice(texts: list[str], structured: Any) -> None:
    blocks = [TextContent(text=text) for text in texts]
    assert content_of(*blocks, structured=structured) == "\n".join(texts)


@pytest.mark.parametrize(
    ("texts", "structured", "told"),
    [
        ([], {"a": "ä"}, '{"a":"ä"}'),
        (["Two rows."], {"rows": [1, 2]}, 'Two rows.\n{"rows":[1,2]}'),
        (['{"a": 1}'], {"a": 2}, '{"a": 1}\n{"a":2}'),
        (["one"], {"result": ["one", "two"]}, 'one\n{"result":["one","two"]}'),
        (["1"], {"result": 1, "more": 2}, '1\n{"result":1,"more":2}'),
    ],
)
def test_structured_content_goes_along_as_json(texts: list[str], structured: Any, told: str) -> None:
    blocks = [TextContent(text=text) for text in texts]
    assert content_of(*blocks, structured=structured) == told


def test_pictures_and_files_are_parts_in_their_order() -> None:
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


def test_a_resource_of_text_is_text_behind_its_address() -> None:
    resource = TextResourceContents(uri="file:///notes.txt", text="a note")
    assert content_of(EmbeddedResource(resource=resource)) == "file:///notes.txt\na note"


def test_a_link_is_words_that_no_provider_follows() -> None:
    link = ResourceLink(uri="https://example.test/log", name="log", description="what happened", mime_type="text/plain")
    assert content_of(link) == "log (text/plain) at https://example.test/log: what happened"
    assert content_of(ResourceLink(uri="x:y", name="log", title="The log")) == "The log at x:y"


@pytest.mark.parametrize("data", ["§", "a", "?!"])
def test_data_that_does_not_read_is_said_to_be_so(data: str) -> None:
    block = ImageContent(data=data, mime_type="image/png")
    assert content_of(block) == "(image: the data that the server sent does not read)"
