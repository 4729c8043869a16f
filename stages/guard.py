"""Keeps a student's code from doing harm by mistake while it is graded.

This stops accidents.  It does not stop somebody who sets out to break out of
Python: to grade people whom you do not trust, run the command in a container.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import CodeType, FrameType
from typing import Final

_WRITES: Final = frozenset(
    "os.chflags os.chmod os.chown os.link os.mkdir os.remove os.rename "
    "os.rmdir os.symlink os.truncate os.utime shutil.move "
    "shutil.rmtree".split()
)
"""Events about files that change; a text among the arguments is a path."""

_TO_WRITE: Final = (
    os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
)

_STARTS: Final = frozenset(
    "os.exec os.fork os.forkpty os.kill os.killpg os.posix_spawn os.spawn "
    "os.system pty.spawn subprocess.Popen".split()
)


def limit(seconds: int, memory: int) -> None:
    """Limit processor time, and the MiB beyond what is used, where one can."""
    if sys.platform == "win32":
        return
    resource = importlib.import_module("resource")
    # At the first a process is told to end, at the second killed.
    limits = [
        (resource.RLIMIT_CPU, seconds, seconds + 2),
        (resource.RLIMIT_FSIZE, 2**26, 2**26),
    ]
    with contextlib.suppress(OSError):  # only Linux says what it has
        text = Path("/proc/self/status").read_text(encoding="ascii")
        used = int(text.partition("VmData:")[2].split()[0]) * 1024
        limits.append((resource.RLIMIT_DATA, *[used + memory * 2**20] * 2))
    for kind, soft, hard in limits:
        with contextlib.suppress(ValueError):  # the system's is lower
            resource.setrlimit(kind, (soft, hard))


class Guard:
    """Refuses, as an audit hook, what a student's code has no reason to do.

    Args:
        writable: the folder in which files may be written.
        code: the folder of the student's code.
        secret: folders that this code may not read, with the solutions.
        loader: what imports the student's code, and may read the solutions.
        tell: is told what was refused.
    """

    def __init__(
        self,
        writable: Path,
        code: Path,
        secret: Sequence[Path],
        loader: CodeType,
        tell: Callable[[str], object],
    ) -> None:
        self._writable = f"{writable.resolve()}/", "/dev/"
        self._code = f"{code.resolve()}/"
        self._secret = tuple(f"{path.resolve()}/" for path in secret)
        self._loader = loader
        self._tell = tell

    def __call__(self, event: str, args: tuple[object, ...]) -> None:
        """Refuse one event of Python, or let it be."""
        if event == "open":
            place = os.path.realpath(_text(args[0]) or os.devnull)
            if isinstance(args[2], int) and args[2] & _TO_WRITE:
                self._check(place, "write")
            if place.startswith(self._secret) and self._is_students():
                self._refuse("read the solutions")
        elif event in _WRITES:
            for path in filter(None, map(_text, args)):
                folder, name = os.path.split(path)
                inside = os.path.join(_open_folder(args[-1]), folder)
                place = os.path.join(os.path.realpath(inside), name)
                self._check(place, event.partition(".")[2])
        elif event in _STARTS:
            self._refuse("start a process")

    def _check(self, place: str, verb: str) -> None:
        """Refuse what is done to a file outside of the folder."""
        if not f"{place}/".startswith(self._writable):
            self._refuse(f"{verb} {place}")

    def _is_students(self) -> bool:
        """Whether a line of the student's code is being run."""
        frame: FrameType | None = sys._getframe()
        while frame is not None and frame.f_code is not self._loader:
            if frame.f_code.co_filename.startswith(self._code):
                return True
            frame = frame.f_back
        return False

    def _refuse(self, what: str) -> None:
        """Tell, and raise a PermissionError."""
        self._tell(f"it wanted to {what}")
        raise PermissionError(f"not while it is graded: it wanted to {what}")


def _text(path: object) -> str:
    """A path as text; "" for what is not a path, as the number of a file."""
    if isinstance(path, str | bytes | os.PathLike):
        return os.fsdecode(path)
    return ""


def _open_folder(number: object) -> str:
    """The path of an open folder, if it is one and the system knows."""
    place = os.path.realpath(f"/proc/self/fd/{number}")
    return place if isinstance(number, int) and os.path.isdir(place) else ""
