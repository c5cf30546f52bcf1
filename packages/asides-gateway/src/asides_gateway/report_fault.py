"""`report_fault(problem)`: logs an error in our own code."""

from __future__ import annotations

import logging
import traceback

_log = logging.getLogger("asides.gateway")


def report_fault(problem: BaseException) -> None:
    """Log an error in our own code: its kind and its place, without its text, which may contain user input."""
    frames = traceback.extract_tb(problem.__traceback__)
    place = f"{frames[-1].filename.rpartition('/')[2]}:{frames[-1].lineno}" if frames else "an unknown place"
    _log.error("a request could not be answered: %s in %s", type(problem).__name__, place)
