"""Tools of MCP servers for an agent: over stdio or streamable HTTP, with the official client (extra `[mcp]`).

The official package is loaded when a server is opened.
"""
