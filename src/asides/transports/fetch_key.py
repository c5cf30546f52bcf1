"""Carries out the step `FetchKey`, sync and async: calls the caller's function, or asks a cloud's library.

Both return the key, or the error of the fetching as a value, which the flow raises.
"""

from __future__ import annotations

import asyncio
import inspect
from functools import partial
from typing import TYPE_CHECKING, Any

from asides.providers.credentials import KeySource
from asides.values.errors import AsidesError, ConfigError

if TYPE_CHECKING:
    from asides.transports.flow_state import FlowState


def fetch(key: KeySource) -> object:
    """Fetch the key of one attempt in this thread."""
    try:
        value = _call(key)
    except Exception as problem:  # noqa: BLE001 - a function of the caller may raise anything
        return _explain(key, problem)
    if inspect.isawaitable(value):
        # Python warns about a coroutine that is dropped.
        if inspect.iscoroutine(value):
            value.close()
        return ConfigError(
            "the function in api_key= returned an awaitable, which a sync client cannot await. Pass a function "
            "that returns the key itself, or use asides.aio."
        )
    return _refuse_error(value)


async def fetch_async(key: KeySource, state: FlowState[Any]) -> object:
    """Fetch the key of one attempt. A function that is not a coroutine function may block, so a thread runs it."""
    left = state.timeout().total
    limit = asyncio.timeout(left)
    try:
        async with limit:
            if _is_coroutine_function(key.function):
                value = _call(key)
            else:
                value = await asyncio.to_thread(_call, key)
            return _refuse_error(await value if inspect.isawaitable(value) else value)
    except Exception as problem:  # noqa: BLE001 - see above
        return state.report_total_timeout() if limit.expired() else _explain(key, problem)


def _call(key: KeySource) -> Any:
    if key.function is not None:
        return key.function()
    from asides.transports.cloud_credentials import fetch_credentials

    return fetch_credentials(key)


def _refuse_error(value: object) -> object:
    """Return the fetched value. An error that was returned instead of raised is not a key, and may quote one."""
    if not isinstance(value, Exception):
        return value
    return ConfigError(f"the function in api_key= returned {type(value).__name__}, not text. Raise it.")


def _is_coroutine_function(function: object) -> bool:
    while isinstance(function, partial):
        function = function.func
    # An object may be called too.
    return any(map(inspect.iscoroutinefunction, (function, inspect.getattr_static(function, "__call__", None))))


def _explain(key: KeySource, problem: Exception) -> AsidesError:
    if isinstance(problem, AsidesError):
        return problem
    # Its message may hold the key or a part of it, so only the cause has it.
    error = ConfigError(
        f"the function in api_key= for {key.provider.name} raised {type(problem).__name__}. See its cause."
    )
    error.__cause__ = problem
    return error
