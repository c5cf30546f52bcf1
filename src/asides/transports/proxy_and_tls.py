"""Proxy and certificates from the environment, read when a request goes out."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from asides.transports.transport_errors import get_host
from asides.values.errors import ConfigError

if TYPE_CHECKING:
    import ssl


def find_proxy(url: str, environ: Mapping[str, str] | None = None) -> str | None:
    """The proxy that the environment names for this address, or None.

    HTTPS_PROXY, HTTP_PROXY and ALL_PROXY in either case; NO_PROXY lists hosts, domains, host:port, networks, or "*".
    """
    environ = os.environ if environ is None else environ
    names = (f"{url.partition(':')[0].lower()}_proxy", "all_proxy")
    proxy = next((value for name in names if (value := _read_variable(name, environ))), None)
    if proxy is None:
        return None
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    if _is_exempt(parts.hostname or "", port, _read_variable("no_proxy", environ) or ""):
        return None
    proxy = proxy if "://" in proxy else f"http://{proxy}"
    if not proxy.lower().startswith(("http://", "https://")):
        raise ConfigError(
            f"the proxy {get_host(proxy)} is neither http nor https. Set HTTPS_PROXY to such a proxy, add "
            "the host to NO_PROXY, or pass your own transport=."
        )
    if not _is_address(proxy):
        raise ConfigError("the proxy is not a valid address. Correct HTTPS_PROXY, HTTP_PROXY or ALL_PROXY.")
    return proxy


def _is_address(proxy: str) -> bool:
    try:
        parts = urlsplit(proxy)
        return bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _read_variable(name: str, environ: Mapping[str, str]) -> str | None:
    if name in environ:
        return environ[name].strip() or None
    # A CGI server turns a request's "Proxy:" header into HTTP_PROXY.
    if name == "http_proxy" and "REQUEST_METHOD" in environ:
        return None
    return environ.get(name.upper(), "").strip() or None


def _is_exempt(host: str, port: int, exceptions: str) -> bool:
    host = host.lower().rstrip(".")
    for entry in (entry.strip().lower() for entry in exceptions.split(",")):
        if entry == "*":
            return True
        if "/" in entry and _is_in_network(host, entry):
            return True
        has_port = entry.count(":") == 1 or "]:" in entry
        name, _, exempt_port = entry.rpartition(":") if has_port else (entry, "", "")
        name = name.lstrip("*").lstrip(".").strip("[]")
        if name and (not exempt_port or exempt_port == str(port)) and (host == name or host.endswith(f".{name}")):
            return True
    return False


def _is_in_network(host: str, network: str) -> bool:
    import ipaddress

    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(network, strict=False)
    except ValueError:
        return False


def split_proxy_login(proxy: str) -> tuple[str, str | None]:
    """A proxy's address without its credentials, and the credentials as user:password, or None."""
    parts = urlsplit(proxy)
    if parts.username is None:
        return proxy, None
    address = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
    return address, f"{unquote(parts.username)}:{unquote(parts.password or '')}"


def build_tls_context(environ: Mapping[str, str] | None = None) -> ssl.SSLContext:
    """The trusted certificates: the system's, SSL_CERT_FILE and SSL_CERT_DIR, and REQUESTS_CA_BUNDLE if set."""
    import ssl

    environ = os.environ if environ is None else environ
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    bundle = environ.get("REQUESTS_CA_BUNDLE") or environ.get("CURL_CA_BUNDLE")
    if bundle:
        try:
            if Path(bundle).is_dir():
                context.load_verify_locations(capath=bundle)
            else:
                context.load_verify_locations(cafile=bundle)
        except (OSError, ssl.SSLError) as problem:
            raise ConfigError(
                f"REQUESTS_CA_BUNDLE names {bundle}, which has no readable certificates ({problem}). "
                "Correct the path or unset it."
            ) from None
    return context
