"""What went wrong on the way, in words: who, how long, what to do. Addresses appear as host and port alone.

Not here: which exception of an HTTP library means which of these (shells), and what a server said (errors).
"""

from __future__ import annotations

import os
from urllib.parse import urlsplit

from asides.options import Timeout
from asides.values.errors import ConnectionLost, ConnectTimeout, IdleTimeout, TransportError


def place_of(url: str) -> str:
    """Host and port of an address: all of it that belongs into a message."""
    parts = urlsplit(url)
    host = parts.hostname or url
    return f"{host}:{parts.port}" if parts.port else host


def connect_timed_out(place: str, timeout: Timeout) -> ConnectTimeout:
    """Nobody took the call."""
    return ConnectTimeout(
        f"no connection to {place} within {_seconds(timeout.connect)}. To do: check the address, the network and the "
        "proxy, or raise timeout=Timeout(connect=…)."
    )


def fell_silent(place: str, timeout: Timeout, *, begun: bool) -> IdleTimeout:
    """Connected, and then nothing: `begun` once some of the answer was there."""
    if begun:
        return IdleTimeout(
            f"{place} fell silent for {_seconds(timeout.idle)} in the middle of its answer. To do: ask again, or raise "
            "timeout=Timeout(idle=…); .partial has what came."
        )
    return IdleTimeout(
        f"{place} took the request and sent nothing for {_seconds(timeout.first_byte)}. To do: raise "
        "timeout=Timeout(first_byte=…) for a model that thinks long, stream, or ask for less thinking."
    )


def out_of_time(place: str, total: float | None) -> IdleTimeout:
    """The whole call took too long."""
    return IdleTimeout(
        f"{place} did not finish within the {_seconds(total)} that the whole call may take. To do: raise "
        "timeout=Timeout(total=…), or ask for less; .partial has what came."
    )


def not_connected(place: str, cause: BaseException | None, *, proxy: str | None = None) -> TransportError:
    """No connection, from the system's reason for it."""
    import socket
    import ssl

    if proxy is not None:
        return proxy_failed(proxy, place, reason_of(cause))
    if isinstance(cause, ssl.SSLError):
        # Not a ConnectionLost: trying again does not help.
        return TransportError(
            f"no secure connection to {place} ({reason_of(cause)}). To do: if a proxy of yours signs it, name its "
            "certificate in SSL_CERT_FILE; if the server speaks plain HTTP, write http:// in base_url=."
        )
    if isinstance(cause, socket.gaierror):
        return ConnectionLost(f"the name of {place} cannot be looked up. To do: check base_url= and the network.")
    if isinstance(cause, ConnectionRefusedError):
        return ConnectionLost(
            f"nobody listens at {place} (connection refused). To do: start the server there, or check base_url=."
        )
    return ConnectionLost(f"{place} cannot be reached ({reason_of(cause)}). To do: check the network and base_url=.")


def reason_of(cause: BaseException | None) -> str:
    """The system's reason in a few words, without an address."""
    import ssl

    if isinstance(cause, ssl.SSLCertVerificationError):
        return cause.verify_message
    if isinstance(cause, ssl.SSLError):
        return (getattr(cause, "reason", None) or "TLS failed").replace("_", " ").lower()
    if isinstance(cause, OSError) and cause.errno is not None:
        return os.strerror(cause.errno)
    return type(cause).__name__


def broken_off(place: str, *, begun: bool) -> ConnectionLost:
    """They hung up."""
    if begun:
        return ConnectionLost(
            f"{place} broke the connection off in the middle of its answer. To do: ask again; .partial has what came."
        )
    return ConnectionLost(
        f"{place} closed the connection without an answer. To do: ask again; if it stays so, check base_url=."
    )


def not_http(place: str) -> TransportError:
    """Somebody else lives there."""
    return TransportError(f"what {place} answers is not HTTP. To do: check base_url=, its port and http or https.")


def undecodable(place: str) -> TransportError:
    """The content encoding is broken."""
    return TransportError(f"what {place} sends does not decompress. To do: check the proxy between; tell the host.")


def proxy_failed(proxy: str, place: str, reason: str) -> ConnectionLost:
    """The way was closed, not the place."""
    return ConnectionLost(
        f"the proxy {place_of(proxy)} does not connect to {place} ({reason}). To do: check HTTPS_PROXY and HTTP_PROXY, "
        "or add the host to NO_PROXY."
    )


def _seconds(value: float | None) -> str:
    return "its time" if value is None else f"{value:g} s"
