"""What all requests of a gateway share: the relay, its transport, its stores. `Service(settings)`.

Not here: HTTP (web_app, relay_handler), and processes (run_gateway).
"""

from __future__ import annotations

from asides.flows.build_call import CallBuilder
from asides.gateway.gateway_settings import GatewaySettings
from asides.options import Options
from asides.relay.observer import RelayObserver
from asides.relay.relay import Relay
from asides.relay.relay_config import RelayConfig
from asides.relay.relay_request import RelayRequest
from asides.relay.vault.open_vault import OpenedVault, open_vault
from asides.settings import Settings
from asides.transports.aiohttp import AiohttpTransport
from asides.transports.protocols import AsyncTransport
from asides.transports.relay_stream import AsyncRelayStream

VAULT_FILE = "vault.db"


class Service:
    """The parts that requests share. One per process."""

    def __init__(
        self,
        settings: GatewaySettings,
        call_settings: Settings | None = None,
        *,
        transport: AsyncTransport | None = None,
    ) -> None:
        """`call_settings`: routes, aliases, rows and defaults; None: those of asides.toml and the environment."""
        self.settings = settings
        self.transport: AsyncTransport = AiohttpTransport() if transport is None else transport
        self.vault = _open_vault(settings)
        self.use(call_settings)

    def use(self, call_settings: Settings | None) -> None:
        """Use these settings for the requests that begin from now on."""
        self.builder = CallBuilder(Options(), settings=call_settings)
        config = RelayConfig(
            sink="gateway",
            thinking_field=self.settings.thinking_field,
            keys=self.vault.keys,
            state_mode=self.vault.mode,
            lists_home=False,
            fallback_model=self.builder.settings.model or "",
        )
        self.relay = Relay(self.builder, config)

    def begin(self, request: RelayRequest, observer: RelayObserver | None = None) -> AsyncRelayStream:
        """Begin a relayed request. Nothing is sent yet."""
        return AsyncRelayStream(self.relay.begin(request, observer), self.transport, self.vault.store)

    async def close(self) -> None:
        """Close the connections to providers, and the stores."""
        await self.transport.close()
        self.vault.close()


def _open_vault(settings: GatewaySettings) -> OpenedVault:
    if settings.state_mode == "store" and settings.folder is not None:
        return open_vault("store", settings.folder / VAULT_FILE)
    return open_vault("memory" if settings.state_mode == "store" else settings.state_mode)
