"""`OutageLog`: whether a service is down. Reports the start and the end of each outage once."""

from __future__ import annotations

from collections.abc import Callable


class OutageLog:
    """The state of one service at its last use."""

    __slots__ = ("_again", "_down", "_report", "is_down")

    def __init__(self, report: Callable[[str], object], down: str, again: str = "") -> None:
        """`down`: what is reported when an outage begins, with the reason in place of {reason}; `again`: when it ends;
        "": nothing.
        """
        self.is_down = False
        self._report = report
        self._down = down
        self._again = again

    def begin(self, reason: object = "") -> bool:
        """Call when the service has failed. Returns whether the outage is new."""
        if self.is_down:
            return False
        self.is_down = True
        named = type(reason).__name__ if isinstance(reason, BaseException) else str(reason)
        self._report(self._down.replace("{reason}", named))
        return True

    def end(self) -> bool:
        """Call when the service works. Returns whether an outage has ended."""
        if not self.is_down:
            return False
        self.is_down = False
        if self._again:
            self._report(self._again)
        return True

    def __repr__(self) -> str:
        return f"OutageLog({'down' if self.is_down else 'up'})"
