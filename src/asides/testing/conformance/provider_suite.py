"""The suite as a class of tests, for pytest and for unittest, neither of which is imported: `ProviderSuite`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import ClassVar
from unittest import SkipTest

from asides.dialects.dialect import Dialect
from asides.providers.provider import Provider
from asides.testing.conformance.case import Example
from asides.testing.conformance.suite import CHECKS, NETWORK, checks, describe


class ProviderSuite:
    """Every check as a test. A subclass says whose:

        class TestMine(asides.testing.conformance.ProviderSuite):
            provider = mine

    The attributes are the arguments of `examine`. Checks that have nothing to look at are skipped, with the reason.
    With unittest, name `unittest.TestCase` as a second base.
    """

    provider: ClassVar[Provider]
    model: ClassVar[str | None] = None
    dialect: ClassVar[Dialect | str | None] = None
    examples: ClassVar[Iterable[Example]] = ()
    network: ClassVar[bool] = True
    quick: ClassVar[bool] = False
    skip: ClassVar[Collection[str]] = ()

    @classmethod
    def hold(cls, name: str) -> None:
        """Hold the provider to the check of this name. Raises `Nonconformance`, or `unittest.SkipTest`."""
        __tracebackhide__ = True
        if not hasattr(cls, "provider"):
            raise TypeError(f"{cls.__name__} names no provider. To do: write `provider = …` in it.")
        if name in cls.skip or (name in NETWORK and not cls.network):
            raise SkipTest(f"{cls.__name__} leaves {name} out")
        made = checks(
            cls.provider, model=cls.model, dialect=cls.dialect, examples=cls.examples, quick=cls.quick, skip=cls.skip
        )
        next(check for check in made if check.name == name)()


def _test(name: str) -> Callable[[ProviderSuite], None]:
    def test(self: ProviderSuite) -> None:
        __tracebackhide__ = True
        self.hold(name)

    test.__name__ = f"test_{name}"
    test.__qualname__ = f"ProviderSuite.test_{name}"
    test.__doc__ = describe(name)
    return test


for _name in CHECKS:
    setattr(ProviderSuite, f"test_{_name}", _test(_name))
