"""`asides explain`: the request that `ask` would send, and why it looks so. Nothing is sent, and no key is needed."""

from __future__ import annotations

from argparse import Namespace

import msgspec

from asides.cli.exit_codes import Exit
from asides.cli.question import read_asked, read_prompt
from asides.cli.render import print_json
from asides.cli.terminal import Terminal
from asides.offline import Explanation, explain


def run(arguments: Namespace, terminal: Terminal) -> int:
    """The plan and the exact request on stdout, the key as ***."""
    asked = read_asked(arguments, terminal)
    prompt = read_prompt(arguments, terminal)
    options = asked.options.copy()
    options["stream"] = not arguments.no_stream
    explanation = explain(asked.model, [prompt], settings=asked.settings, **options)
    if arguments.json:
        print_json(terminal, _object(explanation))
    else:
        terminal.answer(explanation.to_text())
        terminal.end_answer()
    return Exit.DONE


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
