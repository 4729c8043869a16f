"""Keeps the code of a student from doing harm while it is graded.

A mistake can delete a folder, fill a disk or start processes without end, and
the person who grades a hundred folders has read none of them.  There are three
layers, each of which also works without the others:

- limits of the operating system on processor time, memory and files;
- namespaces of Linux, in which there is no network, every file outside of one
  folder is read-only, and all processes die with the first;
- a guard inside of Python, which refuses to write, to start processes and to
  connect, and keeps code from reading the solutions.

This stops accidents and pranks.  It does not stop somebody who sets out to
break out of Python: to grade strangers, run the whole command in a container.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import importlib.util
import os
import signal
import struct
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import CodeType, FrameType
from typing import Final, NamedTuple

_NEW_USER: Final = 0x10000000
_NEW_SPACES: Final = 0x00020000 | 0x08000000 | 0x20000000 | 0x40000000
"""New namespaces of mounts, of shared memory, of processes, of the network."""

_RECURSIVE: Final = 0x4000
_PRIVATE: Final = 0x40000
_BIND: Final = 0x1000
_MOUNT_SETATTR: Final = 442
"""The number of the system call, which is the same on all processors."""
_AT_CWD: Final = -100
_AT_RECURSIVE: Final = 0x8000
_DIE_WITH_PARENT: Final = 1

_WRITES: Final[dict[str, tuple[int, ...]]] = {
    "os.chflags": (0,),
    "os.chmod": (0,),
    "os.chown": (0,),
    "os.link": (1,),
    "os.mkdir": (0,),
    "os.remove": (0,),
    "os.rename": (0, 1),
    "os.rmdir": (0,),
    "os.setxattr": (0,),
    "os.symlink": (1,),
    "os.truncate": (0,),
    "os.utime": (0,),
    "shutil.move": (0, 1),
    "shutil.rmtree": (0,),
}
"""Events of Python about files that change -> which arguments are their paths.

Where a path can be relative to an open folder, that is the last argument.
"""

_TO_WRITE: Final = (
    os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
)

_STARTS: Final = frozenset(
    (
        "os.exec",
        "os.fork",
        "os.forkpty",
        "os.posix_spawn",
        "os.spawn",
        "os.system",
        "pty.spawn",
        "subprocess.Popen",
    )
)
_SIGNALS: Final = frozenset(("os.kill", "os.killpg"))
_CONNECTS: Final = frozenset(
    ("socket.bind", "socket.connect", "socket.getaddrinfo", "socket.sendto")
)


class Limits(NamedTuple):
    """What a process may use.

    Attributes:
        seconds: of processor time.
        memory: mebibytes beyond what it has at the start.
        file: mebibytes that it may write into one file.
    """

    seconds: int
    memory: int = 2048
    file: int = 16


# --- namespaces ------------------------------------------------------------


def isolate(writable: Path) -> str:
    """Enter namespaces of one's own, if the system allows it.

    The process becomes a session of its own, and the leader of its group.  In
    namespaces, this function returns in a child, which is the first process
    there: when it ends, all that it has started is killed.

    Args:
        writable: the only folder that can be written to.

    Returns:
        "" if the process is isolated, or why it is not.
    """
    if not hasattr(os, "setsid"):
        return "this system has no sessions"
    os.setsid()
    if not sys.platform.startswith("linux"):
        return "only Linux has namespaces"
    user, group = os.getuid(), os.getgid()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_NEW_USER | _NEW_SPACES):
        return f"unshare: {os.strerror(ctypes.get_errno())}"
    try:
        Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
        Path("/proc/self/gid_map").write_text(f"0 {group} 1", encoding="ascii")
        Path("/proc/self/uid_map").write_text(f"0 {user} 1", encoding="ascii")
        _shut(libc, writable)
    except OSError as error:
        return f"namespaces: {error}"
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        os._exit(os.waitstatus_to_exitcode(status) & 0xFF)
    libc.prctl(_DIE_WITH_PARENT, signal.SIGKILL)
    return ""


def _shut(libc: ctypes.CDLL, writable: Path) -> None:
    """Make all files read-only but those of one folder.

    Raises:
        OSError: the system does not allow it.
    """
    here = os.fsencode(writable)
    _ask(libc.mount(b"none", b"/", None, _RECURSIVE | _PRIVATE, None))
    _ask(libc.mount(here, here, None, _BIND, None))
    for path, flags, change in (
        (b"/", _AT_RECURSIVE, struct.pack("4Q", 1, 0, 0, 0)),  # set
        (here, 0, struct.pack("4Q", 0, 1, 0, 0)),  # clear
    ):
        size = len(change)
        _ask(libc.syscall(_MOUNT_SETATTR, _AT_CWD, path, flags, change, size))


def _ask(status: int) -> None:
    """Raise the error of a call of the C library, if it failed."""
    if status:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


# --- limits ----------------------------------------------------------------


def limit(limits: Limits) -> None:
    """Set the limits of this process; where there are none, do nothing."""
    if importlib.util.find_spec("resource") is None:  # on Windows
        return
    resource = importlib.import_module("resource")
    mega = 2**20
    wanted = {
        # At the first a process is told to end, at the second killed.
        resource.RLIMIT_CPU: (limits.seconds, limits.seconds + 2),
        resource.RLIMIT_FSIZE: (limits.file * mega, limits.file * mega),
        resource.RLIMIT_CORE: (0, 0),
    }
    used = _data_used()
    if used:
        most = used + limits.memory * mega
        wanted[resource.RLIMIT_DATA] = most, most
    for kind, (soft, hard) in wanted.items():
        _, allowed = resource.getrlimit(kind)
        if allowed != resource.RLIM_INFINITY:
            soft, hard = min(soft, allowed), min(hard, allowed)
        resource.setrlimit(kind, (soft, hard))


def _data_used() -> int:
    """The bytes of data that this process has; 0 where it is not said."""
    status = Path("/proc/self/status")
    if not status.is_file():
        return 0
    for line in status.read_text(encoding="ascii").splitlines():
        if line.startswith("VmData:"):
            return int(line.split()[1]) * 1024
    return 0


def silence() -> None:
    """Send all that is printed, by whatever way, to nowhere."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nowhere, number)


# --- the guard -------------------------------------------------------------


class Guard:
    """Refuses what the code of a student has no reason to do.

    Args:
        writable: the folder in which files may be written.
        code: the folder of the student's code.
        secret: folders that this code may not read, with the solutions.
        loader: what imports the student's code, and may read the solutions.
        tell: is told of each thing that was refused, once.
        starts: whether processes may be started.
    """

    def __init__(
        self,
        writable: Path,
        code: Path,
        secret: Sequence[Path],
        loader: CodeType,
        tell: Callable[[str], object],
        *,
        starts: bool = False,
    ) -> None:
        self._writable = _folder(writable)
        self._code = _folder(code)
        self._secret = tuple(_folder(path) for path in secret)
        self._loader = loader
        self._tell = tell
        self._told: set[str] = set()
        self._starts = starts

    def install(self) -> None:
        """Watch this process until it ends; there is no way back."""
        sys.addaudithook(self._hear)

    def _hear(self, event: str, args: tuple[object, ...]) -> None:
        """Look at one event of Python.

        Raises:
            PermissionError: it is refused.
        """
        if event == "open":
            self._opened(*args)
        elif event in _WRITES:
            self._changed(event, args)
        elif event in _CONNECTS:
            self._refuse("it wanted to connect to a network")
        elif event in _STARTS and not self._starts:
            self._refuse("it wanted to start a process")
        elif event in _SIGNALS and not self._starts:
            self._refuse("it wanted to send a signal")

    def _opened(self, path: object, mode: object, flags: object) -> None:
        """A file is opened: to write, only in one folder."""
        place = _place(path)
        if not place or place.startswith("/dev/"):
            return
        if isinstance(flags, int) and flags & _TO_WRITE:
            self._check(place, "write")
        if place.startswith(self._secret) and self._is_students():
            self._refuse("it wanted to read the solutions")

    def _changed(self, event: str, args: tuple[object, ...]) -> None:
        """A file is changed, moved or removed."""
        for index in _WRITES[event]:
            folder, name = os.path.split(_text(args[index]))
            if opened := _open_folder(args[-1]):
                folder = os.path.join(opened, folder)
            if name:
                place = os.path.join(os.path.realpath(folder), name)
                self._check(place, event.partition(".")[2])

    def _check(self, place: str, verb: str) -> None:
        """Refuse what is done to a file outside of the folder."""
        if not f"{place}/".startswith(self._writable):
            self._refuse(f"it wanted to {verb} {place}")

    def _is_students(self) -> bool:
        """Whether a line of the student's code is being run."""
        frame: FrameType | None = sys._getframe()
        while frame is not None and frame.f_code is not self._loader:
            if frame.f_code.co_filename.startswith(self._code):
                return True
            frame = frame.f_back
        return False

    def _refuse(self, what: str) -> None:
        """Tell, and raise.

        Raises:
            PermissionError: always.
        """
        if what not in self._told:
            self._told.add(what)
            self._tell(what)
        raise PermissionError(f"not while it is graded: {what}")


def _folder(path: Path) -> str:
    """A folder as the beginning of the paths in it."""
    return f"{os.path.realpath(path)}/"


def _text(path: object) -> str:
    """A path as text; "" for what is not a path, as the number of a file."""
    if isinstance(path, str | bytes | os.PathLike):
        return os.fsdecode(path)
    return ""


def _place(path: object) -> str:
    """An absolute path without links; "" for what is not a path."""
    text = _text(path)
    return os.path.realpath(text) if text else ""


def _open_folder(number: object) -> str:
    """The path of an open folder, if it is one and the system knows."""
    if isinstance(number, int) and number > 2:
        with contextlib.suppress(OSError):
            found = os.readlink(f"/proc/self/fd/{number}")
            return found if os.path.isdir(found) else ""
    return ""
