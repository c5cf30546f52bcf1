"""Gemini's generateContent and streamGenerateContent: both halves of the dialect, as one object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from asides.dialects.dialect import HttpRequest, ServedRequest
from asides.dialects.gemini.decode import ContentDecoder
from asides.dialects.gemini.encode import encode
from asides.dialects.gemini.stop_and_errors import decode_error
from asides.providers.provider import Target
from asides.values.errors import ProviderError
from asides.values.messages import Prompt
from asides.values.model_info import ModelInfo, ModelPage
from asides.values.notices import Notice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asides.dialects.gemini.server.write_reply import ContentWriter


class Gemini:
    """The dialect of `POST …/models/{model}:generateContent`. The server half loads when it is first used."""

    name = "gemini"

    def encode(self, prompt: Prompt, target: Target) -> tuple[HttpRequest, tuple[Notice, ...]]:
        """Spell a planned prompt for its target."""
        return encode(prompt, target)

    def decoder(self, target: Target) -> ContentDecoder:
        """A fresh decoder for one response."""
        return ContentDecoder(target)

    def error(self, status: int, headers: Mapping[str, str], body: bytes, target: Target) -> ProviderError:
        """The error that this response is. Header names are in lower case."""
        return decode_error(status, headers, body, target)

    def models_request(self, target: Target, after: str | None = None) -> HttpRequest:
        """Ask which models there are."""
        from asides.dialects.gemini.model_list import models_request

        return models_request(target, after)

    def read_models(self, body: bytes) -> ModelPage:
        """A page of the list."""
        from asides.dialects.gemini.model_list import read_models

        return read_models(body)

    def read(self, body: bytes, path: str = "") -> ServedRequest:
        """Server half: a client's request as a prompt. The model, and whether it is to stream, are in the path."""
        from asides.dialects.gemini.server.read_request import read

        return read(body, path)

    def writer(self, *, model: str, stream: bool, include_usage: bool = True) -> ContentWriter:
        """Server half: a fresh writer for one response."""
        from asides.dialects.gemini.server.write_reply import ContentWriter

        return ContentWriter(model=model, stream=stream, include_usage=include_usage)

    def write_error(self, status: int, message: str, kind: str | None = None) -> bytes:
        """Server half: an error body."""
        from asides.dialects.gemini.server.write_reply import write_error

        return write_error(status, message, kind)

    def write_models(self, models: Sequence[ModelInfo], query: Mapping[str, str]) -> bytes:
        """Server half: the page of the list that the query asks for."""
        from asides.dialects.gemini.model_list import write_models

        return write_models(models, query)


dialect = Gemini()
