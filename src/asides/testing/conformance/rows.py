"""What a row says of itself: that it reads, and that what it declares of its models does not contradict itself.

Not here: whether the host agrees, which only its documents and its answers can tell.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from asides.providers.provider import ModelRule
from asides.testing.conformance.case import Case
from asides.testing.conformance.report import NotHere, expect
from asides.wire.inline_tags.grammars import rules_for

_A_HOST = ("http", "https")


def the_row_reads(case: Case) -> None:
    """The row has a name that can be written, an address that is one, and tags that exist."""
    row = case.row
    expect(
        bool(row.name) and row.name == row.name.strip().lower() and not set(row.name) & set(": /?"),
        expected="a name in lower case, without ':', '/', '?' and blanks",
        came=repr(row.name),
        to_do="name the row as people are to write it in front of a model: my-host.",
    )
    address = urlsplit(row.base_url)
    expect(
        address.scheme in _A_HOST and bool(address.netloc) and address.username is None,
        expected="a base_url that is a web address, without a user name",
        came=row.base_url if address.username is None else "one with a user name",
        to_do='write base_url="https://host/path", or "" where only the user knows it.',
    )
    for tags in (row.quirks.tags, *(rule.tags or () for rule in row.models)):
        try:
            rules_for(tags)
        except ValueError as problem:
            expect(False, expected="tags that exist", came=str(problem), to_do="see docs/inline-tags.md.")


def the_capability_is_declared(case: Case) -> None:
    """The row says of its models whether they think, and nothing that contradicts that."""
    for rule in case.row.models:
        for told in _contradictions(rule):
            expect(
                False,
                expected=f"a rule for {rule.models!r} that does not contradict itself",
                came=told,
                to_do="mend the ModelRule: what is not known is left out.",
            )
    declared = case.row.capabilities(case.model)
    if declared.thinking == "unknown":
        raise NotHere(
            f"nothing is declared of {case.model}; a ModelRule(models=…, thinking=…) lets contradictions be found "
            "before a byte is sent"
        )
    expect(
        declared.can_stop is not (declared.thinking == "always"),
        expected="a model that always thinks not to be one that can stop",
        came=f"thinking {declared.thinking!r}, can_stop {declared.can_stop}",
        to_do="see Provider.capabilities.",
    )


def _contradictions(rule: ModelRule) -> list[str]:
    found: list[str] = []
    if rule.thinking == "never" and (rule.efforts or rule.budget or rule.default == "on"):
        found.append("thinking is 'never', and there are efforts, a budget or a default 'on'")
    if rule.thinking == "always" and rule.default == "off":
        found.append("thinking is 'always', and the default is 'off'")
    if rule.budget is not None and rule.budget[1] is not None and rule.budget[0] > rule.budget[1]:
        found.append(f"the least budget, {rule.budget[0]}, is above the most, {rule.budget[1]}")
    strange = [sent for _, sent in rule.effort_map if rule.efforts is not None and sent not in rule.efforts]
    if strange:
        found.append(f"effort_map sends {strange[0]!r}, which is not among the efforts")
    return found
