"""`toolcrib token`: makes, lists and revokes the tokens that clients of the HTTP gateway need."""

from pathlib import Path
from typing import Annotated

import typer

from toolcrib.cli.output import open_console, print_json

File = Annotated[Path | None, typer.Option("--file", help="The file of tokens; the usual one if not given.")]


def build_app() -> typer.Typer:
    """The three commands."""
    app = typer.Typer(
        help="Tokens of the HTTP gateway's clients.", no_args_is_help=True, pretty_exceptions_enable=False
    )
    app.command("create")(create)
    app.command("list")(list_tokens)
    app.command("revoke")(revoke)
    return app


def create(
    name: Annotated[str, typer.Argument(help="Whose token it is.")],
    profile: Annotated[str, typer.Option(help="The profile that it grants.")] = "default",
    days: Annotated[int | None, typer.Option(min=1, help="Days until it expires; never if not given.")] = 90,
    file: File = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Makes a token and shows it, this one time.

    Example: toolcrib token create laptop --profile default --days 30
    """
    from toolcrib.gateway.auth import TokenFile

    secret, entry = TokenFile(file).create(name, profile=profile, days=days)
    if json:
        print_json({"token": secret, "name": entry.name, "profile": entry.profile, "expires": entry.expires})
        return
    typer.echo(secret)
    typer.echo("Keep it: it is shown only now, and only its hash is stored.", err=True)


def list_tokens(file: File = None, json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Lists the tokens, without their secrets.

    Example: toolcrib token list --json
    """
    from toolcrib.gateway.auth import TokenFile

    entries = TokenFile(file).read()
    if json:
        print_json([{"name": item.name, "profile": item.profile, "expires": item.expires} for item in entries])
        return
    console = open_console()
    for item in entries:
        console.print(f"{item.name}  {item.profile}  {item.shown_expiry}", markup=False)


def revoke(name: Annotated[str, typer.Argument(help="Whose token.")], file: File = None) -> None:
    """Revokes a token; a running gateway refuses it from the next request on.

    Example: toolcrib token revoke laptop
    """
    from toolcrib.gateway.auth import TokenFile

    if not TokenFile(file).revoke(name):
        typer.echo(f"There is no token `{name}`.", err=True)
        raise typer.Exit(1)
