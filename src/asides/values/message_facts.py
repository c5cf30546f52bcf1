"""Facts about a message that are found once and stored beside it: its traits, and its forms for the latest targets.

Not here: how they are found (messages), and what a form is (history/plan, dialects).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from asides.values.parts import ToolCall, ToolResult

# Traits of a message, as bits: a history has the traits of all its messages.
HAS_CALLS, HAS_RESULTS = 1, 2
HAS_OTHERS = 4
"""Parts that are no results."""
HAS_THOUGHTS, HAS_WITHHELD, HAS_PICTURES = 8, 16, 32
HAS_MEDIA = 64
"""Pictures or files, in parts or in results."""
HAS_FILE_IDS = 128
HAS_BREAKPOINTS = 256
IS_BLANK = 512
"""A user message without content."""
IS_BOUND = 1024
"""Some parts or seals go back only where they came from, or not at all."""
IS_PLAIN = 2048
"""A message of a user or a model that is one text and nothing else, as most are."""
CHANGES_EFFORT = 4096
"""A system message that sets the effort from there on."""


class Context:
    """What a form of a message depends on besides the message: a target and some settings. Compared by identity."""

    __slots__ = ("known",)

    def __init__(self) -> None:
        self.known: dict[Any, Any] = {}
        """Answers about other values that hold in this context."""


class ContextOwner:
    """A target, or what else has contexts of its own. They end with it, unless messages have forms for them; a context
    refers neither to its owner nor to the secrets that an address may hold.
    """

    __slots__ = ("_contexts",)
    _contexts: dict[tuple[object, ...], Context]


_set_contexts = ContextOwner.__dict__["_contexts"].__set__


def find_context(owner: ContextOwner, *settings: object) -> Context:
    """The context of this very owner and these settings: the same one each time."""
    try:
        contexts = owner._contexts  # pyright: ignore[reportPrivateUsage]
    except AttributeError:
        contexts = {}
        _set_contexts(owner, contexts)
    context = contexts.get(settings)
    # Of two threads, one stores its context; a form for the other one is not found again.
    return contexts.setdefault(settings, Context()) if context is None else context


class NoForm:
    """The form of a message that has none yet: it fits no context."""

    context = Context()
    message = None
    wires = ()


NO_FORM = NoForm()


class MessageFacts(msgspec.Struct, gc=False, eq=False):
    """Facts about the parts of one message, and its forms for the targets that it was last sent to.

    A message never changes, so they are found once; those of one that may change are found each time. The garbage
    collector sees neither these nor the slot that holds them, so that long histories cost it nothing: nothing here may
    refer to the message itself.
    """

    traits: int
    calls: tuple[ToolCall, ...] = ()
    results: tuple[ToolResult, ...] = ()
    planned: Any = NO_FORM
    """How the plan of a history sends the message. The form before it was made for another context."""
    planned_before: Any = NO_FORM
    encoded: Any = NO_FORM
    """The message on the wire."""
    encoded_before: Any = NO_FORM
    chained: tuple[bytes, bytes] = (b"", b"")
    """The digest of all before the message, and that of all up to it (history/prefix)."""


class FactsSlot:
    """A place for the facts beside the fields: it is not compared, copied, saved or shown."""

    __slots__ = ("_facts",)
    _facts: MessageFacts
