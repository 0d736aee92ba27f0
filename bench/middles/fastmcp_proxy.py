"""FastMCP's proxy: `python fastmcp_proxy.py stdio|PORT plain|search COMMAND ...`, as it is or with its search."""

import sys

from fastmcp.client.transports import StdioTransport  # pyright: ignore[reportMissingImports]
from fastmcp.server import create_proxy  # pyright: ignore[reportMissingImports]
from fastmcp.server.transforms.search.bm25 import BM25SearchTransform  # pyright: ignore[reportMissingImports]


def main() -> None:
    proxy = create_proxy(StdioTransport(sys.argv[3], sys.argv[4:]))
    if sys.argv[2] == "search":
        proxy.add_transform(BM25SearchTransform())
    if sys.argv[1] == "stdio":
        proxy.run(transport="stdio", show_banner=False)
    else:
        proxy.run(transport="http", host="127.0.0.1", port=int(sys.argv[1]), show_banner=False, log_level="error")


if __name__ == "__main__":
    main()
