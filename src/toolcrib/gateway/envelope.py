"""What a modern request must say about itself, whatever transport it came by."""

from collections.abc import Mapping

from toolcrib.definitions import JsonObject
from toolcrib.sources.handshake import META_CAPABILITIES, META_VERSION, MODERN_VERSION
from toolcrib.sources.json_rpc import INVALID_PARAMS, UNSUPPORTED_VERSION, RpcError


def require_envelope(params: JsonObject, *, required: bool = True) -> bool:
    """Whether the request is a modern one. Raises `RpcError` if it is half of one, or of another revision."""
    meta = params.get("_meta")
    if meta is None and not required:
        return False
    keys = (META_VERSION, META_CAPABILITIES)
    present = [key for key in keys if isinstance(meta, Mapping) and key in meta]
    if META_VERSION not in present and not required:
        return False
    if not isinstance(meta, Mapping) or len(present) < len(keys):
        missing = ", ".join(f"`{key}`" for key in keys if key not in present)
        raise RpcError(INVALID_PARAMS, f"`params._meta` lacks {missing}.")
    version = meta[META_VERSION]
    if not isinstance(version, str) or not isinstance(meta[META_CAPABILITIES], Mapping):
        raise RpcError(INVALID_PARAMS, "`params._meta` must hold a version as text and capabilities as an object.")
    if version != MODERN_VERSION:
        raise RpcError(
            UNSUPPORTED_VERSION, "Unsupported protocol version", {"supported": [MODERN_VERSION], "requested": version}
        )
    return True
