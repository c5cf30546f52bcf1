"""Pictures and files from bytes, paths, open files and URLs; and what is refused, with the right spelling."""

from __future__ import annotations

import copy
import io
import os
import pickle
from base64 import b64encode
from pathlib import Path
from typing import Any

import msgspec
import pytest

from asides.intake.files import attach, read_attachments
from asides.values.attachments import read_attachment
from asides.values.errors import ConfigError
from asides.values.parts import File, Image, Part, Text

PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"
JPEG = b"\xff\xd8\xff\xe0\x00\x10JFIF"
PDF = b"%PDF-1.7\n1 0 obj"
WAV = b"RIFF\x10\x00\x00\x00WAVEfmt "


@pytest.fixture(name="folder", autouse=True)
def a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    files = {"red.png": PNG, "photo.png": JPEG, "a.pdf": PDF, "a.wav": WAV, "notes.txt": b"notes\n", "empty.png": b""}
    for name, data in {**files, "lfs.png": b"version https://git-lfs", "odd.bin": b"\x00\x01\xff"}.items():
        (tmp_path / name).write_bytes(data)
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_picture_is_read_from_what_people_have(folder: Path) -> None:
    url = f"data:image/png;base64,{b64encode(PNG).decode()}"
    with Path("red.png").open("rb") as opened:
        sources: list[Any] = [
            *("red.png", Path("red.png"), str(folder / "red.png"), (folder / "red.png").as_uri(), url),
            *(PNG, bytearray(PNG), memoryview(PNG), io.BytesIO(PNG), opened),
        ]
        made = [Image(source) for source in sources]
    assert made == [Image(data=PNG)] * len(sources)
    assert made[0].media_type == "image/png"


@pytest.mark.parametrize(
    ("image", "kind"),
    [
        (lambda: Image("photo.png"), "image/jpeg"),
        (lambda: Image(data=JPEG), "image/jpeg"),
        (lambda: Image(data=JPEG, media_type="image/png"), "image/jpeg"),
        (lambda: Image(data=JPEG, media_type="image/gif"), "image/jpeg"),
        (lambda: Image(f"data:image/png;base64,{b64encode(JPEG).decode()}"), "image/jpeg"),
        (lambda: Image(url=f"data:image/png;base64,{b64encode(JPEG).decode()}"), "image/jpeg"),
        (lambda: Image(data=b"\x00unknown", media_type="image/jxl"), "image/jxl"),
        (lambda: Image(data=b"\x00unknown", media_type="image/jpg"), "image/jpeg"),
        (lambda: Image(data=b"\x00unknown", media_type="webp"), "image/webp"),
        (lambda: Image("https://example.com/a.webp?size=2#x"), "image/webp"),
        (lambda: Image(url="https://example.com/a.gif"), "image/gif"),
        (lambda: Image("https://example.com/picture"), "image/png"),
        (lambda: msgspec.convert({"type": "image", "data": JPEG, "media_type": "image/png"}, Image), "image/jpeg"),
    ],
)
def test_the_media_type_of_a_picture_is_that_of_its_bytes(image: Any, kind: str) -> None:
    assert image().media_type == kind


@pytest.mark.parametrize(
    ("file", "name", "kind"),
    [
        (lambda: File("a.pdf"), "a.pdf", "application/pdf"),
        (lambda: File(Path("a.wav")), "a.wav", "audio/wav"),
        (lambda: File(PDF), "file.pdf", "application/pdf"),
        (lambda: File(PDF, name="report"), "report", "application/pdf"),
        (lambda: File("notes.txt"), "notes.txt", "text/plain"),
        (lambda: File(b"a,b\n1,2", name="t.csv"), "t.csv", "text/csv"),
        (lambda: File(b"words"), "file.txt", "text/plain"),
        (lambda: File("red.png"), "red.png", "image/png"),
        (lambda: File("https://example.com/docs/My%20report.pdf?x=1"), "My report.pdf", "application/pdf"),
        (lambda: File("data:text/csv,a%2Cb"), "file.csv", "text/csv"),
        (lambda: File("a.pdf", PDF), "a.pdf", "application/pdf"),
        (lambda: File("a.pdf", data=b"\x00"), "a.pdf", "application/pdf"),
        (lambda: File("b.pdf", url="https://example.com/b"), "b.pdf", "application/pdf"),
        (lambda: File(id="file-1"), "file", "application/pdf"),
        (lambda: File("odd.bin", media_type="application/x-odd"), "odd.bin", "application/x-odd"),
    ],
)
def test_a_file_has_the_name_and_the_type_that_its_source_shows(file: Any, name: str, kind: str) -> None:
    made = file()
    assert (made.name, made.media_type) == (name, kind)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Image("blue.png"), "'blue.png' is neither a URL nor a file that exists"),
        (lambda: Image(Path("blue.png")), "blue.png cannot be read: No such file"),
        (lambda: Image("sub"), "sub is a folder"),
        (lambda: Image("empty.png"), "empty.png is empty"),
        (lambda: Image("lfs.png"), "no picture in the file lfs.png, but text"),
        (lambda: Image("odd.bin"), "a format that is not known"),
        (lambda: Image("a.pdf"), r"a PDF \(application/pdf\). Use File"),
        (lambda: Image(data=WAV), "a sound"),
        (Image, "Image has no content"),
        (lambda: Image(""), "neither a URL nor a file"),
        (lambda: Image(b""), "is empty"),
        (lambda: Image(data=b""), "is empty"),
        (lambda: Image(None), "Image got None"),
        (lambda: Image(5), "Image got an int"),  # type: ignore[arg-type]
        (lambda: Image(["red.png"]), "got a list"),  # type: ignore[arg-type]
        (lambda: Image(b64encode(PNG * 4).decode()), r"looks like base64. Decode it"),
        (lambda: Image("data:image/png;base64,???"), "cannot be decoded"),
        (lambda: Image("https://"), "not a complete URL"),
        (lambda: Image(url="red.png"), r"not 'red.png'. For a file write Image\(Path"),
        (lambda: Image(url=Path("red.png")), "url= takes text"),  # type: ignore[arg-type]
        (lambda: Image(data="red.png"), "data= takes bytes"),  # type: ignore[arg-type]
        (lambda: Image(data=PNG, media_type=5), "media_type is text"),  # type: ignore[arg-type]
        (lambda: Image(io.StringIO("text")), 'Open it with "rb"'),  # type: ignore[arg-type]
        (lambda: Image(os.devnull), "is a device"),
        (lambda: File("nope.pdf"), "neither a URL nor a file"),
        (lambda: File("odd.bin"), "neither text nor a known format"),
        (File, "File has no content"),
        (lambda: File(id=""), "id= takes the provider's id"),
        (lambda: File(5, data=PDF), "name must be text, the name of the file"),  # type: ignore[arg-type]
    ],
)
def test_anything_else_raises_with_the_right_spelling(make: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        make()
    assert "" in str(caught.value)


def test_a_text_in_a_document_is_never_a_path() -> None:
    read = msgspec.json.decode(
        b'[{"type":"image","url":"red.png"},{"type":"file","name":"notes.txt"}]', type=list[Part]
    )
    image, file = read
    assert isinstance(image, Image)
    assert isinstance(file, File)
    assert (image.url, image.data, file.data) == ("red.png", None, None)
    for value in (image, file):
        assert copy.deepcopy(value) == pickle.loads(pickle.dumps(value)) == msgspec.structs.replace(value) == value


def test_no_repr_shows_the_bytes() -> None:
    shown = f"{Image('red.png')!r} {File('notes.txt')!r}"
    assert shown == "Image(<16 bytes>, media_type='image/png') File(<6 bytes>, media_type='text/plain')"


@pytest.mark.parametrize(
    ("source", "part"),
    [
        ("red.png", Image(data=PNG)),
        (Path("photo.png"), Image(data=JPEG)),
        (PDF, File(data=PDF, name="file.pdf")),
        ("a.wav", File(data=WAV, name="a.wav")),
        ("notes.txt", Text('<file name="notes.txt">\nnotes\n</file>')),
        (b"words", Text("<file>\nwords\n</file>")),
        ("data:image/png;base64,AAEC", Image(data=b"\x00\x01\x02")),
        ("https://example.com/a.pdf", File(url="https://example.com/a.pdf", name="a.pdf")),
        ("https://example.com/a.mp3", File(url="https://example.com/a.mp3", name="a.mp3", media_type="audio/mpeg")),
        ("https://example.com/a.jpg", Image(url="https://example.com/a.jpg")),
        ("https://example.com/", Image(url="https://example.com/")),
        (Text("as it is"), Text("as it is")),
    ],
)
def test_a_file_beside_a_question_becomes_the_part_that_fits_it(source: Any, part: Part) -> None:
    assert read_attachment(source) == part


def test_a_name_cannot_close_the_mark_around_a_text() -> None:
    Path('a">\n.txt').write_text("x")
    assert read_attachment('a">\n.txt') == Text('<file name="a\'> .txt">\nx\n</file>')


def test_one_file_is_a_list_of_one_and_errors_name_the_place() -> None:
    assert read_attachments("red.png") == read_attachments(["red.png"]) == (Image(data=PNG),)
    for wrong, words in ((42, "files= must be a list"), (["red.png", 42], r"files\[1\]"), ([None], r"files\[0\]")):
        with pytest.raises(ConfigError, match=words):
            read_attachments(wrong)
    with pytest.raises(ConfigError, match="not text in UTF-8"):
        read_attachments("odd.bin")


def test_neighbouring_texts_are_joined_and_no_empty_one_is_added() -> None:
    image = Image(data=PNG)
    assert attach((Text("a"), image, Text("b")), (Text("c"), Text(""))) == (Text("a"), image, Text("b\n\nc"))
    assert attach((image,), (Text("c", cache=True), Text("d"))) == (image, Text("c", cache=True), Text("d"))


def test_a_file_that_no_request_can_hold_is_not_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("asides.values.attachments.MOST_BYTES", 1024**2)
    with (folder / "huge.png").open("wb") as file:
        file.write(PNG)
        file.truncate(1024**2)
    assert len(Image("huge.png").data or b"") == 1024**2
    with (folder / "huge.png").open("ab") as file:
        file.truncate(1024**2 + 1)
    for make in (lambda: Image("huge.png"), lambda: read_attachments(["huge.png"])):
        with pytest.raises(ConfigError, match=r"has more than 1 MB.*File\(id="):
            make()


def test_no_text_takes_long_to_be_refused() -> None:
    # Where the cost is quadratic, these take longer than a test may.
    for text in (" " * 1_000_000 + "!", "A" * 1_000_000 + "!", "data:" + ";a" * 500_000):
        with pytest.raises(ConfigError):
            Image(text)
