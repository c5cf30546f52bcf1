"""Tools of MCP servers, for an agent to run: over stdio or streamable HTTP, by the official client (extra `[mcp]`).

Not here: the agent that calls them, and a server of our own. The official package loads when a server is opened.
"""
