"""The seam between a caller's event loop and that of a session."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future

import pytest

from asides.agents.mcp.session import Gone, _answer


async def test_a_request_that_the_session_cancels_at_its_end_is_gone_and_its_caller_is_not_cancelled() -> None:
    request: Future[str] = Future()
    waiting = asyncio.create_task(_answer(request))
    await asyncio.sleep(0)
    request.cancel()
    with pytest.raises(Gone):
        await waiting
    assert not waiting.cancelled()


async def test_a_caller_that_is_cancelled_is_cancelled_and_so_is_the_request() -> None:
    request: Future[str] = Future()
    waiting = asyncio.create_task(_answer(request))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert request.cancelled()
