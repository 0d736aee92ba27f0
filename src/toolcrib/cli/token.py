"""`toolcrib token`: makes, lists and revokes the tokens that clients of the HTTP gateway and its console need."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolcrib.cli.output import open_console, print_json

if TYPE_CHECKING:
    from toolcrib.definitions import JsonObject
    from toolcrib.gateway.auth import TokenEntry

File = Annotated[
    Path | None, typer.Option("--file", metavar="FILE", help="The file of tokens; the usual one if not given.")
]


def build_app() -> typer.Typer:
    """The three commands."""
    app = typer.Typer(
        help="Tokens of the HTTP gateway's clients, and of the console.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
    )
    app.command("create", short_help="Make a token, and show it this once.")(create)
    app.command("list", short_help="The tokens, without their secrets.")(list_tokens)
    app.command("revoke", short_help="Revoke a token, from the next request on.")(revoke)
    return app


def create(
    name: Annotated[str, typer.Argument(help="Whose token it is.")],
    profile: Annotated[str, typer.Option(metavar="NAME", help="The profile that it grants.")] = "default",
    days: Annotated[int, typer.Option(metavar="N", min=1, max=36_500, help="Days until it expires.")] = 90,
    console: Annotated[
        bool, typer.Option("--console", help="It opens the web console instead, and sees and decides for everybody.")
    ] = False,
    file: File = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Makes a token and shows it, this one time.

    Example: toolcrib token create laptop --profile default --days 30
    """
    from toolcrib.errors import ConfigError
    from toolcrib.gateway.auth import TokenFile

    if console and profile != "default":
        raise ConfigError("A token for the console has no profile: give --console or --profile, not both.")
    secret, entry = TokenFile(file).create(name, profile=profile, days=days, role="console" if console else "client")
    if json:
        print_json({"token": secret, **_fields(entry)})
        return
    typer.echo(secret)
    typer.echo(f"Keep it: it is shown only now, and only its hash is stored. It {entry.shown_expiry}.", err=True)


def list_tokens(file: File = None, json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Lists the tokens, without their secrets.

    Example: toolcrib token list --json
    """
    from toolcrib.gateway.auth import TokenFile

    entries = TokenFile(file).read()
    if json:
        print_json([_fields(item) for item in entries])
        return
    if not entries:
        typer.echo("There are no tokens: `toolcrib token create NAME` makes one.", err=True)
        return
    console = open_console()
    for item in entries:
        opens = "console" if item.role == "console" else item.profile
        console.print(f"{item.name}  {opens}  {item.shown_expiry}", markup=False, soft_wrap=True)


def revoke(name: Annotated[str, typer.Argument(help="Whose token.")], file: File = None) -> None:
    """Revokes a token; a running gateway refuses it from the next request on.

    Example: toolcrib token revoke laptop
    """
    from toolcrib.gateway.auth import TokenFile

    if not TokenFile(file).revoke(name):
        typer.echo(f"toolcrib: There is no token `{name}`: `toolcrib token list` shows those that there are.", err=True)
        raise typer.Exit(1)
    typer.echo(f"The token `{name}` is revoked: from the next request on it is refused.", err=True)


def _fields(entry: "TokenEntry") -> "JsonObject":
    return {"name": entry.name, "role": entry.role, "profile": entry.profile, "expires": entry.expires}
