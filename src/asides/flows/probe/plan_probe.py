"""Before a probe: reads its options (`build_probe`), and lists its requests without sending any (`preview`)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypedDict
from urllib.parse import urlsplit

import msgspec

from asides.dialects import DIALECTS, find_dialect, plain_row, resolve_alias
from asides.flows.call import Policy
from asides.flows.probe.probe_report import ProbeStep
from asides.flows.probe.run_probe import Probe
from asides.flows.probe.trial_sender import MOST_REQUESTS, Extent, ProbeCall
from asides.flows.steps import Emit, Head, Open, Read
from asides.options import Timeout
from asides.providers.credentials import KeyLike, find_key, is_loopback, is_secret_query
from asides.providers.find import find_host, find_row, normalise_name
from asides.providers.provider import LAUNCH_URL
from asides.values.errors import ConfigError, MissingKey
from asides.values.events import StopReason
from asides.values.fold import simulate
from asides.values.parts import Text
from asides.values.reply import Reply
from asides.values.thinking import Thought
from asides.values.usage import Usage
from asides.wire.lenient import parse_or_none

_CHAT = "openai_chat"
_NOT_A_NAME = re.compile(r"[^a-z0-9]+")
# Parts of host names that do not identify the provider.
_COMMON_LABELS = frozenset("api www llm ai inference gateway models v1 com co org net".split())
_LONGEST = 3600.0


class ProbeOptions(TypedDict, total=False):
    """The options of `probe`."""

    model: str | None
    """The model to ask; default: the first of the server's list."""
    api_key: KeyLike | None
    key_env: str | None
    """The environment variable with the key. The row names it too."""
    dialect: str | None
    """Probe this dialect alone."""
    name: str | None
    """The name of the row."""
    extent: Extent
    """quick: at most 6 requests; usual: 12; thorough: 40."""
    max_requests: int | None
    max_tokens: int | None
    """The limit of each reply (512)."""
    timeout: float | None
    """Seconds for each request (120)."""


def build_probe(base_url: str, options: ProbeOptions, environ: Mapping[str, str] | None = None) -> ProbeCall:
    """The call of a probe. Raises ConfigError before a byte is sent."""
    if unknown := sorted(options.keys() - ProbeOptions.__annotations__.keys()):
        raise TypeError(
            f"probe() has no option {unknown[0]!r}; the options are {', '.join(ProbeOptions.__annotations__)}."
        )
    row = plain_row(_CHAT)
    address = complete_address(base_url)
    shown = find_host(row.name, base_url=address, environ={})
    target = find_host(row.name, base_url=address, environ=environ)
    if target.launches:  # the stage replaces the server, at the same path
        moved = f"{LAUNCH_URL}{urlsplit(shown.base_url).path}"
        target = msgspec.structs.replace(target, base_url=moved)
    extent = options.get("extent", "usual")
    if extent not in MOST_REQUESTS:
        raise ConfigError(f"extent is one of {', '.join(MOST_REQUESTS)}, not {extent!r}.")
    most = _read_count("max_requests", options.get("max_requests"), MOST_REQUESTS[extent])
    seconds = _read_seconds(options.get("timeout"))
    name = _choose_name(options.get("name"), shown.base_url)
    key_env = options.get("key_env")
    if options.get("api_key") is not None or key_env:
        variables: tuple[str, ...] = (key_env or f"{_NOT_A_NAME.sub('_', name.lower()).strip('_').upper()}_API_KEY",)
    else:
        variables = ()
    own = msgspec.structs.replace(target.provider, key_env=(key_env,) if key_env else row.key_env)
    try:
        key = None if target.launches else find_key(own, options.get("api_key"), environ, base_url=shown.base_url)
    except MissingKey:
        key = None
    if key_env and key is None and not target.launches:
        raise ConfigError(f"{key_env} is not set. Set it, or leave key_env out if the server wants no key.")
    if key is not None and not variables:
        variables = row.key_env  # the key came from there, or from the key file
    return ProbeCall(
        target=target,
        base_url=shown.base_url,
        policy=Policy(Timeout(connect=min(10.0, seconds), first_byte=seconds, idle=seconds), retries=0),
        key=key,
        name=name,
        key_env=variables,
        query=_hide_query(target.provider.query, name),
        model=(options.get("model") or "").strip() or None,
        dialect=_read_dialect(options.get("dialect")),
        extent=extent,
        most=most,
        counts_all=options.get("max_requests") is not None,
        max_tokens=_read_count("max_tokens", options.get("max_tokens"), 512),
        seconds=seconds,
    )


def complete_address(base_url: object) -> str:
    """The address with a scheme: http on this machine, https elsewhere."""
    if not isinstance(base_url, str) or not base_url.strip():
        raise ConfigError("probe needs the address of a server, such as http://127.0.0.1:8000.")
    text = base_url.strip()
    if "://" in text:
        return text
    return f"http://{text}" if is_loopback(f"http://{text}") else f"https://{text}"


def _read_seconds(value: object) -> float:
    if value is None:
        return 120.0
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0 < value <= _LONGEST:
        raise ConfigError(f"timeout is a number of seconds above zero, at most {_LONGEST:g}.")
    return float(value)


def _read_count(name: str, value: object, default: int) -> int:
    if value is None:
        return default
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ConfigError(f"{name} is a whole number above zero.")
    return value


def _hide_query(query: tuple[tuple[str, str], ...], name: str) -> tuple[tuple[str, str], ...]:
    """The query with variables in the place of what may be a key."""
    prefix = _NOT_A_NAME.sub("_", name.lower()).strip("_").upper()
    return tuple(
        (word, f"${prefix}_{_NOT_A_NAME.sub('_', word.lower()).strip('_').upper()}" if is_secret_query(word) else value)
        for word, value in query
    )


def _read_dialect(named: str | None) -> str | None:
    if not named:
        return None
    name = resolve_alias(named)
    if name not in DIALECTS:
        raise ConfigError(f"{named!r} is not a dialect that can be probed; those are {', '.join(DIALECTS)}.")
    return name


def _choose_name(given: str | None, base_url: str) -> str:
    """The name of the row: the given one, or a part of the host's name that no provider has."""
    if given is not None and given.strip():
        name = given.strip()
        if ":" in name or "/" in name or not normalise_name(name):
            raise ConfigError("the name of a row holds letters, digits and hyphens; no `:` and no `/`.")
        return name
    labels = _NOT_A_NAME.sub(" ", (urlsplit(base_url).hostname or "").lower()).split()
    named = [label for label in labels[:-1] if label not in _COMMON_LABELS and not label.isdecimal()]
    name = named[-1] if named and not is_loopback(base_url) else "probed"
    return name if find_row(name, ()) is None else f"{name}-probed"


# --- without sending --------------------------------------------------------------------------------------------------


def preview(call: ProbeCall) -> list[ProbeStep]:
    """The requests that a probe would send to a server that answers, thinks by default and can stop. Sends nothing.

    It is the flow itself, with imagined answers. Other answers lead to other requests.
    """
    steps: list[ProbeStep] = []
    flow = Probe(msgspec.structs.replace(call, key=None)).steps()
    imagined = _ImaginedServer(call)
    answer: Any = None
    while True:
        try:
            step = flow.send(answer)
        except StopIteration:
            return steps
        answer = None
        if isinstance(step, Emit):
            steps += [event for event in step.events if event.outcome is None]
        elif isinstance(step, Open):
            answer = imagined.begin(step.request.method, step.request.body)
        elif isinstance(step, Read):
            answer = imagined.read()


class _ImaginedServer:
    """Answers in the dialect of the request, like a model that thinks unless thinking is turned off."""

    def __init__(self, call: ProbeCall) -> None:
        self._dialect = call.dialect or _CHAT
        self._model = call.model or "MODEL"
        self._body = b""

    def begin(self, method: str, body: bytes) -> Head:
        if method == "GET":
            self._body = msgspec.json.encode({"data": [{"id": self._model}]})
            return Head(200, {})
        asked = parse_or_none(body)
        if not isinstance(asked, dict) or not asked:
            self._body = b"{}"
            return Head(404, {})
        switch = asked.get("chat_template_kwargs")
        off = isinstance(switch, dict) and switch.get("enable_thinking") is False
        parts = (Text("132"),) if off else (Thought("47 and 85 make 132."), Text("132"))
        reply = Reply(parts, Usage(9, 9), StopReason("stop"), model=self._model)
        writer = find_dialect(self._dialect).writer(model=self._model, stream=False)
        self._body = writer.write(simulate(reply))
        return Head(200, {})

    def read(self) -> bytes:
        body, self._body = self._body, b""
        return body
