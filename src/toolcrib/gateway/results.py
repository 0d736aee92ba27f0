"""Results of servers as bytes: looked at only as far as needed, and completed without being written again."""

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from toolcrib.sources.json_rpc import INTERNAL_ERROR, RpcError


class _Own(Struct, frozen=True):
    """The fields that a result may lack; one of the same name further inside is another."""

    resultType: Raw | UnsetType = UNSET
    ttlMs: Raw | UnsetType = UNSET


_OWN = msgspec.json.Decoder(_Own)


def require_object(result: bytes) -> bytes:
    """The result. Raises `RpcError` if it is none: every result is an object."""
    if not result.startswith(b"{"):
        raise RpcError(INTERNAL_ERROR, "The server answered with something that is no result.")
    return result


def with_type(result: bytes) -> bytes:
    """The result with the one field that every modern one has, if a server of the old era left it out."""
    if b'"resultType"' in result and (
        # Most say it first or last.
        result.startswith(b'{"resultType":')
        or result.endswith(b',"resultType":"complete"}')
        or _OWN.decode(result).resultType is not UNSET
    ):
        return result
    return _in_front(b'{"resultType":"complete",', result)


def with_lifetime(result: bytes) -> bytes:
    """The content of a resource, to be kept by nobody, unless its server says for how long."""
    if b'"ttlMs"' in result and _OWN.decode(result).ttlMs is not UNSET:
        return result
    return _in_front(b'{"ttlMs":0,"cacheScope":"private",', result)


def _in_front(fields: bytes, result: bytes) -> bytes:
    if result.startswith(b'{"'):
        return fields + result[1:]
    rest = result[1:].lstrip()
    return fields[:-1] + rest if rest.startswith(b"}") else fields + rest
