"""Media types and data: addresses of pictures and files."""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path

import msgspec
import pytest

import asides
from asides.dialects.media import find_media_type, make_data_url, make_image_url, split_data_url
from asides.values.errors import Unsupported
from asides.values.parts import File, Image
from asides_stage.stage import OpenStage, Say
from tests.agents.three_tools import KEY, MODELS


def test_a_data_address_is_split_and_made() -> None:
    assert split_data_url("data:image/png;base64,AQI=") == ("image/png", "AQI=")
    assert split_data_url("https://x.test/a.png") is None
    assert make_data_url("image/png", b"\x01\x02") == "data:image/png;base64,AQI="


def test_a_data_address_wins_over_the_given_media_type() -> None:
    assert find_media_type(File(url="data:Text/CSV;base64,AQI=")) == "text/csv"
    assert find_media_type(Image(url="https://x.test/a.gif", media_type="image/GIF")) == "image/gif"


def test_an_image_needs_its_bytes_or_an_address() -> None:
    assert make_image_url(Image(data=b"\x01\x02")) == "data:image/png;base64,AQI="
    with pytest.raises(Unsupported, match="neither data nor an address"):
        make_image_url(msgspec.convert({"type": "image"}, Image))


# --- on the wire ------------------------------------------------------------------------------------------------------

SEEING = {**MODELS, "cohere": "cohere:command-a-vision-07-2025", "ollama": "ollama:qwen3-vl"}
PICTURES = {
    "image/png": b"\x89PNG\r\n\x1a\n\x00",
    "image/jpeg": b"\xff\xd8\xff\xe0\x00\x10JFIF",
    "image/gif": b"GIF89a\x01\x00",
    "image/webp": b"RIFF\x10\x00\x00\x00WEBPVP8 ",
}


def find_media(body: object, data: str) -> list[str]:
    """The media types beside this data, wherever a dialect puts them; "" where it has no place for them."""
    match body:
        case {"url": str() as url} | {"image_url": str() as url} if data in url:
            return [url.removeprefix("data:").partition(";")[0]]
        case (
            {"media_type": kind, "data": found}
            | {"mimeType": kind, "data": found}
            | {
                "mime_type": kind,
                "data": found,
            }
        ) if found == data:
            return [str(kind)]
        case {"format": kind, "source": {"bytes": found}} if found == data:
            return [f"image/{kind}"]
        case {"images": [found]} if found == data:
            return [""]
        case dict():
            return [kind for inner in body.values() for kind in find_media(inner, data)]
        case list():
            return [kind for inner in body for kind in find_media(inner, data)]
        case _:
            return []


@pytest.mark.parametrize("dialect", SEEING)
@pytest.mark.parametrize("kind", PICTURES)
def test_every_dialect_sends_a_picture_as_what_it_is(dialect: str, kind: str, stage: OpenStage, tmp_path: Path) -> None:
    opened = stage(*[Say(text="seen")] * 4)
    data = PICTURES[kind]
    path = tmp_path / "wrongly-named.png"
    path.write_bytes(data)
    client = asides.Client(base_url=opened.url, api_key=KEY)
    client.ask(SEEING[dialect], "What is this?", files=[str(path)])
    client.ask(SEEING[dialect], asides.user("What is this?", path))
    client.ask(SEEING[dialect], ["What is this?", Image(data=data, media_type="image/png")])
    client.ask(SEEING[dialect], ["What is this?", Image(f"data:image/png;base64,{b64encode(data).decode()}")])
    expected = "" if dialect == "ollama" else kind
    assert [received.problem for received in opened.requests] == [None] * 4
    assert [find_media(received.json, b64encode(data).decode()) for received in opened.requests] == [[expected]] * 4


@pytest.mark.parametrize("dialect", SEEING)
def test_a_picture_by_its_url_goes_out_as_a_url_or_is_refused(dialect: str, stage: OpenStage) -> None:
    opened = stage(Say(text="seen"))
    client = asides.Client(base_url=opened.url, api_key=KEY)
    if dialect in ("ollama", "bedrock"):
        with pytest.raises(Unsupported, match="by their bytes"):
            client.ask(SEEING[dialect], "What is this?", files=["https://example.com/a.png"])
        assert opened.requests == []
    else:
        client.ask(SEEING[dialect], "What is this?", files=["https://example.com/a.png"])
        assert b"https://example.com/a.png" in opened.requests[0].body


@pytest.mark.parametrize("dialect", SEEING)
def test_text_in_a_file_reaches_every_dialect(dialect: str, stage: OpenStage, tmp_path: Path) -> None:
    opened = stage(*[Say(text="read")] * 2)
    (tmp_path / "a.py").write_text("answer = 42  # é")
    client = asides.Client(base_url=opened.url, api_key=KEY)
    client.ask(SEEING[dialect], "What is this?", files=[tmp_path / "a.py"])
    client.ask(SEEING[dialect], ["What is this?", asides.File(tmp_path / "a.py")])
    assert "answer = 42  # é" in opened.requests[0].body.decode()
    as_file = opened.requests[1].body
    assert "answer = 42  # é" in as_file.decode() or b64encode("answer = 42  # é".encode()) in as_file


@pytest.mark.parametrize(
    ("url", "split"),
    [
        ("data:image/png;base64,AA==", ("image/png", "AA==")),
        ("data:text/plain;charset=utf-8;base64,QQ==", ("text/plain", "QQ==")),
        ("data:;base64,QQ==", ("", "QQ==")),
        ("data:text/plain,A", None),
        ("https://example.com/a.png", None),
    ],
)
def test_data_addresses_are_split(url: str, split: tuple[str, str] | None) -> None:
    assert split_data_url(url) == split
