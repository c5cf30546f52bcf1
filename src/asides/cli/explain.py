"""`asides explain`: shows the request that `ask` would send, and why. Sends nothing and needs no key."""

from __future__ import annotations

import os
from argparse import Namespace

import msgspec

from asides.cli.exit_codes import Exit
from asides.cli.inputs import open_tools, read_prompt
from asides.cli.render import print_json
from asides.cli.request import read_call_config, take_leading_model
from asides.cli.saved_conversations import open_store, read_conversation_name
from asides.cli.terminal import Terminal
from asides.flows.offline import Explanation, explain
from asides.values.errors import ConfigError
from asides.values.messages import Message


def run(arguments: Namespace, terminal: Terminal) -> int:
    """Print the plan and the exact request on stdout, with the key as ***."""
    take_leading_model(arguments, terminal)
    messages, system, model = _load_conversation(arguments)
    # A model on the command line wins over the one of the conversation.
    arguments.model = arguments.model or model
    config = read_call_config(arguments, terminal)
    prompt = read_prompt(arguments, terminal)
    options = config.call_options.copy()
    if system is not None:
        options.setdefault("system", system)
    options["stream"] = not arguments.no_stream
    with open_tools(arguments, config.settings, terminal) as tools:
        if tools is not None:
            options["tools"] = tools.get("tools")
        explanation = explain(config.models, [*messages, prompt], settings=config.settings, **options)
    if arguments.json:
        print_json(terminal, _encode(explanation))
    else:
        terminal.write_answer(explanation.to_text())
        terminal.end_answer()
    return Exit.DONE


def _load_conversation(arguments: Namespace) -> tuple[tuple[Message, ...], str | None, str | None]:
    """The messages, the system prompt and the model of the named conversation; empty if none is named."""
    name = read_conversation_name(arguments, os.environ)
    if name is None:
        return (), None, None
    with open_store(os.environ) as store:
        saved = store.load(name)
    if saved is None:
        raise ConfigError(f"no conversation is called {name!r}. /list in `asides chat` shows them.")
    return saved.messages, saved.about.heading.system, saved.about.heading.model


def _encode(explanation: Explanation) -> dict[str, object]:
    return {
        "model": f"{explanation.target.provider.name}:{explanation.target.model}",
        "fallbacks": list(explanation.fallbacks),
        "dialect": explanation.target.dialect,
        "why_endpoint": explanation.why_endpoint,
        "method": explanation.method,
        "url": explanation.url,
        "headers": explanation.headers,
        "body": explanation.body,
        "missing_key": explanation.missing_key,
        "passes": explanation.passes,
        "decisions": msgspec.to_builtins(explanation.decisions),
        "cache_break_at": msgspec.to_builtins(explanation.cache_break_at),
        "notices": msgspec.to_builtins(explanation.notices),
        "memory": msgspec.to_builtins(explanation.memory),
    }
