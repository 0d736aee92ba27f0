"""Requests as a client sends them: a message that is exactly that is read in one go, and a call down to what runs.

Most messages are calls of tools, written without blanks by an encoder. The kernel reads those; whatever else comes is
read by the Python beside it, with the same outcome. What neither takes is no plain request, or no good one, and is read
part by part by whoever says what is wrong with it.
"""

from toolcrib.bridge import TOOL_CALL, Invocation, plain_invocation
from toolcrib.definitions import JsonObject
from toolcrib.kernel import kernel
from toolcrib.limits import ARGUMENTS_MAX_BYTES, ARGUMENTS_MAX_DEPTH
from toolcrib.sources.json_rpc import ID_MAX_CHARS, Identifier, read_plain

CALL = "tools/call"


def read_request(data: bytes) -> tuple[Identifier, str, JsonObject, Invocation | None] | None:
    """Id, method and parameters of a plain request, and of the usual call what runs; nothing for any other message."""
    if kernel is not None:
        call = kernel.read_call(data, TOOL_CALL, ID_MAX_CHARS, ARGUMENTS_MAX_DEPTH, ARGUMENTS_MAX_BYTES)
        if call is not None:
            identifier, params, name, arguments, encoded, bridged = call
            route = "bridge" if bridged else "direct"
            return identifier, CALL, params, Invocation(name=name, arguments=arguments, route=route, encoded=encoded)
    plain = read_plain(data)
    if plain is None:
        return None
    identifier, method, params = plain
    return identifier, method, params, invocation_of(method, params)


def invocation_of(method: str, params: JsonObject) -> Invocation | None:
    """What runs, if a request is a usual call."""
    name = params.get("name") if method == CALL else None
    return plain_invocation(name, params.get("arguments")) if isinstance(name, str) and name else None
