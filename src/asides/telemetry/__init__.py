"""OpenTelemetry: spans and metrics of calls, agents, tools and gateways. `instrument()` turns it on.

Nothing of it is loaded before that, and flows pay one comparison. Not here: the figures for Prometheus
(gateway/metrics).
"""
