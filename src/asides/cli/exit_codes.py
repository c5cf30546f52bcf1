"""The exit codes of the process, the same in every command, and the code of each outcome and error."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from asides.values.reply import Outcome


class Exit(IntEnum):
    """The exit codes. `asides help exit-codes` and docs/command-line.md list them; a test keeps them the same."""

    DONE = 0
    UNEXPECTED = 1
    USAGE = 2
    KEY = 3
    BUSY = 4
    TRANSPORT = 5
    REJECTED = 6
    NO_ANSWER = 7
    REFUSED = 8
    SOME_FAILED = 9
    HUNG_UP = 129
    INTERRUPTED = 130
    PIPE_CLOSED = 141
    TERMINATED = 143

    @property
    def meaning(self) -> str:
        """One line for the help."""
        return _MEANINGS[self]


_MEANINGS = {
    Exit.DONE: "answered (or the model called tools: see --json)",
    Exit.UNEXPECTED: "unexpected error: a bug in asides; with audit, doctor and store check: something was found",
    Exit.USAGE: "wrong usage or settings: nothing was sent",
    Exit.KEY: "the API key is missing or not accepted",
    Exit.BUSY: "rate limited, out of credit, or overloaded",
    Exit.TRANSPORT: "no connection, a timeout, or a connection that broke",
    Exit.REJECTED: "the provider rejected the request, or its response is not readable",
    Exit.NO_ANSWER: "the model gave no answer, or none that fits --schema, or a run with tools ended without one",
    Exit.REFUSED: "the model refused, or a filter stopped it",
    Exit.SOME_FAILED: "with --each, audit, batch, separate, gateway export/import: the output says what is not done",
    Exit.HUNG_UP: "the terminal was closed (SIGHUP)",
    Exit.INTERRUPTED: "Ctrl-C",
    Exit.PIPE_CLOSED: "the program that read the output went away",
    Exit.TERMINATED: "SIGTERM",
}


def code_for_outcome(outcome: Outcome) -> Exit:
    """The code for a complete reply."""
    match outcome:
        case "answered" | "tool_calls":
            return Exit.DONE
        case "starved" | "unterminated" | "unanswered":
            return Exit.NO_ANSWER
        case "refused" | "filtered":
            return Exit.REFUSED


def code_for_error(error: Exception) -> Exit:
    """The code for an error of the library; UNEXPECTED for any other."""
    from asides.database import StoreUnavailable
    from asides.values import errors

    match error:
        case StoreUnavailable():
            return Exit.TRANSPORT
        case errors.MissingKey() | errors.AuthError():
            return Exit.KEY
        case errors.ConfigError():
            return Exit.USAGE
        case errors.RateLimited() | errors.Overloaded():
            return Exit.BUSY
        case errors.TransportError():
            return Exit.TRANSPORT
        case errors.ContentFiltered():
            return Exit.REFUSED
        case errors.ProviderError() | errors.ProtocolError():
            return Exit.REJECTED
        case errors.NoAnswer() | errors.AgentError():
            return Exit.NO_ANSWER
        case _:
            return Exit.UNEXPECTED
