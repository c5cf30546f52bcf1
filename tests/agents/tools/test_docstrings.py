"""Docstrings in each style: the first paragraph, and the description of each parameter."""

from __future__ import annotations

import inspect

import pytest

from asides.agents.tools.signatures import Docstring, read_docstring

GOOGLE = """The weather
    to come.

    For people: this is not said.

    Args:
        city (str, optional): Where: the name
            of a place.

            With its country.
        days: How far ahead.
        *rest: More of it.

    Returns:
        city: not a parameter
    """

NUMPY = """The weather to come.

    Parameters
    ----------
    city : str, optional
        Where: the name
        of a place.
    days, hours : int
        How far ahead.
    rest
        More of it.

    Returns
    -------
    city : str
        not a parameter
    """

SPHINX = """The weather to come.

    :param city: Where: the name
        of a place.
    :param int days: How far ahead.
    :keyword rest: More of it.
    :type city: str
    :returns: city: not a parameter
    """


@pytest.mark.parametrize(
    ("text", "parameters"),
    [
        (
            GOOGLE,
            {
                "city": "Where: the name of a place. With its country.",
                "days": "How far ahead.",
                "rest": "More of it.",
            },
        ),
        (
            NUMPY,
            {
                "city": "Where: the name of a place.",
                "days": "How far ahead.",
                "hours": "How far ahead.",
                "rest": "More of it.",
            },
        ),
        (SPHINX, {"city": "Where: the name of a place.", "days": "How far ahead.", "rest": "More of it."}),
    ],
    ids=["google", "numpy", "sphinx"],
)
def test_each_style_is_read(text: str, parameters: dict[str, str]) -> None:
    assert read_docstring(inspect.cleandoc(text)) == Docstring("The weather to come.", parameters)


@pytest.mark.parametrize(
    ("text", "summary"),
    [
        ("", ""),
        ("One line.", "One line."),
        ("Add.\n:param a: one", "Add."),
        ("Add.\nArgs:\n    a: one", "Add."),
        ("Add.\nParameters\n----------\na\n    one", "Add."),
        (":param a: one", ""),
        ("Note: words with a colon are words.\n\nMore.", "Note: words with a colon are words."),
        ("What it does: this\nand that.", "What it does: this and that."),
    ],
)
def test_the_first_paragraph_ends_where_something_else_begins(text: str, summary: str) -> None:
    assert read_docstring(text).summary == summary


def test_a_parameter_without_words_is_not_described() -> None:
    assert read_docstring("Add.\n\nArgs:\n    a:\n    b: two\n\n:param c:").parameters == {"b": "two"}


def test_what_only_looks_like_a_section_is_none() -> None:
    assert read_docstring("Add.\n\nThe args:\n    a: one").parameters == {}
    assert read_docstring("Add.\n\nArgs:\n").parameters == {}
