"""The gateway: an HTTP service over the relay, with a page to see models think. `asides serve` runs it, and `app` makes
an ASGI application of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from asides.options import Options
    from asides.settings import Settings
    from asides_gateway.gateway_settings import GatewaySettings
    from asides_gateway.mounted import MountedGateway

__all__ = ["app"]


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
