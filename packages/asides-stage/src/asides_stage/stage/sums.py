"""Sums of two numbers, solved step by step, for the stage's actor."""

from __future__ import annotations

import re
from fractions import Fraction

import msgspec

_NUMBER = r"-?\d{1,15}(?:\.\d{1,6})?"
_OPERATORS = {
    "+": r"\+|plus",
    "-": r"-|−|–|minus",
    "×": r"\*|×|·|x|times|multiplied\s+by",
    "÷": r"/|÷|divided\s+by|over",
}
_OPERATOR = "|".join(_OPERATORS.values())
_SUM = re.compile(rf"(?<![\w.])({_NUMBER})\s*({_OPERATOR})\s*({_NUMBER})(?!\.?\w)", re.IGNORECASE)
# More than two numbers, or a date: the first pair alone would be the wrong answer.
_GOES_ON = re.compile(rf"[\s)]*(?:{_OPERATOR}|\^)[\s(]*-?\d", re.IGNORECASE)
_CAME_FROM = re.compile(rf"[\d)]\s*(?:{_OPERATOR}|\^)[\s(]*$", re.IGNORECASE)


class Sum(msgspec.Struct, frozen=True):
    """A sum, the steps to its result, and the result."""

    question: str
    steps: tuple[str, ...]
    result: str
    """The whole sentence: "23 × 47 = 1081"."""


def find_sum(text: str) -> Sum | None:
    """Solve the "a op b" in a text; return None if there is none, or a longer expression."""
    found = _SUM.search(text)
    if found is None or _GOES_ON.match(text, found.end()) or _CAME_FROM.search(text[: found.start()]):
        return None
    left, right = Fraction(found[1]), Fraction(found[3])
    operator = next(sign for sign, pattern in _OPERATORS.items() if re.fullmatch(pattern, found[2], re.IGNORECASE))
    question = f"{_format(left)} {operator} {_in_brackets(right)}"
    steps, result = _OPERATIONS[operator](left, right)
    return Sum(question, tuple(steps), f"{question} = {result}" if result else f"{question} is undefined")


def _add(left: Fraction, right: Fraction) -> tuple[list[str], str]:
    total = left + right
    tens = _split_digits(right)
    if left < 0 or right < 0 or len(tens) < 2:
        return [f"Adding {_format(right)} to {_format(left)} gives {_format(total)}."], _format(total)
    steps: list[str] = []
    subtotal = left
    for part in tens:
        steps.append(f"{_format(subtotal)} + {_format(part)} = {_format(subtotal + part)}.")
        subtotal += part
    return steps, _format(total)


def _subtract(left: Fraction, right: Fraction) -> tuple[list[str], str]:
    rest = left - right
    step = f"Taking {_format(right)} from {_format(left)} leaves {_format(rest)}."
    return [step, f"Check: {_format(rest)} + {_in_brackets(right)} = {_format(left)}."], _format(rest)


def _multiply(left: Fraction, right: Fraction) -> tuple[list[str], str]:
    product = left * right
    tens = _split_digits(right)
    if right < 0 or len(tens) < 2:
        return [f"{_format(left)} times {_format(right)} is {_format(product)}."], _format(product)
    steps = [f"Split {_format(right)} into {' + '.join(map(_format, tens))}."]
    steps += [f"{_format(left)} × {_format(part)} = {_format(left * part)}." for part in tens]
    steps.append(f"{' + '.join(_in_brackets(left * part) for part in tens)} = {_format(product)}.")
    return steps, _format(product)


def _divide(left: Fraction, right: Fraction) -> tuple[list[str], str]:
    if right == 0:
        return ["Nothing times 0 gives anything but 0, so there is no such number."], ""
    quotient = left / right
    if quotient.denominator == 1 or _is_short(quotient):
        step = f"{_format(quotient)} × {_in_brackets(right)} = {_format(left)}, so it divides evenly."
        return [step], _format(quotient)
    if left.denominator == right.denominator == 1 and left > 0 and right > 0:
        whole, rest = divmod(left.numerator, right.numerator)
        steps = [f"{right} goes into {left} {whole} times, which makes {whole * right}.", f"That leaves {rest}."]
        return steps, f"{whole} remainder {rest} (about {float(quotient):.6g})"
    return ["It does not divide evenly."], f"about {float(quotient):.6g}"


_OPERATIONS = {"+": _add, "-": _subtract, "×": _multiply, "÷": _divide}


def _split_digits(number: Fraction) -> list[Fraction]:
    """Split a whole number by its digits: 47 = 40 + 7. Return [] for any other number."""
    if number.denominator != 1:
        return []
    digits = str(abs(number.numerator))
    parts = [int(digit) * 10 ** (len(digits) - place) for place, digit in enumerate(digits, 1)]
    return [Fraction(part) for part in parts if part]


def _is_short(number: Fraction) -> bool:
    return 10**12 % number.denominator == 0


def _format(number: Fraction) -> str:
    if number.denominator == 1:
        return str(number.numerator)
    if _is_short(number):
        scaled = number * 10**12
        whole, rest = divmod(abs(scaled.numerator), 10**12)
        return f"{'-' if number < 0 else ''}{whole}.{rest:012d}".rstrip("0")
    return f"{float(number):.6g}"


def _in_brackets(number: Fraction) -> str:
    return f"({_format(number)})" if number < 0 else _format(number)
