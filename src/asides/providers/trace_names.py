"""The names of providers in traces: those of the GenAI conventions of OpenTelemetry, where they have one."""

from __future__ import annotations

from functools import lru_cache

from asides.providers.provider import Provider

# The ends of the names of rows that are another endpoint of a host.
_ENDPOINTS = ("-openai", "-anthropic", "-responses", "-chat", "-mantle")
# Rows whose name the conventions spell in another way (registry of gen_ai.provider.name in
# opentelemetry-semantic-conventions 0.66b, 2026-11). All others have our name there, or none.
_NAMES = {
    "azure": "azure.ai.openai",
    "bedrock": "aws.bedrock",
    "google": "gcp.gemini",
    "mistral": "mistral_ai",
    "vertex": "gcp.vertex_ai",
    "watsonx": "ibm.watsonx.ai",
    "xai": "x_ai",
}


def name_for_traces(provider: Provider) -> str:
    """The provider as traces name it. A host with several endpoints is one provider."""
    return _find_name(provider.host or provider.name)


@lru_cache(maxsize=256)
def _find_name(name: str) -> str:
    host = name.partition("-")[0] if name.endswith(_ENDPOINTS) else name
    return _NAMES.get(host, host)
