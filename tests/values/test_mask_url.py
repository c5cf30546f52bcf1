"""URLs of servers are shown without their passwords, however they are written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asides.values.mask_url import mask_url


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://db.example/asides", "postgresql://db.example/asides"),
        ("postgresql://me@db.example:5433/asides", "postgresql://me@db.example:5433/asides"),
        ("postgresql://me:canary@db.example/asides", "postgresql://me:***@db.example/asides"),
        ("postgresql://me:canary@a:1,b:2/asides?sslmode=require", "postgresql://me:***@a:1,b:2/asides?sslmode=require"),
        (
            "postgresql://db/asides?user=me&password=canary&sslpassword=canary&sslmode=require",
            "postgresql://db/asides?user=me&password=***&sslpassword=***&sslmode=require",
        ),
        ("postgresql://db/asides?p%61ssword=canary", "postgresql://db/asides?p%61ssword=***"),
        ("postgresql://me:ca/na?ry@ca@db/asides", "postgresql://me:***@db/asides"),
        ("redis://:canary@cache:6379/0", "redis://:***@cache:6379/0"),
        ("rediss://me:canary@cache", "rediss://me:***@cache"),
        ("host=db password=canary dbname=x", "host=db password=*** dbname=x"),
        ("host=db password = 'ca nary' dbname=x", "host=db password = *** dbname=x"),
        ("", ""),
        ("conversations.db", "conversations.db"),
    ],
)
def test_a_password_is_not_shown(url: str, shown: str) -> None:
    assert mask_url(url) == shown
    assert mask_url(shown) == shown


@given(password=st.text("aZ9:/?#@&=%+ .'é", max_size=12))
def test_law_no_password_before_the_host_is_shown(password: str) -> None:
    assert "canary" not in mask_url(f"postgresql://me:canary{password}@db.example/asides")
    assert "canary" not in mask_url(f"postgresql://me:{password}canary@db.example/asides?sslmode=require")
