"""For tests: the offline stage (`Stage`, `Say`, …) and the conformance suite for providers (`examine`, …).

This package exports every name of `asides_stage.stage` and `asides_stage.conformance`. Importing it loads neither:
a name is loaded when it is first used.
"""

# Type checkers take any variable of this name for true; importing it would load the whole of `typing`.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from asides_stage.conformance import *  # noqa: F403 - its __all__ is the list of names
    from asides_stage.stage import *  # noqa: F403
else:
    _PACKAGES = ("asides_stage.stage", "asides_stage.conformance")

    def __getattr__(name):
        from importlib import import_module

        if name == "__all__":
            return sorted(exported for package in _PACKAGES for exported in import_module(package).__all__)
        if not name.startswith("_"):
            for package in map(import_module, _PACKAGES):
                if name in package.__all__:
                    value = globals()[name] = getattr(package, name)  # Python finds it here from now on.
                    return value
        raise AttributeError(f"module 'asides_stage' has no attribute {name!r}")

    def __dir__():
        return __getattr__("__all__")
