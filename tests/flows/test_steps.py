"""`advance`: one flow moved on by hand, to its next step, its end or its error."""

from __future__ import annotations

import pytest

from asides.flows.steps import Done, Flow, Now, Sleep, advance


def measure() -> Flow[str]:
    """Waits for as long as the clock shows, and survives a lost connection."""
    seconds = yield Now()
    try:
        yield Sleep(seconds)
    except ConnectionError as problem:
        return f"lost: {problem}"
    return f"slept {seconds}"


def test_a_flow_gets_the_result_of_each_step_and_ends_with_its_own() -> None:
    flow = measure()
    assert advance(flow) == Now()
    assert advance(flow, 3.0) == Sleep(3.0)
    done = advance(flow)
    assert isinstance(done, Done)
    assert done.result == "slept 3.0"


def test_an_error_is_thrown_into_the_flow_which_may_catch_it() -> None:
    flow = measure()
    advance(flow)
    advance(flow, 3.0)
    done = advance(flow, error=ConnectionError("cut"))
    assert isinstance(done, Done)
    assert done.result == "lost: cut"


def test_an_error_that_the_flow_does_not_catch_comes_out_as_it_is() -> None:
    flow, problem = measure(), ValueError("no")
    advance(flow)
    with pytest.raises(ValueError, match="no") as caught:
        advance(flow, error=problem)
    assert caught.value is problem
