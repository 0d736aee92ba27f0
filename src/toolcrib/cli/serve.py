"""`toolcrib serve`: the gateway, on standard input and output or over HTTP."""

from pathlib import Path
from typing import Annotated

import typer


def serve(
    config: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Configuration file: ours, or an MCP client's own with `mcpServers`."),
    ] = None,
    http: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT", help="Address to serve streamable HTTP on; without it, standard input and output."
        ),
    ] = None,
    profile: Annotated[
        str, typer.Option(metavar="NAME", help="What clients may do: a profile of the configuration.")
    ] = "default",
    allow_unauthenticated: Annotated[
        bool, typer.Option("--allow-unauthenticated", help="Serve loopback without tokens.")
    ] = False,
    public: Annotated[
        bool, typer.Option("--public", help="Allow an address that other machines can reach; put TLS in front.")
    ] = False,
    console: Annotated[
        bool,
        typer.Option("--console", help="Serve the web console too: on the address of --http, else on a loopback port."),
    ] = False,
    console_at: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Serve the web console on an address of its own.")
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log what the servers say.")] = False,
) -> None:
    """Serves MCP clients: every tool of every server, for the price of three.

    Example: toolcrib serve --config toolcrib.yaml --http 127.0.0.1:8765 --console
    """
    import asyncio
    import sys
    from functools import partial

    from toolcrib.gateway.run import Options, run_gateway, use_fast_loop

    options = Options(
        config=config,
        http=http,
        profile=profile,
        allow_unauthenticated=allow_unauthenticated,
        public=public,
        console_at=console_at,
        verbose=verbose,
    )
    open_annex = None
    if console or console_at is not None:
        from toolcrib.console.app import Console

        # A link that signs in is for somebody who reads it now: what is no terminal may be a log.
        open_annex = partial(Console, tell=sys.stderr.write if sys.stderr.isatty() else None)
    with asyncio.Runner(loop_factory=use_fast_loop()) as runner:
        runner.run(run_gateway(options, open_annex))
