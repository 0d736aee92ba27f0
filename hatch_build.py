"""Compiles the optional kernel while a wheel or an editable install is made; goes on without it where that fails.

It needs what `sysconfig` names: a C compiler and the headers of this Python. A wheel with the kernel belongs to one
platform and one version of Python, one without to all.
"""

import os
import shlex
import shutil
import subprocess
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SOURCES = Path("src/kernel")
FLAGS = ("-O3", "-fPIC", "-fvisibility=hidden", "-fwrapv", "-ffp-contract=off", "-fno-math-errno", "-DNDEBUG")


class KernelHook(BuildHookInterface):
    """Adds the compiled kernel to the build."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compiles beside the sources for an editable install, else into a place of its own."""
        if self.target_name != "wheel":
            return
        name = f"_kernel{sysconfig.get_config_var('EXT_SUFFIX')}"
        package = Path(self.root) / "src" / "toolcrib"
        self._folder = "" if version == "editable" else tempfile.mkdtemp(prefix="toolcrib-kernel-")
        folder = Path(self._folder) if self._folder else package
        reason = compile_kernel(Path(self.root) / SOURCES, folder / name)
        if reason:
            self.app.display_warning(f"toolcrib goes on without its compiled kernel: {reason}")
        elif version != "editable":
            build_data["force_include"][str(folder / name)] = f"toolcrib/{name}"
            build_data["pure_python"] = False
            build_data["infer_tag"] = True

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Takes the place of its own away."""
        if getattr(self, "_folder", ""):
            shutil.rmtree(self._folder, ignore_errors=True)


def compile_kernel(sources: Path, target: Path) -> str:
    """Compiles the sources to the target; the reason, if that could not be done."""
    reason = _compile(sources, target)
    if reason:
        target.unlink(missing_ok=True)  # one of an older source would be taken for this one
    return reason


def _compile(sources: Path, target: Path) -> str:
    if os.environ.get("TOOLCRIB_KERNEL", "").lower() == "off":
        return "TOOLCRIB_KERNEL=off"
    linker = sysconfig.get_config_var("LDSHARED")
    if not linker:
        return "this Python names no compiler"
    include = sysconfig.get_path("include")
    if not (Path(include) / "Python.h").is_file():
        return "this Python has no headers"
    words = shlex.split(linker)
    command = [*shlex.split(os.environ.get("CC", "")), *words[1:]] if os.environ.get("CC") else words
    flags = (*FLAGS, *shlex.split(os.environ.get("TOOLCRIB_CFLAGS", "")))
    # To a name of its own first: the old file may be in use by a running process. It ends as the other does, so that
    # what a killed build leaves behind is no part of any package.
    made = target.with_name(f".{os.getpid()}{target.name}")
    try:
        subprocess.run(  # noqa: S603 - the compiler that Python itself was made with
            [*command, *flags, f"-I{include}", *map(str, sorted(sources.glob("*.c"))), "-o", str(made), "-lm"],
            check=True,
            capture_output=True,
            text=True,
            timeout=300,
        )
        made.replace(target)
    except (OSError, subprocess.SubprocessError) as error:
        made.unlink(missing_ok=True)
        said = (getattr(error, "stderr", None) or str(error)).strip().splitlines()
        return said[0] if said else "the compiler failed"
    return ""
