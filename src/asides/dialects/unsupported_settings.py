"""Settings that a dialect has no field for: each is dropped with a notice.

Not here: what a model refuses, which plan has seen to, and the fields of any dialect.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any, Literal

from asides.values.messages import OutputSchema, Prompt
from asides.values.notices import Notice


def report_unsupported(prompt: Prompt, *settings: str) -> list[Notice]:
    """A notice for each of these that was set."""
    return [
        Notice("setting_dropped", f"{setting} does not exist in this dialect", setting)
        for setting in settings
        if getattr(prompt, setting) is not None
    ]


def report_tool_settings(prompt: Prompt, *settings: str) -> list[Notice]:
    """A notice for each of these that was set: hosts refuse them where there is no tool to choose."""
    return [
        Notice("setting_dropped", f"{setting} means nothing without tools", setting)
        for setting in settings
        if getattr(prompt, setting) is not None
    ]


def select_sampling(prompt: Prompt, known: Container[str], notices: list[Notice]) -> dict[str, Any]:
    """The sampling settings that were set and are known, under our names."""
    given = prompt.sampling.given()
    notices += [
        Notice("setting_dropped", f"{name} does not exist in this dialect", name, "set", "nothing")
        for name in given
        if name not in known
    ]
    return {name: value for name, value in given.items() if name in known}


def report_output_not_sent(output: OutputSchema | Literal["json"]) -> Notice:
    """For a model that takes no schema, in a dialect that has no other word for JSON."""
    if isinstance(output, OutputSchema):
        code, asked, detail = "schema_not_sent", "json_schema", "this model takes no schema"
    else:
        code, asked, detail = "json_not_sent", "json_object", "JSON without a schema cannot be asked for here"
    return Notice(code, f"{detail}; say in the prompt what you want", "output", asked, "nothing")
