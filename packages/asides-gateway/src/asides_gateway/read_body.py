"""Read the body of a request: within its bounds of size and time, and decompressed. `read_body(request, settings)`."""

from __future__ import annotations

import asyncio
from io import BytesIO
from typing import Any

from asides.relay.error_response import RelayRefusal
from asides.transports.decompressor import Decompressor
from asides.transports.http_response import BadEncoding
from asides_gateway import web
from asides_gateway.gateway_settings import MEGABYTE, GatewaySettings

_LONGEST_PAUSE = 30.0
"""The seconds that a body under way may pause."""
_SLICE = 64 * 1024
_MOST_AT_ONCE = 1024 * 1024
_WITHOUT_THREAD = 256 * 1024
"""Up to this size a body is decompressed in one piece."""
_ENCODINGS = ("gzip", "x-gzip", "deflate", "zstd")
_MOST_ENCODINGS = 2


async def read_body(request: web.Request, settings: GatewaySettings) -> bytes:
    """The body of a request. Raises a RelayRefusal: too large (413), too slow (408), broken (400), or in an encoding
    that is not supported (415). A client that waits for 100-continue gets it when its body is first read.
    """
    most = settings.max_body
    length = request.content_length
    if length is not None and length > most:
        raise _refuse_size(most)
    if not request.has_body:
        return b""
    encodings = _read_encodings(request)
    if request.headers.get("expect", "100-continue").lower() != "100-continue":
        raise RelayRefusal("only 100-continue can be expected here.", status=417, headers={"connection": "close"})
    body = await _read_parts(request, most, settings.body_seconds)
    if not encodings:
        return body
    if len(body) <= _WITHOUT_THREAD:
        return decompress(body, encodings, most)
    return await asyncio.to_thread(decompress, body, encodings, most)


def decompress(body: bytes, encodings: list[str], most: int) -> bytes:
    """Undo the encodings of a body, the last one first. Raises a RelayRefusal if it is broken or grows too large."""
    for name in reversed(encodings):
        body = _decompress_zstd(body, most) if name == "zstd" else _inflate(body, name, most)
    return body


# --- reading ----------------------------------------------------------------------------------------------------------


async def _read_parts(request: web.Request, most: int, seconds: float) -> bytes:
    pieces: list[bytes] = []
    size = 0
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    try:
        async with asyncio.timeout_at(min(deadline, loop.time() + _LONGEST_PAUSE)) as limit:
            while not request.body_arrived:
                piece = await request.receive_body()
                size += len(piece)
                if size > most:
                    raise _refuse_size(most)
                pieces.append(piece)
                if not request.body_arrived:
                    limit.reschedule(min(deadline, loop.time() + _LONGEST_PAUSE))
    except TimeoutError:
        raise RelayRefusal(
            "the body of the request did not arrive in time. Send it again.",
            status=408,
            headers={"connection": "close"},
        ) from None
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _refuse_size(most: int) -> RelayRefusal:
    megabytes = most / MEGABYTE
    return RelayRefusal(
        f"the body of the request is larger than {megabytes:.4g} MB. Send less, such as smaller pictures; or "
        "raise max_body_mb of the gateway's settings.",
        status=413,
        headers={"connection": "close"},
    )


# --- encodings --------------------------------------------------------------------------------------------------------


def _read_encodings(request: web.Request) -> list[str]:
    if "content-encoding" not in request.headers:
        return []
    written = ",".join(request.headers.getall("content-encoding")).lower().split(",")
    names = [name.strip() for name in written if name.strip() not in ("", "identity")]
    known = [name for name in _ENCODINGS if name != "zstd" or _find_zstd() is not None]
    if len(names) > _MOST_ENCODINGS or any(name not in known for name in names):
        raise RelayRefusal(
            f"the Content-Encoding of the body is not supported. Use {', '.join(known)}, or none.",
            status=415,
            headers={"accept-encoding": ", ".join(known), "connection": "close"},
        )
    return names


def _inflate(body: bytes, name: str, most: int) -> bytes:
    decompressor = Decompressor([name])
    pieces: list[bytes] = []
    size = 0
    try:
        for place in range(0, len(body), _SLICE):
            data = body[place : place + _SLICE]
            while piece := decompressor.feed(data):
                data = b""
                size += len(piece)
                if size > most:
                    raise _refuse_size(most)
                pieces.append(piece)
                if not decompressor.has_more:
                    break
    except BadEncoding:
        raise _refuse_encoding(name) from None
    return b"".join(pieces)


def _decompress_zstd(body: bytes, most: int) -> bytes:
    open_reader = _find_zstd()
    if open_reader is None:
        raise AssertionError("the encoding was checked")
    pieces: list[bytes] = []
    size = 0
    with open_reader(BytesIO(body)) as reader:
        while True:
            try:
                piece: bytes = reader.read(_MOST_AT_ONCE)
            except Exception:  # noqa: BLE001 - each library has its own errors; all of them are about the bytes
                raise _refuse_encoding("zstd") from None
            if not piece:
                return b"".join(pieces)
            size += len(piece)
            if size > most:
                raise _refuse_size(most)
            pieces.append(piece)


def _find_zstd() -> Any:
    """What opens a reader of zstd; None if no library is there. Python has one since 3.14."""
    try:
        from compression.zstd import ZstdFile  # type: ignore[import-not-found, unused-ignore]

        return ZstdFile
    except ImportError:
        pass
    try:
        from zstandard import ZstdDecompressor
    except ImportError:
        return None
    return lambda source: ZstdDecompressor(max_window_size=2**27).stream_reader(source, read_across_frames=True)


def _refuse_encoding(name: str) -> RelayRefusal:
    return RelayRefusal(f"the body is not valid {name}, although its Content-Encoding says so. Send it again.")
