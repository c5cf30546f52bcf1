"""The gateway: an HTTP service over the relay, with a page to see models think. `asides serve` runs it; `app` makes an
ASGI application of it, and `Gateway` runs it in a thread of a program. A name is loaded when it is first used.
"""

from __future__ import annotations

# Type checkers take any variable of this name for true; importing it would load the whole of `typing`.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from asides.options import Options
    from asides.settings import Settings
    from asides_gateway.embedded import Gateway as Gateway
    from asides_gateway.gateway_settings import GatewaySettings as GatewaySettings
    from asides_gateway.mounted import MountedGateway

__all__ = ["Gateway", "GatewaySettings", "app"]

_MODULES = {"Gateway": "embedded", "GatewaySettings": "gateway_settings"}


def app(
    settings: GatewaySettings | None = None,
    call_settings: Settings | None = None,
    *,
    options: Options | None = None,
) -> MountedGateway:
    """A gateway as an ASGI application, to mount in one of FastAPI or Starlette, or to serve with any ASGI server.

    `settings`: keys, stores and limits; None: the defaults, with everything in memory. `call_settings`: routes,
    aliases, rows and defaults; None: those of asides.toml and the environment. `options`: of every call to a provider.
    """
    from asides_gateway.mounted import MountedGateway

    return MountedGateway(settings, call_settings, options=options)


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name not in _MODULES:
        raise AttributeError(f"module 'asides_gateway' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"asides_gateway.{_MODULES[name]}"), name)
    return value


def __dir__() -> list[str]:
    return __all__
