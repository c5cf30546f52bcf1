"""Declares the arguments of one call to a model, which several commands share: the model, the prompt, the thinking."""

from __future__ import annotations

import argparse


def add_address(group: argparse._ArgumentGroup) -> None:
    """Declare where requests go, and with which key."""
    group.add_argument("--base-url", metavar="URL", help="send requests here instead of to the provider's address")
    group.add_argument(
        "--api-key", metavar="KEY", help="the API key; `asides keys set` is safer: others can read command lines"
    )


_SHOW, _HIDE = "print the thinking on stderr", "do not print the thinking, whatever the settings say"


def _add_thinking(parser: argparse.ArgumentParser, show: str, hide: str) -> None:
    thinking = parser.add_argument_group("thinking")
    thinking.add_argument(
        "--thinking",
        metavar="LEVEL",
        help="ask for thinking: off, auto, on, minimal, low, medium, high, xhigh, max, or a number of tokens",
    )
    shown = thinking.add_mutually_exclusive_group()
    shown.add_argument("-t", "--show-thinking", action="store_true", default=None, help=show)
    shown.add_argument(
        "--hide-thinking",
        action="store_false",
        dest="show_thinking",
        default=None,
        help=hide,
    )
    thinking.add_argument(
        "--tag-position",
        choices=("auto", "leading", "anywhere"),
        help="where in the answer tags such as <think> count as thinking; default: as the provider's row says",
    )
    thinking.add_argument(
        "--on-conflict",
        choices=("raise", "adjust"),
        help="when the model does not allow an option: raise an error (default), or adjust to the nearest it allows",
    )


def add_call(parser: argparse.ArgumentParser, *, show: str = _SHOW, hide: str = _HIDE) -> None:
    """Everything that shapes one call to a model. `show`, `hide`: what -t and --hide-thinking do in this command."""
    model = parser.add_argument_group("model")
    model.add_argument("-m", "--model", metavar="PROVIDER:MODEL", help="the model to ask; default: the setting `model`")
    model.add_argument(
        "--fallback",
        action="append",
        default=[],
        metavar="PROVIDER:MODEL",
        help="a model to ask when those before it fail; repeatable",
    )
    add_address(model)
    _add_thinking(parser, show, hide)
    prompt = parser.add_argument_group("prompt and answer")
    prompt.add_argument("-s", "--system", metavar="TEXT", help="the system prompt: how the model should behave")
    prompt.add_argument(
        "-T",
        "--template",
        metavar="NAME",
        help="a prompt of the settings, [templates.NAME]; the question fills {input}",
    )
    prompt.add_argument(
        "-p",
        "--param",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a value for a placeholder of the template; repeatable",
    )
    prompt.add_argument(
        "-f",
        "--file",
        action="append",
        default=[],
        metavar="FILE",
        help="attach a picture, a PDF, a sound, a video or a text file, or the URL of one; `-`: what is piped in; "
        "repeatable",
    )
    prompt.add_argument(
        "--schema",
        metavar="SCHEMA",
        help="the form of the answer: fields ('name, age int, tags list[str]'), a JSON schema, or a file with one",
    )
    prompt.add_argument("--max-tokens", type=int, metavar="N", help="limit of the whole output, thinking included")
    prompt.add_argument("--temperature", type=float, metavar="X", help="sampling temperature")
    prompt.add_argument("--top-p", type=float, metavar="X", help="nucleus sampling: use only the likeliest tokens")
    prompt.add_argument("--stop", action="append", metavar="TEXT", help="end the answer at this text; repeatable")
    prompt.add_argument("--seed", type=int, metavar="N", help="seed of the sampling")
    prompt.add_argument("--extra", metavar="JSON", help="an object to merge into the request body last")
    request = parser.add_argument_group("request")
    request.add_argument("--no-stream", action="store_true", help="receive the answer in one piece")
    request.add_argument("--timeout", type=float, metavar="SECONDS", help="seconds to wait for the next bytes")
    request.add_argument("--retries", type=int, metavar="N", help="retries after a failed first attempt")
    request.add_argument("--recover", action="store_true", default=None, help="ask again when a reply has no answer")
