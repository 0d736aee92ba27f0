"""Documents for the tests of retrieval."""

import hashlib

from toolcrib.retrieval.base import PlainDocument


def document(
    key: str,
    description: str = "",
    *,
    leaf: str | None = None,
    toolset: str = "",
    parameters: tuple[str, ...] = (),
    nested: str = "",
    aliases: tuple[str, ...] = (),
) -> PlainDocument:
    content = repr((key, description, leaf, toolset, parameters, nested, aliases))
    return PlainDocument(
        key=key,
        digest=hashlib.blake2b(content.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest(),
        leaf=key if leaf is None else leaf,
        toolset=toolset,
        description=description,
        parameters=parameters,
        nested=nested,
        aliases=aliases,
    )
