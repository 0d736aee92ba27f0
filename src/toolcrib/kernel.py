"""The compiled kernel, if there is one: a few inner loops in C that give what the Python beside them gives, sooner.

It is built while Toolcrib is installed, where a C compiler and the headers of Python are at hand (`hatch_build.py`).
Whoever uses it asks `kernel is not None` and has the reference in Python for the other case; both are tested to give
the same bits. `TOOLCRIB_KERNEL=off` switches it off.

The interpreter's lock is held inside it. It does not declare itself fit for an interpreter without that lock: such a
Python switches the lock on again when it loads the kernel, or does without with `TOOLCRIB_KERNEL=off`.
"""

import os
from typing import TYPE_CHECKING

_switched_off = os.environ.get("TOOLCRIB_KERNEL", "").lower() == "off"

if TYPE_CHECKING:
    from toolcrib import _kernel as compiled
elif _switched_off:  # not even loaded: that alone may end the process, or switch the interpreter's lock on
    compiled = None
else:
    try:
        from toolcrib import _kernel as compiled
    except ImportError:
        compiled = None

_INTERFACE = 20
"""Raised with every change of what the functions take or give: a file compiled from other sources is not used."""

_fits = compiled is not None and compiled.INTERFACE == _INTERFACE

kernel = compiled if _fits else None
"""The compiled module, or nothing."""


def account() -> str:
    """Whether the kernel is in use, in words."""
    if kernel is not None:
        return "compiled kernel in use"
    if _switched_off:
        return "without the compiled kernel: TOOLCRIB_KERNEL=off"
    if compiled is not None:
        return "without the compiled kernel: it was built from other sources, install toolcrib again"
    return "without the compiled kernel: it was not built, a C compiler and the headers of Python are needed"
