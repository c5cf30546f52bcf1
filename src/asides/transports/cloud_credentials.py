"""Credentials of clouds, from their makers' own libraries: `botocore`, `google-auth` and `azure-identity`.

Each library is loaded with the first request that needs it, finds the credentials, keeps them and renews them. One
object for each set of variables serves all threads.
"""

from __future__ import annotations

import json
import logging
import os
import threading
from collections.abc import Callable
from importlib import import_module
from typing import Any

from asides.providers.cloud_hints import find_sign_in, is_cloud_machine
from asides.providers.credentials import (
    EXTRAS,
    AwsCredentials,
    BearerToken,
    KeySource,
    Secret,
    choose_aws_region,
    report_missing_key,
)
from asides.providers.quirks import Cloud
from asides.transports.proxy_and_tls import build_tls_context, find_proxy
from asides.values.errors import MissingKey, quote_message

_GOOGLE_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
_GOOGLE_TOKENS = "https://oauth2.googleapis.com"
_AZURE_SCOPE = "https://cognitiveservices.azure.com/.default"
# A request for a token takes less than a second. The libraries would wait for minutes.
_CONNECT_SECONDS, _READ_SECONDS = 10, 30

_LONGEST_QUOTE = 300

Fetch = Callable[[KeySource], Secret | None]
"""Returns the current credentials, renewed if needed; None if the library finds none."""

_VARIABLES: dict[Cloud, tuple[str, ...]] = {
    "aws": ("AWS_",),
    "google-cloud": ("GOOGLE_", "GCE_", "CLOUDSDK_", "APPDATA"),
    "azure-ad": ("AZURE_", "IDENTITY_", "MSI_"),
}
_HOMES = ("HOME", "USERPROFILE")
_MAX_SOURCES = 16
_lock = threading.Lock()
_sources: dict[object, Fetch] = {}


def fetch_credentials(key: KeySource) -> Secret | None:
    """The credentials of a cloud for one attempt. After a refusal they are looked up again. May block.

    Raises MissingKey if the library is not installed, finds nothing, or fails.
    """
    place = _describe_environment(key.cloud)
    try:
        with _lock:
            if key.refusal is not None:
                _sources.pop(place, None)
            source = _sources.get(place)
            if source is None:
                if len(_sources) >= _MAX_SOURCES:
                    _sources.clear()
                source = _sources[place] = _OPENERS[key.cloud]()
        found = source(key)
    except ImportError as problem:
        if not key.is_required:
            return None
        raise _report(
            key,
            f", and {_LIBRARIES[key.cloud]}, which finds those of this machine, is not installed",
            f"pip install 'asides[{EXTRAS[key.cloud]}]'",
        ) from problem
    except MissingKey:
        raise
    except Exception as problem:
        with _lock:
            _sources.pop(place, None)
        raise _report(key, f", and {_LIBRARIES[key.cloud]} {_describe(problem)}", _SIGN_IN[key.cloud]) from problem
    if found is None and key.is_required:
        with _lock:
            _sources.pop(place, None)
        raise _report(key, f", and {_LIBRARIES[key.cloud]} finds no credentials", _SIGN_IN[key.cloud])
    return found


def _describe_environment(cloud: Cloud) -> object:
    """What decides which credentials a library finds."""
    relevant = (name for name in os.environ if name.startswith(_VARIABLES[cloud]) or name in _HOMES)
    return cloud, tuple((name, os.environ.get(name)) for name in sorted(relevant))


_LIBRARIES: dict[Cloud, str] = {"aws": "botocore", "google-cloud": "google-auth", "azure-ad": "azure-identity"}
_SIGN_IN: dict[Cloud, str] = {
    "aws": "sign in with `aws configure` or `aws sso login`",
    "google-cloud": "sign in with `gcloud auth application-default login`",
    "azure-ad": "sign in with `az login`",
}


def _report(key: KeySource, why: str, way: str) -> MissingKey:
    error = report_missing_key(key.provider, way)
    return MissingKey(error.provider, error.variables, name=key.provider.name, ways=(way,), why=why)


def _describe(problem: Exception) -> str:
    kind, text = type(problem).__name__, str(problem)
    if "custom-process" in text:
        return f"raised {kind}"  # The output of a user's program may contain anything.
    # A chain lists everything it tried. Skip the sources that are not set up.
    lines = [line for line in text.splitlines() if not ("unavailable" in line or "https://" in line)]
    return f"says: {kind}: {quote_message(' '.join(lines))[:_LONGEST_QUOTE].rstrip('. ')}"


# --- the libraries ----------------------------------------------------------------------------------------------------


def _open_aws() -> Fetch:
    session: Any = import_module("botocore.session").Session()
    limits: dict[str, Any] = {"connect_timeout": _CONNECT_SECONDS, "read_timeout": _READ_SECONDS}
    config = import_module("botocore.config").Config(**limits, retries={"total_max_attempts": 2})
    session.set_default_client_config(config)
    if not (is_cloud_machine("aws") or os.environ.get("AWS_EC2_METADATA_SERVICE_ENDPOINT", "").strip()):
        # Outside AWS the metadata request would only time out, after seconds.
        session.get_component("credential_provider").remove("iam-role")
    credentials: Any = session.get_credentials()

    def fetch(key: KeySource) -> Secret | None:
        if credentials is None:
            return None
        frozen = credentials.get_frozen_credentials()
        region = choose_aws_region(key.base_url, os.environ, session.get_config_variable("region"))
        return AwsCredentials(
            frozen.access_key, frozen.secret_key, frozen.token or "", region=region, service="bedrock"
        )

    return fetch


def _open_google() -> Fetch:
    import urllib3

    library: Any = import_module("google.auth")
    _silence("google.auth")
    limits: dict[str, Any] = {
        "timeout": urllib3.Timeout(connect=_CONNECT_SECONDS, read=_READ_SECONDS),
        "ssl_context": build_tls_context(),
    }
    proxy = find_proxy(_GOOGLE_TOKENS)
    pool = urllib3.PoolManager(**limits) if proxy is None else urllib3.ProxyManager(proxy, **limits)
    request: Any = import_module("google.auth.transport.urllib3").Request(pool)
    credentials: Any = _read_google_user() or library.default(scopes=[_GOOGLE_SCOPE], request=request)[0]
    lock = threading.Lock()

    def fetch(_key: KeySource) -> Secret | None:
        with lock:
            if not credentials.valid:
                credentials.refresh(request)
            return BearerToken(credentials.token)

    return fetch


def _read_google_user() -> Any:
    """The credentials of a person who signed in with gcloud; None for all others.

    The library would also run gcloud, for seconds, to learn the person's project, which the address has already.
    """
    path = find_sign_in("google-cloud", os.environ)
    if path is None or os.environ.get("GOOGLE_APPLICATION_CREDENTIALS", "").strip():
        return None
    info: Any = json.loads(path.read_bytes())
    if not (isinstance(info, dict) and info.get("type") == "authorized_user"):
        return None
    return import_module("google.oauth2.credentials").Credentials.from_authorized_user_info(info)


def _open_azure() -> Fetch:
    library: Any = import_module("azure.identity")
    _silence("azure.identity")
    has_endpoint = any(os.environ.get(name, "").strip() for name in ("IDENTITY_ENDPOINT", "MSI_ENDPOINT"))
    credential = library.DefaultAzureCredential(
        exclude_managed_identity_credential=not (has_endpoint or is_cloud_machine("azure-ad")),
        exclude_powershell_credential=True,
        exclude_visual_studio_code_credential=True,
        process_timeout=_CONNECT_SECONDS,
        connection_timeout=_CONNECT_SECONDS,
        read_timeout=_READ_SECONDS,
        retry_total=2,
    )
    get_token = library.get_bearer_token_provider(credential, _AZURE_SCOPE)
    lock = threading.Lock()

    def fetch(_key: KeySource) -> Secret | None:
        with lock:
            return BearerToken(get_token())

    return fetch


def _silence(logger: str) -> None:
    """Keep the warnings of a library off the terminal of a program that has set up no logging."""
    found = logging.getLogger(logger)
    if not found.handlers:
        found.addHandler(logging.NullHandler())


_OPENERS: dict[Cloud, Callable[[], Fetch]] = {"aws": _open_aws, "google-cloud": _open_google, "azure-ad": _open_azure}
