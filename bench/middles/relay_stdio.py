"""The least that a relay over pipes can do: `python relay_stdio.py COMMAND ...` rewrites ids and passes bytes on."""

import asyncio
import sys

import msgspec
import uvloop
from msgspec import UNSET, Raw, UnsetType


class Envelope(msgspec.Struct, omit_defaults=True):
    """One message, its parts left as they are."""

    id: Raw | UnsetType = UNSET
    jsonrpc: str = ""
    method: str | UnsetType = UNSET
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


decode, encode = msgspec.json.Decoder(Envelope).decode, msgspec.json.encode


async def main() -> None:
    child = await asyncio.create_subprocess_exec(*sys.argv[1:], stdin=-1, stdout=-1)
    stdin, stdout = child.stdin, child.stdout
    assert stdin is not None and stdout is not None
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin.buffer)
    out, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, sys.stdout.buffer)
    ids: dict[int, Raw] = {}

    async def up() -> None:
        number = 0
        while line := await reader.readline():
            message = decode(line)
            if not isinstance(message.id, UnsetType):
                number += 1
                ids[number] = message.id
                message.id = Raw(str(number).encode())
            stdin.write(encode(message) + b"\n")
        stdin.close()

    async def down() -> None:
        while line := await stdout.readline():
            message = decode(line)
            if not isinstance(message.id, UnsetType):
                message.id = ids.pop(int(bytes(message.id)))
            out.write(encode(message) + b"\n")

    await asyncio.gather(up(), down())


if __name__ == "__main__":
    uvloop.run(main())
