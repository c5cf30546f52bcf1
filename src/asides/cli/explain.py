"""`asides explain`: the request that `ask` would send, and why it looks so. Nothing is sent, and no key is needed."""

from __future__ import annotations

import os
from argparse import Namespace

import msgspec

from asides.cli.exit_codes import Exit
from asides.cli.history import open_store, wanted_name
from asides.cli.inputs import read_asked, read_prompt
from asides.cli.render import print_json
from asides.cli.terminal import Terminal
from asides.flows.offline import Explanation, explain
from asides.values.errors import ConfigError
from asides.values.messages import Message


def run(arguments: Namespace, terminal: Terminal) -> int:
    """The plan and the exact request on stdout, the key as ***."""
    said, system, model = _kept(arguments)
    # Whoever is named wins; else it is who was spoken with before.
    arguments.model = arguments.model or model
    asked = read_asked(arguments, terminal)
    prompt = read_prompt(arguments, terminal)
    options = asked.options.copy()
    if system is not None:
        options.setdefault("system", system)
    options["stream"] = not arguments.no_stream
    if arguments.tools:
        # They bring much along that most questions have no use for.
        from asides.cli.tools import find_tools

        options["tools"] = [tool for words in arguments.tools for tool in find_tools(words)]
    explanation = explain(asked.model, [*said, prompt], settings=asked.settings, **options)
    if arguments.json:
        print_json(terminal, _object(explanation))
    else:
        terminal.answer(explanation.to_text())
        terminal.end_answer()
    return Exit.DONE


def _kept(arguments: Namespace) -> tuple[tuple[Message, ...], str | None, str | None]:
    """What was said before, how the model was told to behave, and who it was; nothing of all that, where none is named.
    Nothing is written.
    """
    name = wanted_name(arguments, os.environ)
    if name is None:
        return (), None, None
    with open_store(os.environ) as store:
        kept = store.load(name)
    if kept is None:
        raise ConfigError(f"no conversation is called {name!r}. To do: /list in `asides chat` shows them.")
    return kept.messages, kept.about.heading.system, kept.about.heading.model


def _object(explanation: Explanation) -> dict[str, object]:
    return {
        "model": f"{explanation.target.provider.name}:{explanation.target.model}",
        "dialect": explanation.target.dialect,
        "why_endpoint": explanation.why_endpoint,
        "method": explanation.method,
        "url": explanation.url,
        "headers": explanation.headers,
        "body": explanation.body,
        "missing_key": explanation.missing_key,
        "decisions": msgspec.to_builtins(explanation.decisions),
        "notices": msgspec.to_builtins(explanation.notices),
    }
