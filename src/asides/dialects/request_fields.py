"""A client's request while a server half reads it: what is understood is taken out, and what remains is `extra`.

Not here: any field that only one dialect has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self, TypeVar

import msgspec

from asides.values.errors import ConfigError
from asides.values.messages import Message, Sampling

Value = TypeVar("Value")


class RequestFields:
    """The fields of one JSON object. A field that is null was not set."""

    def __init__(self, fields: Mapping[str, Any], where: str = "") -> None:
        self.left: dict[str, Any] = {name: value for name, value in fields.items() if value is not None}
        self._where = where

    @classmethod
    def of_body(cls, body: bytes) -> Self:
        """The fields of a request. Raises ConfigError with words for whoever sent it."""
        try:
            document = msgspec.json.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
            raise ConfigError(f"the body is not JSON: {problem}.") from None
        if not isinstance(document, dict):
            raise ConfigError("the body is not a JSON object.")
        return cls(document)

    def take(self, name: str, kind: type[Value]) -> Value | None:
        """The field, out of the object; an error when it is of another type."""
        if name not in self.left:
            return None
        try:
            return msgspec.convert(self.left.pop(name), kind)
        except msgspec.ValidationError as problem:
            raise ConfigError(f"{self._where}{name}: {problem}.") from None

    def take_model(self) -> str:
        """The model that is asked for, which has to be named."""
        model = self.take("model", str)
        if not model:
            raise ConfigError("model is missing.")
        return model

    def take_messages(self, read: Callable[[Mapping[str, Any]], Message]) -> tuple[Message, ...]:
        """The history, of which there has to be some, each message read by `read`. An error names the message that is
        wrong by its place.
        """
        told = self.take("messages", list[dict[str, Any]])
        if not told:
            raise ConfigError("messages is missing or empty.")
        messages: list[Message] = []
        for place, message in enumerate(told):
            try:
                messages.append(read(message))
            except ConfigError as problem:
                raise ConfigError(f"messages[{place}]: {problem}") from None
        return tuple(messages)

    def within(self, name: str) -> RequestFields:
        """The fields of an object inside this one; give back what is left of them with `put_back`."""
        told = self.take(name, dict[str, Any])
        return RequestFields(told or {}, f"{self._where}{name}.")

    def put_back(self, name: str, rest: RequestFields) -> None:
        """What was not understood of an inner object stays under its name."""
        if rest.left:
            self.left[name] = rest.left


def read_sampling(given: Mapping[str, Any]) -> Sampling:
    """The sampling settings under our names; an error when one is of another type."""
    try:
        return msgspec.convert(given, Sampling)
    except msgspec.ValidationError as problem:
        raise ConfigError(f"a sampling setting does not read: {problem}.") from None
