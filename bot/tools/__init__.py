"""What the service can do, as tools: defined once, for a language model and for other programs over MCP."""
