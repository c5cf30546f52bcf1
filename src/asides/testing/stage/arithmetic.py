"""Sums of two numbers, worked out in the open: the steps and the result. Not here: who asks, and how it is said."""

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
# More than two numbers, and dates: their first pair would be the wrong answer to what was asked.
_GOES_ON = re.compile(rf"[\s)]*(?:{_OPERATOR}|\^)\s*\(*\s*-?\d", re.IGNORECASE)
_CAME_FROM = re.compile(rf"[\d)]\s*(?:{_OPERATOR}|\^)[\s(]*$", re.IGNORECASE)


class Sum(msgspec.Struct, frozen=True):
    """A sum, the way to its result, and the result in words."""

    question: str
    steps: tuple[str, ...]
    result: str
    """The whole sentence: "23 × 47 = 1081"."""


def find_sum(text: str) -> Sum | None:
    """The "a op b" of a text, worked out; None when there is none, or more than that."""
    found = _SUM.search(text)
    if found is None or _GOES_ON.match(text, found.end()) or _CAME_FROM.search(text[: found.start()]):
        return None
    left, right = Fraction(found[1]), Fraction(found[3])
    operator = next(sign for sign, spelling in _OPERATORS.items() if re.fullmatch(spelling, found[2], re.IGNORECASE))
    question = f"{_spell(left)} {operator} {_in_brackets(right)}"
    steps, result = _WAYS[operator](left, right)
    return Sum(question, tuple(steps), f"{question} = {result}" if result else f"{question} is undefined")


def _add(left: Fraction, right: Fraction) -> tuple[list[str], str]:
    total = left + right
    tens = _tens_of(right)
    if left < 0 or right < 0 or len(tens) < 2:
        return [f"Adding {_spell(right)} to {_spell(left)} gives {_spell(total)}."], _spell(total)
    steps: list[str] = []
    sofar = left
    for part in tens:
        steps.append(f"{_spell(sofar)} + {_spell(part)} = {_spell(sofar + part)}.")
        sofar += part
    return steps, _spell(total)


def _subtract(left: Fraction, right: Fraction) -> tuple[list[str], str]:
    rest = left - right
    step = f"Taking {_spell(right)} from {_spell(left)} leaves {_spell(rest)}."
    return [step, f"Check: {_spell(rest)} + {_in_brackets(right)} = {_spell(left)}."], _spell(rest)


def _multiply(left: Fraction, right: Fraction) -> tuple[list[str], str]:
    product = left * right
    tens = _tens_of(right)
    if right < 0 or len(tens) < 2:
        return [f"{_spell(left)} times {_spell(right)} is {_spell(product)}."], _spell(product)
    steps = [f"Split {_spell(right)} into {' + '.join(map(_spell, tens))}."]
    steps += [f"{_spell(left)} × {_spell(part)} = {_spell(left * part)}." for part in tens]
    steps.append(f"{' + '.join(_in_brackets(left * part) for part in tens)} = {_spell(product)}.")
    return steps, _spell(product)


def _divide(left: Fraction, right: Fraction) -> tuple[list[str], str]:
    if right == 0:
        return ["Nothing times 0 gives anything but 0, so there is no such number."], ""
    quotient = left / right
    if quotient.denominator == 1 or _is_short(quotient):
        step = f"{_spell(quotient)} × {_in_brackets(right)} = {_spell(left)}, so it divides evenly."
        return [step], _spell(quotient)
    if left.denominator == right.denominator == 1 and left > 0 and right > 0:
        whole, rest = divmod(left.numerator, right.numerator)
        steps = [f"{right} goes into {left} {whole} times, which makes {whole * right}.", f"That leaves {rest}."]
        return steps, f"{whole} remainder {rest} (about {float(quotient):.6g})"
    return ["It does not divide evenly."], f"about {float(quotient):.6g}"


_WAYS = {"+": _add, "-": _subtract, "×": _multiply, "÷": _divide}


def _tens_of(number: Fraction) -> list[Fraction]:
    """A whole number as the sum of its digits' places: 47 = 40 + 7. Nothing for any other number."""
    if number.denominator != 1:
        return []
    digits = str(abs(number.numerator))
    parts = [int(digit) * 10 ** (len(digits) - place) for place, digit in enumerate(digits, 1)]
    return [Fraction(part) for part in parts if part]


def _is_short(number: Fraction) -> bool:
    return 10**12 % number.denominator == 0


def _spell(number: Fraction) -> str:
    if number.denominator == 1:
        return str(number.numerator)
    if _is_short(number):
        scaled = number * 10**12
        whole, rest = divmod(abs(scaled.numerator), 10**12)
        return f"{'-' if number < 0 else ''}{whole}.{rest:012d}".rstrip("0")
    return f"{float(number):.6g}"


def _in_brackets(number: Fraction) -> str:
    return f"({_spell(number)})" if number < 0 else _spell(number)
