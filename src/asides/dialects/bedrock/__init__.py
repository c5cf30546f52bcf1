"""Converse, Amazon Bedrock's one language for all its models: both halves of the dialect, as one object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from asides.dialects.bedrock.decode import ConverseDecoder
from asides.dialects.bedrock.encode import encode
from asides.dialects.bedrock.stop_and_errors import decode_error
from asides.dialects.dialect import HttpRequest, ServedRequest
from asides.providers.provider import Target
from asides.values.errors import ProtocolError, ProviderError, Unsupported
from asides.values.messages import Prompt
from asides.values.model_info import ModelInfo, ModelPage
from asides.values.notices import Notice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asides.dialects.bedrock.server.write_reply import ConverseWriter


class BedrockConverse:
    """The dialect of `POST /model/{model}/converse` and `…/converse-stream`. The server half loads when it is used."""

    name = "bedrock"

    def encode(self, prompt: Prompt, target: Target) -> tuple[HttpRequest, tuple[Notice, ...]]:
        """Spell a planned prompt for its target."""
        return encode(prompt, target)

    def decoder(self, target: Target) -> ConverseDecoder:
        """A fresh decoder for one response."""
        return ConverseDecoder(target)

    def error(self, status: int, headers: Mapping[str, str], body: bytes, target: Target) -> ProviderError:
        """The error that this response is. Header names are in lower case."""
        return decode_error(status, headers, body, target)

    def models_request(self, target: Target, after: str | None = None) -> HttpRequest:  # noqa: ARG002 - none
        """There is no list here: it is another service's, at another address."""
        raise Unsupported(
            f"{target.provider.name} cannot be asked for its models here: Bedrock's list is its control plane's, which "
            "asides does not speak. To do: `aws bedrock list-foundation-models`."
        )

    def read_models(self, body: bytes) -> ModelPage:
        """There is no list here."""
        raise ProtocolError("this dialect has no list of models.", dialect=self.name, payload=body)

    def read(self, body: bytes, path: str = "") -> ServedRequest:
        """Server half: a client's request as a prompt. Raises ConfigError with words for the client."""
        from asides.dialects.bedrock.server.read_request import read

        return read(body, path)

    def writer(self, *, model: str, stream: bool, include_usage: bool = True) -> ConverseWriter:
        """Server half: a fresh writer for one response."""
        from asides.dialects.bedrock.server.write_reply import ConverseWriter

        return ConverseWriter(model=model, stream=stream, include_usage=include_usage)

    def write_error(self, status: int, message: str, kind: str | None = None) -> bytes:
        """Server half: an error body."""
        from asides.dialects.bedrock.server.write_reply import write_error

        return write_error(status, message, kind)

    def write_models(self, models: Sequence[ModelInfo], query: Mapping[str, str]) -> bytes:  # noqa: ARG002 - none
        """Server half: there is no list here."""
        raise Unsupported("this dialect has no list of models.")


dialect = BedrockConverse()
