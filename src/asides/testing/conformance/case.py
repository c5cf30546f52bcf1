"""What is examined: a row, a model of it and the dialect between them; and how the checks write, read and ask with it.

Pure. Not here: the checks, and sockets.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import urlsplit

import msgspec

from asides import dialects
from asides.dialects.dialect import Dialect, HttpRequest, ServedRequest
from asides.history.check import OnConflict
from asides.history.plan import Plan, plan
from asides.providers.provider import THINKING_FIELDS, ModelRule, Provider, Target
from asides.testing.conformance.case import FIXED, Example, Sample, samples
from asides.testing.conformance.response_bodies import Decoded, decode_pieces, documents_of, renamed, with_documents
from asides.testing.stage.http_requests import Request
from asides.values.errors import Unsupported
from asides.values.events import Event
from asides.values.messages import Prompt
from asides.values.notices import Notice

ADDRESS = "http://127.0.0.1:9/v1"
"""Where nobody is: what is encoded for it is never sent."""
_MADE_UP = 12


class Sent(msgspec.Struct, frozen=True):
    """A request as it would go out."""

    plan: Plan
    request: HttpRequest
    notices: tuple[Notice, ...]
    """What was adjusted, by the plan or by the dialect."""

    @property
    def body(self) -> Any:
        """The body, decoded."""
        return msgspec.json.decode(self.request.body)

    def told(self, setting: str) -> bool:
        """Whether something was said about this setting."""
        # That a model is not known is no word about what was sent.
        return any(notice.setting == setting and notice.code != "unknown_model" for notice in self.notices)


class Case(msgspec.Struct, frozen=True):
    """One provider under examination."""

    target: Target
    dialect: Dialect
    examples: tuple[Example, ...] = ()
    quick: bool = False
    """Fewer samples, for tables of many rows."""

    @property
    def row(self) -> Provider:
        """The row."""
        return self.target.provider

    @property
    def model(self) -> str:
        """The model that is asked for."""
        return self.target.model

    @property
    def rule(self) -> ModelRule:
        """What the row knows of the model."""
        return self.target.rule

    @property
    def renames(self) -> bool:
        """Whether its host has thinking in a field that nobody else has, so that no server half writes it."""
        return self.target.facts.thinking_in[0] not in THINKING_FIELDS

    @property
    def samples(self) -> tuple[Sample, ...]:
        """The replies that the laws are tried on."""
        return FIXED if self.quick else samples(_MADE_UP)

    # --- replies ----------------------------------------------------------------------------------------------------

    def write(self, events: Iterable[Event], *, stream: bool) -> bytes:
        """These events as the body that the dialect's server half makes of them, written one by one; its thinking in
        the field that the row names, where that is none of the usual ones.
        """
        writer = self.dialect.writer(model=self.model, stream=stream)
        body = b"".join(writer.write([event]) for event in events)
        documents = documents_of(body) if self.renames else None
        if documents is None:
            return body
        field = self.target.facts.thinking_in[0]
        return with_documents(body, [renamed(document, THINKING_FIELDS[0], field) for document in documents])

    def body_of(self, sample: Sample, *, stream: bool) -> bytes:
        """A sample as a body."""
        return self.write(sample.events(self.target), stream=stream)

    def decode(self, *pieces: bytes) -> Decoded:
        """What the dialect's client half makes of a body in these pieces."""
        return decode_pieces(pieces, self.target, self.dialect)

    # --- requests ---------------------------------------------------------------------------------------------------

    def encode(self, prompt: Prompt, on_conflict: OnConflict = "adjust") -> Sent:
        """A prompt as the request that a call would send."""
        planned = plan(prompt, self.target, on_conflict=on_conflict)
        request, notices = self.dialect.encode(planned.prompt, self.target)
        return Sent(planned, request, (*planned.notices, *notices))

    def serve(self, sent: Sent) -> ServedRequest:
        """A request as the dialect's server half reads it."""
        return self.dialect.read(self._named(sent.request), urlsplit(sent.request.url).path)

    def arrived(self, sent: Sent) -> Request:
        """A request as it arrives at a server."""
        address = urlsplit(sent.request.url)
        headers = {name.lower(): value for name, value in sent.request.headers.items()}
        return Request(sent.request.method, address.path, address.query, headers, self._named(sent.request))

    def _named(self, request: HttpRequest) -> bytes:
        if self.target.quirks.transport == "direct":
            return request.body
        # A cloud has the model in its address, and takes it out of there for the server behind it.
        return msgspec.json.encode({"model": self.model, **msgspec.json.decode(request.body)})


def build_case(
    provider: Provider,
    *,
    model: str | None = None,
    dialect: str | None = None,
    examples: Iterable[Example] = (),
    quick: bool = False,
) -> Case:
    """The case of a row: in one of the dialects that it speaks, its own unless another is named; with one of its models
    that thinks unless one is named. Raises Unsupported where it does not speak the dialect.
    """
    row = provider if dialect is None else provider.with_dialect(dialect)
    if row is None:
        raise Unsupported(f"{provider.name} is not known to speak {dialect!r}; it needs a ModelVariant for that.")
    # One dialect at a time: which of several is chosen is not looked at here.
    row = msgspec.structs.replace(row, also=(), chooses=False, base_url=row.base_url or ADDRESS)
    named = thinking_model(row) if model is None else model
    target = Target(row, named, ADDRESS, row.rule(named))
    return Case(target, dialects.find_dialect(row.dialect), tuple(examples), quick)


def thinking_model(row: Provider) -> str:
    """A model that the row knows to think, as its rules name it; "made-up" where they name none."""
    ranked = sorted(row.models, key=lambda rule: ("optional", "always", "unknown", "never").index(rule.thinking))
    for rule in ranked:
        name = _one_of(rule.models)
        if name and row.rule(name) is rule:
            return name
    return "made-up"


def _one_of(glob: str) -> str:
    """A name that the glob matches."""
    name = re.sub(r"\[(.)[^\]]*\]", r"\1", glob).replace("?", "1")
    name = "made-up" if name == "*" else name.strip("*").replace("*", "-")
    return f"{name}1" if name.endswith("-") else name
