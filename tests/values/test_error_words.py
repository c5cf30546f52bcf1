"""Words of errors: the name that was meant, and the type of a value."""

from __future__ import annotations

from asides.values.error_words import describe_type, find_near_name, find_near_names, suggest_name

_KNOWN = ("temperature", "thinking", "top_p")


def test_the_nearest_name_is_suggested_and_a_far_one_is_not() -> None:
    assert find_near_name("temprature", _KNOWN) == "temperature"
    assert find_near_name("zebra", _KNOWN) is None
    assert find_near_name("", _KNOWN) is None
    assert suggest_name("thinkin", _KNOWN, "otherwise") == "did you mean thinking?"
    assert suggest_name("zebra", _KNOWN, "otherwise") == "otherwise"


def test_several_names_come_with_the_nearest_first() -> None:
    names = ["other", "set_weather", "get_weather2"]
    assert find_near_names("get_weather", names, most=3) == ["get_weather2", "set_weather"]


def test_a_higher_cutoff_wants_more_likeness() -> None:
    assert find_near_name("promt", ("prompt",), cutoff=0.8) == "prompt"
    assert find_near_name("pro", ("prompt",), cutoff=0.8) is None


def test_a_type_has_its_article() -> None:
    values: tuple[object, ...] = (None, 5, "a", {}, [])
    assert [describe_type(value) for value in values] == ["None", "an int", "a str", "a dict", "a list"]
