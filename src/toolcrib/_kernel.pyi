from collections.abc import Callable

INTERFACE: int

class Kept:
    """What a value looked like; only to be handed back."""

def keep(value: object, encode: Callable[[object], bytes], most: int) -> tuple[Kept, bytes] | None: ...
def same(kept: Kept, value: object) -> bool: ...
