"""Every error and every outcome has its exit code."""

from __future__ import annotations

import pytest

from asides.cli.exit_codes import code_for_error, code_for_outcome
from asides.values import errors
from asides.values.reply import Reply


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.ConfigError("x"), 2),
        (errors.InvalidThinking("x"), 2),
        (errors.MissingKey("x", ()), 3),
        (errors.AuthError("x"), 3),
        (errors.RateLimited("x"), 4),
        (errors.Overloaded("x"), 4),
        (errors.ConnectTimeout("x"), 5),
        (errors.IdleTimeout("x"), 5),
        (errors.ConnectionLost("x"), 5),
        (errors.BadRequest("x"), 6),
        (errors.ContextTooLong("x"), 6),
        (errors.NotFound("x"), 6),
        (errors.ProviderError("x"), 6),
        (errors.ProtocolError("x"), 6),
        (errors.NoAnswer("x", Reply()), 7),
        (errors.ContentFiltered("x"), 8),
        (errors.TooManyTurns("x"), 7),
        (ValueError("x"), 1),
    ],
)
def test_each_error_has_its_code(error: Exception, code: int) -> None:
    assert code_for_error(error) == code


def test_only_an_answer_and_tool_calls_are_success() -> None:
    assert [code_for_outcome("answered"), code_for_outcome("tool_calls")] == [0, 0]
    assert [code_for_outcome("starved"), code_for_outcome("unterminated")] == [7, 7]
    assert [code_for_outcome("refused"), code_for_outcome("filtered")] == [8, 8]
