"""The official client logs what is said, and its HTTP library whom it calls; from a thread of ours none of it is heard.

Not here: logs of the same libraries from elsewhere, which are the application's own business and stay as they are.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Generator
from contextlib import contextmanager

_TALKERS = ("mcp", "client", "httpx2", "httpcore2")
# Those of modules that load only when they are needed.
_LATE = ("connection", "http11", "http2", "proxy", "socks")
_silent_threads: set[int] = set()


class _NotFromHere(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:  # noqa: ARG002 - the signature is logging's
        return threading.get_ident() not in _silent_threads


_NOT_FROM_HERE = _NotFromHere()


@contextmanager
def this_thread_logs_nothing() -> Generator[None]:
    """Until the block ends, the official client is silent in this thread. Its modules have to be loaded before."""
    for name in (*list(logging.Logger.manager.loggerDict), *(f"httpcore2.{late}" for late in _LATE)):
        if name.partition(".")[0] in _TALKERS:
            # A filter holds for its own logger only, so each one gets it; a second time changes nothing.
            logging.getLogger(name).addFilter(_NOT_FROM_HERE)
    here = threading.get_ident()
    _silent_threads.add(here)
    try:
        yield
    finally:
        _silent_threads.discard(here)
