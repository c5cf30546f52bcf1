"""`BatchPlan`: the model and the options that all rows of a batch share, and the hash that a request is known by.

A plan is JSON, so that a ledger can keep it and another process can go on. Keys and timeouts are not in it.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import msgspec

from asides.batch_rows import Question, encode_canonical, read_row
from asides.flows.call import Call
from asides.options import ModelLike, Options, reject_unknown
from asides.providers.provider import Target
from asides.values.errors import ConfigError, UnknownModel
from asides.values.json_form import to_json_value
from asides.values.messages import OutputSchema
from asides.values.thinking import Thinking
from asides_batch.ledger_values import build_damage_error

if TYPE_CHECKING:
    from asides.flows.build_call import CallBuilder

# They do not change what is asked; each process has its own.
_NOT_KEPT = ("api_key", "timeout", "retries", "max_wait", "keep_raw", "reply_limits", "stream")
# They are given for one provider, and are not used for rows that name another.
_OF_ONE_PROVIDER = ("base_url", "api_key", "family", "endpoint")


class BatchPlan(msgspec.Struct, frozen=True, dict=True):
    """What the rows of a batch share."""

    models: tuple[str, ...] = ()
    """The model, as provider:model, and those to ask when it fails; () if every row names its own."""
    is_named: bool = False
    """Whether the caller named the model, so that it also counts for rows of vendors' files, which name theirs."""
    options: dict[str, Any] = {}

    @property
    def model(self) -> str:
        """The model, for people."""
        return self.models[0] if self.models else ""

    @cached_property
    def digest(self) -> str:
        """Equal for plans that ask the same."""
        return hashlib.sha256(encode_canonical(msgspec.to_builtins(self))).hexdigest()[:32]

    def find_models(self, question: Question) -> tuple[str, ...]:
        """The models to ask for a row, in order. Raises UnknownModel if neither the row nor the plan names one."""
        own = question.model
        if own is not None and not (question.is_vendor_form and self.is_named):
            return (own,)
        if not self.models:
            raise UnknownModel("no model is named. Name one for the batch, as provider:model, or in each row.")
        return self.models

    def compute_hash(self, question: Question, request: bytes | None = None) -> str:
        """The hash of a request: equal for rows that ask the same of the same model with the same options.

        `request`: what the row asks, if it was encoded before.
        """
        digest = self._start.copy()
        digest.update("\n".join(self.find_models(question)).encode())
        digest.update(b"\0")
        digest.update(encode_request(question) if request is None else request)
        return str(digest.hexdigest())[:32]

    @cached_property
    def _start(self) -> Any:
        return hashlib.sha256(encode_canonical(self.options))

    def build(self, builder: CallBuilder, question: Question, own: Options, *, needs_key: bool = True) -> Call:
        """Build the call of a row. `own`: the options of this process, such as its key. Raises before it is sent."""
        models = self.find_models(question)
        options: dict[str, Any] = {**self.options, **own, **question.options}
        if models != self.models and self._name_provider(builder, models) != self._name_provider(builder, self.models):
            options = {name: value for name, value in options.items() if name not in _OF_ONE_PROVIDER}
        model = models[0] if len(models) == 1 else models
        return builder.build(model, question.prompt, cast("Options", options), stream=False, needs_key=needs_key)

    def find_target(self, builder: CallBuilder, model: str) -> Target:
        """The target of one of its models, or of a row's."""
        return builder.find_target(model, self.options.get("base_url"))

    def _name_provider(self, builder: CallBuilder, models: tuple[str, ...]) -> str:
        return self.find_target(builder, models[0]).provider.name if models else ""


def read_plan(model: ModelLike | None, options: Options, builder: CallBuilder) -> tuple[BatchPlan, Options]:
    """The plan of a batch, and the options that are not in it. The defaults of the settings are made part of the plan.

    Raises a ConfigError for an option that a ledger cannot keep.
    """
    reject_unknown(options)
    settings = builder.settings
    given = model if model is not None else settings.model
    names = () if given is None else (given,) if isinstance(given, str) else tuple(given)
    known = [builder.find_target(name, options.get("base_url")) for name in names]
    defaults: dict[str, Any] = {"max_tokens": settings.max_tokens, "on_conflict": settings.on_conflict}
    if settings.thinking != Thinking():
        defaults["thinking"] = settings.thinking
    kept: dict[str, Any] = {}
    for name, value in {**defaults, **options}.items():
        if value is not None and name not in _NOT_KEPT:
            kept[name] = _read_kept(name, value)
    own = {name: value for name, value in options.items() if name in _NOT_KEPT}
    models = tuple(f"{target.provider.name}:{target.model}" for target in known)
    return BatchPlan(models, model is not None, kept), cast("Options", own)


def _read_kept(name: str, value: Any) -> Any:
    """An option as JSON."""
    if name == "output":
        return _read_output(value)
    if isinstance(value, Thinking):
        return {field: part for field, part in msgspec.structs.asdict(value).items() if part is not None}
    try:
        plain = json.loads(json.dumps(value))
    except (TypeError, ValueError, RecursionError):
        plain = None
    if plain is None:
        raise ConfigError(
            f"a batch cannot keep the option {name} as {type(value).__name__}: it is JSON in the ledger. Give "
            "it as text, numbers, lists and dicts, or leave it out."
        )
    return plain


def _read_output(value: Any) -> Any:
    if isinstance(value, (str, Mapping)):
        return to_json_value(value)
    from asides.agents.outputs.schemas import build_schema  # Most batches ask for text.

    schema = value if isinstance(value, OutputSchema) else build_schema(value).schema
    if isinstance(schema, str):
        return schema
    return {"type": "json_schema", "name": schema.name, "schema": schema.schema, "strict": schema.strict}


class RunSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How a batch is run. It does not change the requests. A resumed batch keeps settings that are not given again."""

    concurrency: int | None = None
    rpm: float | None = None
    tpm: float | None = None
    max_cost: Decimal | None = None
    retries: int | None = None
    keep_thinking: bool | None = None
    actors: int | None = None
    """How many actors of Ray take part."""
    ray_address: str | None = None

    def check(self) -> None:
        """Raise a ConfigError for a wrong value."""
        for name in ("concurrency", "rpm", "tpm", "actors"):
            value: Any = getattr(self, name)
            if value is not None and not (isinstance(value, (int, float)) and 0 < value < math.inf):
                raise ConfigError(f"{name} is a number above zero, not {value!r}.")
        if self.max_cost is not None and not (self.max_cost.is_finite() and self.max_cost >= 0):
            raise ConfigError(f"max_cost is an amount in dollars, not {self.max_cost}.")
        if not isinstance(self.ray_address, (str, type(None))):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(f"ray_address is text, as host:port, not {type(self.ray_address).__name__}.")
        if isinstance(self.actors, float):
            raise ConfigError(f"actors is a whole number, not {self.actors}.")
        if self.retries is not None and self.retries < 0:
            raise ConfigError(f"retries is {self.retries}. Give 0 or more.")

    def check_via(self, via: str) -> None:
        """Raise a ConfigError for settings that the runner does not use."""
        if via != "ray" and (self.actors is not None or self.ray_address is not None):
            raise ConfigError(
                f"actors and ray_address are for batches via ray, and this one is via {via}. Leave "
                "them out, or choose ray."
            )

    def merge(self, later: RunSettings) -> RunSettings:
        """These settings, replaced by the later ones where they are given."""
        given = {name: value for name, value in msgspec.structs.asdict(later).items() if value is not None}
        return msgspec.structs.replace(self, **given)


class StoredPlan(msgspec.Struct, frozen=True):
    """What a ledger keeps of a batch."""

    plan: BatchPlan
    run: RunSettings


def encode_plan(plan: BatchPlan, run: RunSettings) -> bytes:
    """A plan for the ledger."""
    return msgspec.json.encode(StoredPlan(plan, run))


def decode_plan(stored: bytes) -> StoredPlan:
    """A plan of a ledger."""
    try:
        return msgspec.json.decode(stored, type=StoredPlan)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise build_damage_error("its plan") from None


def encode_request(question: Question) -> bytes:
    """What a row asks, for the ledger."""
    return encode_canonical(question.content)


def decode_request(stored: bytes, number: int) -> Question:
    """What a row asks, from the ledger."""
    try:
        content = json.loads(stored)
    except (ValueError, RecursionError):
        raise build_damage_error("a request") from None
    return read_row(content, number, f"row {number + 1}")
