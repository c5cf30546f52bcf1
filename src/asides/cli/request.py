"""One question to a model: reads its model and options from the arguments, sends it, and shows the reply."""

from __future__ import annotations

import os
import re
from argparse import Namespace
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, get_args

import msgspec

from asides.cli.inputs import clean_text, read_json_object, read_schema
from asides.cli.render import Display
from asides.cli.terminal import Stopwatch, Terminal, describe_elapsed, describe_usage
from asides.cli.trust import is_trusted, read_settings
from asides.flows.reply_fields import ThinkingVisibility
from asides.options import Options
from asides.providers.find import STAGE_VARIABLE, find_provider, find_target, list_providers
from asides.providers.key_file import locate_key
from asides.providers.provider import Provider, Target
from asides.providers.stage_switch import read_stage_switch
from asides.providers.table import WITHOUT_A_KEY
from asides.settings import Settings, load_settings
from asides.values.errors import AsidesError, ConfigError, UnknownModel, UnknownProvider
from asides.values.fold import simulate
from asides.values.messages import Message
from asides.values.reply import Reply
from asides.values.thinking import read_thinking

if TYPE_CHECKING:
    # These load much that `explain`, or a question without tools, does not need.
    from asides.agents.config import AgentOptions, ConversationLike
    from asides.client import Client
    from asides.conversations.sync import Conversation
    from asides.values.result import Result

ONE_PIECE = 1 << 30
"""A size for `simulate` that cuts nothing."""

# Options that go to the library exactly as typed.
_PlainOption: TypeAlias = Literal[
    "thinking",
    "max_tokens",
    "temperature",
    "top_p",
    "stop",
    "seed",
    "base_url",
    "api_key",
    "timeout",
    "retries",
    "on_conflict",
    "tag_position",
    "recover",
]
_PLAIN_OPTIONS: tuple[_PlainOption, ...] = get_args(_PlainOption)


# --- model and options ------------------------------------------------------------------------------------------------


class CallConfig(NamedTuple):
    """The model, the options and the settings; the same for every question of a chat."""

    target: Target
    options: Options
    settings: Settings
    fallbacks: tuple[str, ...] = ()
    """The models of `--fallback`."""

    @property
    def model(self) -> str:
        """The model as the library takes it: provider:model."""
        return _name_model(self.target)

    @property
    def models(self) -> str | list[str]:
        """The model, or all of them in order."""
        return [self.model, *self.fallbacks] if self.fallbacks else self.model

    @property
    def visibility(self) -> ThinkingVisibility:
        """Whether the thinking is shown. Of several models each must be allowed, since any of them may answer."""
        for model in (*self.fallbacks, *_list_set_fallbacks(self.settings, self.target)):
            if not (other := ThinkingVisibility(self.settings, model)).is_allowed:
                return other
        return ThinkingVisibility(self.settings, self.model)

    @property
    def call_options(self) -> Options:
        """The options of a call. Where thinking is shown, they also ask for it: some providers hide it unless asked."""
        if not self.visibility.kinds:
            return self.options
        thinking, notices = read_thinking(self.options.get("thinking", self.settings.thinking))
        if notices or thinking.summary is not None or thinking.mode == "off":
            return self.options
        return {**self.options, "thinking": msgspec.structs.replace(thinking, summary="auto")}

    def with_model(self, model: str) -> CallConfig:
        """The same for another model. `--base-url` and `--api-key` hold only for the provider they were given for."""
        model = self.settings.resolve_model(model)
        target = find_target(model, base_url=self.options.get("base_url"), rows=self.settings.providers)
        if target.provider.name == self.target.provider.name:
            return self._replace(target=target, fallbacks=())
        options = self.options.copy()
        options.pop("base_url", None)
        options.pop("api_key", None)
        return self._replace(target=find_target(model, rows=self.settings.providers), options=options, fallbacks=())


def take_leading_model(arguments: Namespace, terminal: Terminal) -> None:
    """Take the first word as the model, where it plainly is one: `asides ask anthropic:claude-opus-5-5 "Why?"`.

    It is one if it names a known provider and a model with a digit, a hyphen or the like, other words follow, and `-m`
    is not given. After `--`, and for any other word, a question stays a question.
    """
    if arguments.model is not None or not arguments.prompt or getattr(arguments, "free_words", 1) == 0:
        return
    first: str = arguments.prompt[0]
    found = re.fullmatch(r"([A-Za-z][\w.-]*):(\S+)", first)
    if found is None:
        return
    settings = load_settings(os.environ, trusts=lambda path, content: is_trusted(os.environ, path, content))
    try:
        find_provider(found[1], settings.providers)
    except UnknownProvider:
        return
    if len(arguments.prompt) == 1 or re.search(r"[\d/_.-]", found[2]) is None:
        terminal.print_note(f"{first} is taken as part of the question; for a model, write -m {first}")
        return
    arguments.model = first
    del arguments.prompt[0]
    terminal.print_note(f"asking {first}, as the first word says; put -- before it to make it part of the question")


def read_call_config(arguments: Namespace, terminal: Terminal) -> CallConfig:
    """The model and the options from the arguments, with the settings as their defaults."""
    settings = read_settings(terminal, show_reasoning_thinking=arguments.show_thinking)
    if arguments.template is not None or arguments.param:
        from asides.cli.templates import apply_template  # Few questions use one.

        apply_template(arguments, settings)
    model = arguments.model or settings.model or _choose_default_model(arguments, settings, os.environ, terminal)
    target = find_target(settings.resolve_model(model), base_url=arguments.base_url, rows=settings.providers)
    if arguments.api_key:
        warn_about_key(target.provider, terminal)
    fallbacks = [find_target(name, base_url=arguments.base_url, rows=settings.providers) for name in arguments.fallback]
    return CallConfig(target, read_call_options(arguments), settings, tuple(map(_name_model, fallbacks)))


def _name_model(target: Target) -> str:
    return f"{target.provider.name}:{target.model}"


def _list_set_fallbacks(settings: Settings, target: Target) -> list[str]:
    """The models that [fallbacks] names for a model, as provider:model. A wrong name is an error when it is asked."""

    def read(name: str) -> str:
        try:
            return _name_model(find_target(name, rows=settings.providers))
        except ConfigError:
            return name

    named = (others for name, others in settings.fallbacks.items() if read(name) == _name_model(target))
    return [read(other) for others in named for other in others]


def warn_about_key(provider: Provider, terminal: Terminal) -> None:
    """Advise against a key on the command line."""
    variables = f" ({' or '.join(provider.key_env)})" if provider.key_env else ""
    terminal.print_note(
        f"others on this machine can read a key on the command line; `asides keys set {provider.name}` or an "
        f"environment variable{variables} is safer"
    )


def read_call_options(arguments: Namespace) -> Options:
    """The options that were given; the settings supply the others."""
    options: Options = {}
    for name in _PLAIN_OPTIONS:
        if (value := getattr(arguments, name)) is not None:
            options[name] = value
    if arguments.system is not None:
        options["system"] = clean_text(arguments.system)
    if arguments.extra is not None:
        options["extra"] = read_json_object(arguments.extra, "--extra")
    if arguments.schema is not None:
        options["output"] = read_schema(arguments.schema, "--schema")
    return options


_MAX_EXAMPLES = 5
_STAGED = f"{STAGE_VARIABLE} is set: the stage answers for any of them."


def _choose_default_model(
    arguments: Namespace, settings: Settings, environ: Mapping[str, str], terminal: Terminal
) -> str:
    """The embedded model, with a note, where no provider is set up; else an UnknownModel that lists the choices."""
    from asides.local import is_installed  # Loads what starting a process needs, for the rare case of no model.

    with_key = [row for row in list_providers(settings.providers) if locate_key(row, environ, clouds=False) is not None]
    installed = is_installed()
    staged = bool(environ.get(STAGE_VARIABLE)) and read_stage_switch(environ) is not None
    if installed and not (staged or with_key or settings.providers or arguments.base_url or arguments.api_key):
        terminal.print_note(
            f"asking {WITHOUT_A_KEY}, a very small model; for a real one: -m PROVIDER:MODEL "
            "(`asides providers` lists them)"
        )
        return WITHOUT_A_KEY
    how = "run `asides config set model PROVIDER:MODEL` once"
    if examples := _list_examples(settings):
        terminal.print_info("Choose a model, for example:")
        for name in examples.values():
            terminal.print_info(f"  asides config set model {name}")
        how = "run one of the lines above once"
    others = _name_keys([row for row in with_key if _name_key(row) not in examples])
    described = _STAGED if staged else _describe_choice(others, settings, installed=installed, lists=bool(examples))
    raise UnknownModel(f"no model is named: write -m PROVIDER:MODEL, or {how}. {described}")


def _name_key(row: Provider) -> tuple[str, ...]:
    """What identifies a row's key: some keys are shared by several rows."""
    return row.key_env or (row.name,)


def _name_keys(rows: list[Provider]) -> list[str]:
    """One provider for each key, the one with the shortest name."""
    by_key = {_name_key(row): row.name for row in sorted(rows, key=lambda row: len(row.name), reverse=True)}
    return sorted(by_key.values())


def _describe_choice(with_key: list[str], settings: Settings, *, installed: bool, lists: bool) -> str:
    """`with_key`: the providers that no line names. `lists`: whether there are such lines."""
    sentences: list[str] = []
    if with_key:
        sentences.append(f"There are keys for {', '.join(with_key)}{' too' if lists else ''}.")
    if settings.providers:
        sentences.append(f"Your settings define {', '.join(row.name for row in settings.providers)}.")
    if sentences or lists:
        sentences.append("`asides models -m PROVIDER` shows what is known about its models.")
    else:
        sentences.append("No provider's key is set; `asides keys set PROVIDER` stores one.")
    how = "" if installed else ": pip install 'asides[local]'"
    sentences.append(f"{WITHOUT_A_KEY} needs no key{how}.")
    return " ".join(sentences)


def _list_examples(settings: Settings) -> dict[tuple[str, ...], str]:
    """A current model of some providers that have a key, as provider:model, by key."""
    from asides.flows.build_call import CallBuilder
    from asides.providers.model_names import sort_for_suggestions, suggest_models
    from asides.relay.known_models import find_keyed_providers

    rows = sort_for_suggestions(find_keyed_providers(CallBuilder(settings=settings)))
    names: dict[tuple[str, ...], str] = {}
    for row in rows:
        if models := suggest_models(row):
            names.setdefault(_name_key(row), f"{row.name}:{models[0]}")
    return dict(list(names.items())[:_MAX_EXAMPLES])


# --- asking -----------------------------------------------------------------------------------------------------------


class LiveRequest:
    """Asks one question and shows the reply as it arrives. `partial` is what has arrived, also after a failure."""

    def __init__(
        self,
        client: Client,
        config: CallConfig,
        terminal: Terminal,
        *,
        show_answer: bool = True,
        render: bool = True,
    ) -> None:
        self._client = client
        self._config = config
        self.stopwatch = Stopwatch()
        self.partial: Reply | None = None
        self.result: Result[Any] | None = None
        """The result of a run with tools, with all its steps; None without tools."""
        self.is_recorded = False
        """Whether `run_turn` added the question and the answer to the conversation."""
        self._terminal = terminal
        self._show_answer = show_answer
        self._display = Display(
            terminal,
            self.stopwatch,
            shown=config.visibility.kinds,
            show_answer=show_answer,
            render=render and config.settings.render_markdown,
        )

    def run(
        self,
        messages: Sequence[Message],
        *,
        stream: bool,
        tools: AgentOptions | None = None,
        conversation: ConversationLike | None = None,
    ) -> Reply:
        """The reply; with tools, the last one of the run. However it ends, the terminal is clean."""
        self._display.start()
        try:
            if tools is not None:
                return self._run_agent(tools, messages, conversation, stream=stream)
            return self._stream(messages) if stream else self._ask(messages)
        except AsidesError as error:
            self.partial = error.partial or self.partial
            raise
        finally:
            self.stopwatch.stop()
            self._display.end()

    def run_turn(
        self, conversation: Conversation, question: Message | None, *, stream: bool, tools: AgentOptions | None = None
    ) -> Reply:
        """Ask the next question of a conversation, which records it with the answer, or with what arrived of it. None:
        the question at the end of the conversation, which has no answer yet.
        """
        if conversation.system is not None:
            self._config.options["system"] = conversation.system
        if tools is not None:
            before = conversation.messages
            try:
                asked = [] if question is None else [question]
                return self.run(asked, stream=stream, tools=tools, conversation=conversation)
            finally:
                self.is_recorded = conversation.messages is not before
        turn = conversation.turn(question)
        turn.begin()
        try:
            return self.run(turn.messages, stream=stream)
        finally:
            turn.end(self.partial)
            self.is_recorded = turn.is_recorded

    def _run_agent(
        self, tools: AgentOptions, messages: Sequence[Message], conversation: ConversationLike | None, *, stream: bool
    ) -> Reply:
        from asides.agents.sync import Agent

        options: Any = {**self._config.call_options, **tools, "stream": stream}
        # A person at a terminal sees the text of every step as it arrives; a program gets only that of the last step.
        live = self._show_answer and self._terminal.out_is_terminal
        self._display.show_answer = live
        agent = Agent(self._config.models, client=self._client, **options)
        with agent.stream(messages, conversation=conversation) as run:
            try:
                for batch in run.batches():
                    self.stopwatch.record(batch)
                    self._display.show(batch)
                self.result = run.result
            finally:
                if self.result is None:
                    self.result = run.partial
                self.partial = self.result.reply
                if self._show_answer and not live:
                    self._terminal.write_answer(self.partial.text)
        return self.partial

    def _stream(self, messages: Sequence[Message]) -> Reply:
        with self._client.stream(self._config.models, messages, **self._config.call_options) as events:
            try:
                for batch in events.batches():
                    self.stopwatch.record(batch)
                    self._display.show(batch)
                return events.reply
            finally:
                self.partial = events.partial

    def _ask(self, messages: Sequence[Message]) -> Reply:
        reply = self.partial = self._client.ask(self._config.models, messages, **self._config.call_options)
        events = simulate(reply, ONE_PIECE)
        self.stopwatch.record(events)
        self._display.show(events)
        return reply


def print_figures(reply: Reply | Result[Any], stopwatch: Stopwatch, arguments: Namespace, terminal: Terminal) -> None:
    """Print the lines of `--usage` and `--elapsed`, where they were given."""
    if arguments.usage:
        terminal.print_info(describe_usage(reply))
    if arguments.elapsed:
        terminal.print_info(describe_elapsed(stopwatch))
