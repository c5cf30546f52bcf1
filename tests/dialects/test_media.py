"""Media types and data: addresses of pictures and files."""

from __future__ import annotations

import msgspec
import pytest

from asides.dialects.media import find_media_type, make_data_url, make_image_url, split_data_url
from asides.values.errors import Unsupported
from asides.values.parts import File, Image


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
