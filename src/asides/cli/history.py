"""`asides history`: lists, shows, searches, exports, renames and deletes the saved conversations.

They are the only log of the command line.
"""

from __future__ import annotations

import json
import os
import sys
from argparse import Namespace
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Literal

import msgspec

from asides.cli.exit_codes import Exit
from asides.cli.layout import measure, pad, shorten
from asides.cli.markdown import open_answer_writer
from asides.cli.render import describe_call, print_json, print_lines
from asides.cli.saved_conversations import format_time, open_store, show_name
from asides.cli.terminal import Terminal
from asides.cli.trust import read_settings
from asides.conversations.store import ConversationInfo, ConversationSnapshot
from asides.conversations.store.database_store import DatabaseStore
from asides.history.document import to_document
from asides.history.export import export_messages, parse_format
from asides.history.redact import redact
from asides.settings import Settings
from asides.values.error_words import find_near_name
from asides.values.errors import ConfigError
from asides.values.messages import Message, system
from asides.values.notices import escape_controls
from asides.values.parts import Commentary, File, Image, Part, Refusal, Text, ToolCall, ToolResult, join_commentary
from asides.values.thinking import Thought
from asides.values.usage import Usage
from asides.values.visibility import ALL_VISIBLE, Visible

_LINE_WIDTH = 79
_WIDEST_NAME = 28
_SNIPPET = 60


def run(arguments: Namespace, terminal: Terminal) -> int:
    """Run the action."""
    if arguments.limit is not None and arguments.limit < 1:
        raise ConfigError("-n must be at least 1.")
    # Also says what is ignored, such as a store that a file of this folder names.
    settings = read_settings(terminal)
    with open_store(os.environ, create=False) as store:
        match arguments.action:
            case "list":
                return _list(store, arguments, terminal)
            case "show":
                return _show(store, arguments, settings, terminal)
            case "search":
                return _search(store, arguments, terminal)
            case "export":
                return _export(store, arguments, settings, terminal)
            case "rename":
                return _rename(store, arguments, terminal)
            case _:
                return _remove(store, arguments, terminal)


# --- list -------------------------------------------------------------------------------------------------------------


def _list(store: DatabaseStore, arguments: Namespace, terminal: Terminal) -> int:
    if arguments.words:
        raise ConfigError(f"list takes no name. Print one with `asides history show {arguments.words[0]}`.")
    infos = store.list_infos(arguments.limit)
    if arguments.json:
        print_json(terminal, [_encode_info(info) for info in infos])
        return Exit.DONE
    if not infos:
        terminal.print_info("no conversation is saved; `--conversation NAME` saves one.")
        return Exit.DONE
    names = [shorten(show_name(info.name), _WIDEST_NAME) for info in infos]
    width = max(map(measure, names))
    lines: list[str] = []
    for name, info in zip(names, infos, strict=True):
        head = f"{pad(name, width)}  {format_time(info.updated)}  {info.length:>4}  "
        lines.append(head + shorten(_find_first_question(store, info), _LINE_WIDTH - measure(head)))
    title = f"{pad('NAME', width)}  {'CHANGED':<16}  MSGS  FIRST QUESTION"
    print_lines(terminal, [title, *(line.rstrip() for line in lines)])
    return Exit.DONE


def _encode_info(info: ConversationInfo) -> dict[str, Any]:
    return {
        "name": info.name,
        "model": info.heading.model,
        "messages": info.length,
        "created": info.created,
        "updated": info.updated,
        "usage": msgspec.to_builtins(info.usage),
    }


def _find_first_question(store: DatabaseStore, info: ConversationInfo) -> str:
    message = store.load_first(info.name)
    return "" if message is None else _to_line(message.text)


# --- show -------------------------------------------------------------------------------------------------------------


def _show(store: DatabaseStore, arguments: Namespace, settings: Settings, terminal: Terminal) -> int:
    saved = _load(store, arguments)
    last = saved.messages if arguments.limit is None else saved.messages[-arguments.limit :]
    messages = _limit_thinking(last, settings, "app" if arguments.json else "user")
    if arguments.json:
        with_thinking = bool(arguments.show_thinking)
        shown = [_encode_message(message, thinking=with_thinking) for message in messages]
        print_json(terminal, {**_encode_info(saved.about), "system": saved.about.heading.system, "messages": shown})
        return Exit.DONE
    writer = open_answer_writer(terminal, render=settings.render_markdown and not arguments.plain)
    info = saved.about
    terminal.print_note(f"{show_name(info.name)}, {format_time(info.updated)}, {info.length} messages")
    writer.write(_write_markdown(info.heading.system, messages, thinking=bool(arguments.show_thinking)))
    writer.end()
    terminal.end_answer()
    return Exit.DONE


def _limit_thinking(messages: Sequence[Message], settings: Settings, sink: Literal["user", "app"]) -> Sequence[Message]:
    """The messages, with the thinking that `[visibility]` allows there."""
    # Seals are not shown to a person, so they need not be removed for one.
    kept: frozenset[Visible] = frozenset((*settings.visibility.user, "sealed"))
    if sink == "app":
        kept = frozenset(settings.visibility.app)
    return messages if kept == ALL_VISIBLE else redact(messages, rows=settings.providers, keep=kept)


def _write_markdown(system_prompt: str | None, messages: Sequence[Message], *, thinking: bool) -> str:
    sections = [f"## system\n\n{system_prompt}"] if system_prompt else []
    for message in messages:
        parts = [text for part in message.parts if (text := _describe_part(part, thinking=thinking))]
        if parts:
            sections.append("\n\n".join((f"## {message.role}", *parts)))
    return "\n\n".join(sections) + "\n"


def _describe_part(part: Part, *, thinking: bool) -> str:
    match part:
        case Text(text=text):
            return text
        case Refusal(text=text):
            return f"(refused) {text}"
        case Commentary(text=text):
            return "\n".join(f"*{line}*" if line.strip() else "" for line in text.split("\n"))
        case Thought(text=text):
            return "\n".join(f"> {line}".rstrip() for line in text.split("\n")) if thinking and text else ""
        case ToolCall():
            return f"`{describe_call(part, whole=True).replace('`', chr(39))}`"
        case ToolResult():
            return f"```\n{part.text}\n```"
        case Image() | File():
            return f"({_describe_media(part)})"
        case _:
            return ""


def _describe_media(part: Image | File) -> str:
    kind = "picture" if isinstance(part, Image) else "file"
    name = escape_controls(getattr(part, "name", None) or "")
    return f"a {kind}{f' {name}' if name else ''}{f', {len(part.data)} bytes' if part.data else ''}"


def _encode_message(message: Message, *, thinking: bool) -> dict[str, Any]:
    fields: dict[str, Any] = {"role": message.role, "text": message.text}
    if said := join_commentary(part.text for part in message.parts if isinstance(part, Commentary)):
        fields["commentary"] = said
    thoughts = [part.text for part in message.parts if isinstance(part, Thought) and part.text]
    if thinking:
        fields["thinking"] = "\n\n".join(thoughts) or None
    calls = [{"id": call.id, "name": call.name, "arguments": dict(call.arguments)} for call in message.tool_calls]
    if calls:
        fields["tool_calls"] = calls
    results = [part for part in message.parts if isinstance(part, ToolResult)]
    if results:
        fields["results"] = [{"call_id": each.call_id, "text": each.text} for each in results]
    return fields


# --- search -----------------------------------------------------------------------------------------------------------


def _search(store: DatabaseStore, arguments: Namespace, terminal: Terminal) -> int:
    words = [word.casefold() for word in arguments.words if word.strip()]
    if not words:
        raise ConfigError("there is nothing to search. Write `asides history search WORD …`.")
    found = 0
    hits: list[dict[str, Any]] = []
    # One conversation at a time: a store may be larger than the memory.
    for name in store.names():
        saved = store.load(name)
        for place, message in enumerate(() if saved is None else saved.messages):
            text = _find_text(message)
            if not all(word in text.casefold() for word in words):
                continue
            found += 1
            snippet = _cut_snippet(text, words[0])
            if arguments.json:
                hits.append({"name": name, "place": place, "role": message.role, "text": snippet})
            else:
                head = f"{shorten(show_name(name), _WIDEST_NAME)}  {message.role}: "
                print_lines(terminal, [head + snippet])
            if found == arguments.limit:
                break
        if found == arguments.limit:
            break
    if arguments.json:
        print_json(terminal, hits)
    elif not found:
        terminal.print_info("no message has all of these words.")
    return Exit.DONE


def _find_text(message: Message) -> str:
    """The text of a message that may be searched: no thinking."""
    results = [part.text for part in message.parts if isinstance(part, ToolResult)]
    return "\n".join((message.text, *results)) if results else message.text


def _cut_snippet(text: str, word: str) -> str:
    """One line of the text around a word."""
    line = _to_line(text)
    place = max(line.casefold().find(" ".join(word.split())), 0)
    start = max(place - _SNIPPET // 3, 0)
    cut = line[start : start + _SNIPPET]
    return f"{'…' if start else ''}{cut}{'…' if start + _SNIPPET < len(line) else ''}"


# --- export -----------------------------------------------------------------------------------------------------------


def _export(store: DatabaseStore, arguments: Namespace, settings: Settings, terminal: Terminal) -> int:
    """Print one conversation in a format that programs read. Thinking goes along only where -t asks for it."""
    if arguments.format not in ("json", "markdown"):
        try:
            parse_format(arguments.format)
        except ConfigError:
            known = "json, markdown, openai, anthropic or responses"
            raise ConfigError(f"--format {arguments.format!r} is not known. Use {known}.") from None
    saved = _load(store, arguments)
    heading, with_thinking = saved.about.heading, bool(arguments.show_thinking)
    messages, rows = _limit_thinking(saved.messages, settings, "app"), settings.providers
    if arguments.format == "markdown":
        terminal.write_answer(_write_markdown(heading.system, messages, thinking=with_thinking))
        return Exit.DONE
    if arguments.format == "json":
        metadata: dict[str, Any] = {} if heading.model is None else {"model": heading.model}
        if saved.about.usage != Usage():
            usage = msgspec.structs.asdict(saved.about.usage)
            metadata["usage"] = {name: value for name, value in usage.items() if value is not None}
        document = to_document(
            messages, system=heading.system, keep_thinking=with_thinking, metadata=metadata, rows=rows
        )
        print_json(terminal, json.loads(document))
        return Exit.DONE
    first = (system(heading.system),) if heading.system else ()
    exported = export_messages((*first, *messages), arguments.format, thinking=with_thinking, rows=rows)
    print_json(terminal, exported)
    return Exit.DONE


# --- rename and rm ----------------------------------------------------------------------------------------------------


def _rename(store: DatabaseStore, arguments: Namespace, terminal: Terminal) -> int:
    if len(arguments.words) != 2:
        raise ConfigError("rename takes two names. Write `asides history rename NAME NEW`.")
    name, new = arguments.words[0], arguments.words[1].strip()
    if store.about(name) is None:
        raise _build_name_error(name, store)
    store.rename(name, new)
    terminal.print_note(f"({show_name(name)} is called {show_name(new)} now)")
    return Exit.DONE


def _remove(store: DatabaseStore, arguments: Namespace, terminal: Terminal) -> int:
    if arguments.all == bool(arguments.words):
        raise ConfigError("rm deletes what you name. Write `asides history rm NAME …`, or --all.")
    names = store.names() if arguments.all else tuple(dict.fromkeys(arguments.words))
    for name in names:
        if store.about(name) is None:
            raise _build_name_error(name, store)
    is_person = sys.stdin is not None and sys.stdin.isatty()
    if not arguments.yes and names:
        listed = ", ".join(map(show_name, names[:5])) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
        if is_person:
            shared = f" from {store!r}, which others use too" if store.is_shared else ""
            terminal.print_info(f"delete {listed}{shared}? [y]es, [n]o")
            if not _confirm():
                terminal.print_info("nothing was deleted.")
                return Exit.DONE
        elif arguments.all:
            raise ConfigError("--all deletes every conversation, and there is no terminal to confirm it. Add --yes.")
    deleted = sum(store.delete(name) for name in names)
    terminal.print_note(f"({deleted} deleted)")
    return Exit.DONE


def _confirm() -> bool:
    with suppress(EOFError):
        return input().strip().lower() in ("y", "yes")
    return False


# --- names and lines --------------------------------------------------------------------------------------------------


def _load(store: DatabaseStore, arguments: Namespace) -> ConversationSnapshot:
    """The conversation that is named; without a name, the last one."""
    if len(arguments.words) > 1:
        raise ConfigError(f"{arguments.action} takes one name. Put a name with blanks in quotes.")
    names = arguments.words or store.names()[:1]
    if not names:
        raise ConfigError("no conversation is saved. Save one with `--conversation NAME` of ask or chat.")
    saved = store.load(names[0])
    if saved is None:
        raise _build_name_error(names[0], store)
    return saved


def _build_name_error(name: str, store: DatabaseStore) -> ConfigError:
    near = find_near_name(name, store.names())
    hint = "`asides history` lists them." if near is None else f"did you mean {show_name(near)}?"
    return ConfigError(f"no conversation is called {name!r}; {hint}")


def _to_line(text: str) -> str:
    return escape_controls(" ".join(text.split()))
