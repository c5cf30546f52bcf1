"""`Visibility`: what each place that thinking can reach may see of it, at most. One policy, which every place asks.

A switch (`-t`, `keep_thinking`, `to_dict(thinking=True)`) asks for thinking; this says how much may come.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeAlias, cast, get_args

import msgspec

from asides.values.errors import ConfigError
from asides.values.thinking import Thought, ThoughtKind

Readable: TypeAlias = Literal["raw", "summary"]
"""raw: the model's own words. summary: the provider's summary of them."""
Visible: TypeAlias = Literal["raw", "summary", "sealed"]
"""sealed: opaque tokens, which only the provider that made them can read."""
ALL_VISIBLE: frozenset[Visible] = frozenset(get_args(Visible))
Sink: TypeAlias = Literal["user", "app", "log", "trace", "history", "gateway"]
"""user: a person, at the terminal or in a web front end (`asides.ui`). app: what your program writes with `to_dict`,
`to_json`, `with_tags`, `metadata` and exports, and `--json`. log, trace: logs and traces. history: saved conversations.
gateway: clients of a gateway."""


class Visibility(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What each place may see of thinking, at most. Seals never go to people, logs and traces.

    By default nothing raw and nothing sealed leaves the program unless a switch asks for it. `reply.thinking`,
    `reply.parts` and events are the program's own, and always whole.
    """

    user: tuple[Readable, ...] = ("raw", "summary")
    """What the command line may show where `-t` or a setting asks for it, and what `asides.ui` writes."""
    app: tuple[Visible, ...] = ("raw", "summary", "sealed")
    """What `to_dict(thinking=True, seals=True)` and the other forms for programs may hold."""
    log: tuple[Readable, ...] = ()
    trace: tuple[Readable, ...] = ()
    history: tuple[Visible, ...] = ("raw", "summary", "sealed")
    """What a saved conversation may hold. Readable thinking is saved only with `keep_thinking`; seals, for the next
    request, unless they are left out here."""
    gateway: tuple[Visible, ...] = ("summary",)

    def allows(self, sink: Sink, kind: ThoughtKind | Literal["sealed"]) -> bool:
        """Whether thinking of this kind may go there. Hidden thinking has no text, so nothing of it can be read."""
        return kind == "hidden" or kind in getattr(self, sink)

    def limit(self, sink: Sink, kinds: Iterable[str]) -> Visibility:
        """This policy, with no more than these kinds for one place."""
        allowed = set(kinds)
        changed: dict[str, Any] = {sink: tuple(kind for kind in getattr(self, sink) if kind in allowed)}
        return msgspec.structs.replace(self, **changed)

    def limit_written(self, thought: Thought, thinking: bool, seals: bool, raw: bool) -> tuple[bool, bool, bool]:
        """What a program may write of the thinking, the seals and the response of a reply. A response holds both."""
        readable = self.allows("app", thought.kind)
        sealed = self.allows("app", "sealed")
        return thinking and readable, seals and sealed, raw and readable and sealed

    def find_saved(self, *, keep_thinking: bool) -> frozenset[Visible]:
        """What a saved conversation gets: seals, and with `keep_thinking` what can be read."""
        asked = ALL_VISIBLE if keep_thinking else cast("frozenset[Visible]", frozenset({"sealed"}))
        return asked.intersection(self.history)

    def check_keep_thinking(self, keep_thinking: bool | None) -> None:
        """Raise a ConfigError if `keep_thinking` conflicts with this visibility."""
        if keep_thinking and not {"raw", "summary"}.intersection(self.history):
            raise ConfigError(
                "keep_thinking=True conflicts with the visibility of history, which allows no readable thinking. Leave "
                "keep_thinking out, or allow it: Visibility(history=…), or [visibility] in asides.toml."
            )


DEFAULT_VISIBILITY = Visibility()


def read_visibility(given: object) -> Visibility:
    """Read a policy or a mapping of its fields. Raises a ConfigError that names what is wrong."""
    fields: Any = msgspec.structs.asdict(given) if isinstance(given, Visibility) else given
    if not isinstance(fields, Mapping):
        raise ConfigError(f"visibility must be a Visibility or a mapping of its fields, not {type(given).__name__}.")
    try:
        return msgspec.convert(dict(fields), Visibility)
    except msgspec.ValidationError as problem:
        raise ConfigError(
            f"visibility is not valid: {problem}. Give {', '.join(Visibility.__struct_fields__)} lists of raw, "
            "summary and, but for user, log and trace, sealed."
        ) from None
