"""OpenTelemetry: spans and metrics of calls, agents, tools and gateways. `instrument()` turns it on.

Until then none of it is loaded, and it costs each flow one comparison.
"""
