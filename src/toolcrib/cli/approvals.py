"""`toolcrib approvals`: calls that wait for somebody's agreement because the client could not ask."""

import sys
import time
from typing import TYPE_CHECKING, Annotated

import typer

from toolcrib.cli.output import open_console, print_json

if TYPE_CHECKING:
    from toolcrib.gateway.desk import ApprovalDesk, Waiting

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Number = Annotated[str, typer.Argument(metavar="ID", help="The id that the refusal named.")]


def build_app() -> typer.Typer:
    """The three commands."""
    app = typer.Typer(help="Calls that wait for your agreement.", no_args_is_help=True, pretty_exceptions_enable=False)
    app.command("list", short_help="The calls that wait, and whose they are.")(list_waiting)
    app.command("grant", short_help="Agree to one call, as it stands.")(grant)
    app.command("refuse", short_help="Take a call off the list.")(refuse)
    return app


def list_waiting(json: Json = False) -> None:
    """Lists the calls that wait, with whose they are and their arguments.

    Example: toolcrib approvals list
    """
    from toolcrib.gateway.desk import ApprovalDesk

    waiting = ApprovalDesk().waiting()
    if json:
        print_json([_fields(item) for item in waiting])
        return
    console = open_console()
    if not waiting:
        console.print("No call waits for agreement.")
    for item in waiting:
        console.print(_shown(item), markup=False, highlight=False, soft_wrap=True)


def grant(number: Number, yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask again.")] = False) -> None:
    """Agrees to one call: the next one with exactly these arguments runs, once.

    Example: toolcrib approvals grant 1f0c2d9a
    """
    desk, item = _find(number)
    typer.echo(_shown(item))
    if not yes:
        if not sys.stdin.isatty():
            typer.echo("toolcrib: There is no terminal to ask on: read the call above and give --yes.", err=True)
            raise typer.Exit(2)
        typer.confirm("Let it run once?", abort=True)
    if not desk.grant(item):
        raise _gone(number)
    typer.echo("Granted: make the call again.")


def refuse(number: Number) -> None:
    """Takes a call off the list.

    Example: toolcrib approvals refuse 1f0c2d9a
    """
    desk, item = _find(number)
    if not desk.refuse(item):
        raise _gone(number)
    typer.echo(f"Refused: {item.tool}.")


def _find(number: str) -> "tuple[ApprovalDesk, Waiting]":
    from toolcrib.gateway.desk import ApprovalDesk

    desk = ApprovalDesk()
    item = desk.find(number)
    if item is None:
        raise _gone(number)
    return desk, item


def _gone(number: str) -> Exception:
    from toolcrib.errors import ConfigError

    return ConfigError(f"No call `{number}` waits: `toolcrib approvals list` shows those that do.")


def _shown(item: "Waiting") -> str:
    from toolcrib.gateway.desk import show_time

    left = show_time(max(0, item.expires - int(time.time())))
    return f"{item.id}  {item.tool} of {item.toolset}, for {item.principal}, {left} left\n  with {item.arguments}"


def _fields(item: "Waiting") -> dict[str, str | int]:
    return {
        "id": item.id,
        "tool": item.tool,
        "toolset": item.toolset,
        "principal": item.principal,
        "arguments": item.arguments,
        "rule": item.rule,
        "expires": item.expires,
    }
