"""The MCP gateway: any client in front, any servers behind."""
