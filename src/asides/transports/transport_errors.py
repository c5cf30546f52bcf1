"""Builds errors of the connection: host, duration and what to do. Of an address they show only host and port."""

from __future__ import annotations

import os
from urllib.parse import urlsplit

from asides.options import Timeout
from asides.transports.http_response import BadEncoding, BrokenHead
from asides.values.errors import ConnectionLost, ConnectTimeout, IdleTimeout, TransportError


def get_host(url: str) -> str:
    """Host and port of an address, which is all that error messages show."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or "an address without a host"
        return f"{host}:{parts.port}" if parts.port else host
    except ValueError:
        return "an invalid address"


def timed_out(
    host: str, timeout: Timeout, *, is_over: bool, is_connected: bool, has_data: bool
) -> ConnectTimeout | IdleTimeout:
    """The error of a wait that took too long. `is_over`: the time for the whole call has passed."""
    if is_over:
        return total_timeout(host, timeout.total)
    return idle_timeout(host, timeout, has_data=has_data) if is_connected else connect_timeout(host, timeout)


def connect_timeout(host: str, timeout: Timeout) -> ConnectTimeout:
    """No connection in time."""
    return ConnectTimeout(
        f"no connection to {host} within {_format_seconds(timeout.connect)}. Check the address, the network "
        "and the proxy, or raise timeout=Timeout(connect=…)."
    )


def idle_timeout(host: str, timeout: Timeout, *, has_data: bool) -> IdleTimeout:
    """Connected, then no bytes in time. `has_data`: a part of the answer had arrived."""
    if has_data:
        return IdleTimeout(
            f"{host} fell silent for {_format_seconds(timeout.idle)} in the middle of its answer. Ask again, or "
            "raise timeout=Timeout(idle=…); .partial has what arrived."
        )
    return IdleTimeout(
        f"{host} took the request and sent nothing for {_format_seconds(timeout.first_byte)}. Raise "
        "timeout=Timeout(first_byte=…) for a model that thinks long, stream, or ask for less thinking."
    )


def total_timeout(host: str, total: float | None) -> IdleTimeout:
    """The timeout of the whole call."""
    return IdleTimeout(
        f"{host} did not finish within the {_format_seconds(total)} that the whole call may take. Raise "
        "timeout=Timeout(total=…), or ask for less; .partial has what arrived."
    )


def no_connection(host: str, cause: BaseException | None, *, proxy: str | None = None) -> TransportError:
    """No connection, with the system's reason."""
    import socket
    import ssl

    if proxy is not None:
        return proxy_error(proxy, host, describe_cause(cause))
    if isinstance(cause, ssl.SSLError):
        # Not a ConnectionLost: trying again does not help.
        return TransportError(
            f"no secure connection to {host} ({describe_cause(cause)}). If a proxy of yours signs it, name its "
            "certificate in SSL_CERT_FILE; if the server speaks plain HTTP, write http:// in base_url=."
        )
    if isinstance(cause, socket.gaierror):
        return ConnectionLost(f"cannot resolve {host} (DNS). Check base_url= and the network.")
    if isinstance(cause, ConnectionRefusedError):
        return ConnectionLost(
            f"no server listens at {host} (connection refused). Start the server there, or check base_url=."
        )
    return ConnectionLost(f"{host} cannot be reached ({describe_cause(cause)}). Check the network and base_url=.")


def describe_cause(cause: BaseException | None) -> str:
    """The system's reason as short text, without an address."""
    import ssl

    if isinstance(cause, ssl.SSLCertVerificationError):
        return cause.verify_message
    if isinstance(cause, ssl.SSLError):
        return (getattr(cause, "reason", None) or "TLS failed").replace("_", " ").lower()
    if isinstance(cause, OSError) and cause.errno is not None:
        return os.strerror(cause.errno)
    return type(cause).__name__


def connection_lost(host: str, *, has_data: bool) -> ConnectionLost:
    """The server closed the connection too early."""
    if has_data:
        return ConnectionLost(
            f"{host} broke the connection off in the middle of its answer. Ask again; .partial has what arrived."
        )
    return ConnectionLost(
        f"{host} closed the connection without an answer. Ask again; if that fails too, check base_url=."
    )


def unreadable(host: str, problem: BrokenHead | BadEncoding) -> TransportError:
    """The response is not HTTP, can be read in two ways, or cannot be decompressed. Trying again does not help."""
    if isinstance(problem, BadEncoding):
        return TransportError(
            f"the response of {host} cannot be decompressed. Check the proxy, or report it to the host."
        )
    if not problem.speaks_http:
        return TransportError(f"the response of {host} is not HTTP. Check base_url=, its port and http or https.")
    return TransportError(
        f"the response of {host} breaks the rules of HTTP: {problem}. Check base_url= and the proxy, or report "
        "it to the host."
    )


def proxy_error(proxy: str, host: str, reason: str) -> ConnectionLost:
    """The proxy failed, not the host."""
    return ConnectionLost(
        f"the proxy {get_host(proxy)} does not connect to {host} ({reason}). Check HTTPS_PROXY and HTTP_PROXY, "
        "or add the host to NO_PROXY."
    )


def _format_seconds(value: float | None) -> str:
    return "its time" if value is None else f"{value:g} s"
