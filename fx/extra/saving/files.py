"""Extra: the folder of a saved graph, written, known and read.

The first line of the text notes what else was written: a digest of all other
lines, and one of the tensors.  By these a folder is known again before a new
graph takes its place, so that nothing is removed that `save` did not write.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import stat
import tempfile
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import IO, Final
from zipfile import ZipFile

import torch
from torch import nn

from ...use_def.values import AnyValue

TEXT: Final = "graph.jsonl"
WEIGHTS: Final = "weights.pt"
FORMAT: Final = "fx graph"
VERSION: Final = 1


# -- writing -----------------------------------------------------------------


def write(
    folder: Path, lines: list[str], weights: Mapping[str, torch.Tensor]
) -> None:
    """Write both files beside `folder`, then put them in its place.

    Args:
        folder: where to; not a link.
        lines: the text, without the header.
        weights: the tensors.

    Raises:
        FileExistsError: something else is there, or the folder cannot be
            replaced.
        OSError: writing failed, or another program has put a file into the
            folder meanwhile. The message says where that file is now.
    """
    if folder.exists():
        _check_known(folder, folder)
        if folder.samefile(".") or os.path.ismount(folder):
            raise FileExistsError(
                f"{folder} is the current directory or a mount point, which "
                f"cannot be replaced: choose a path in it, {folder / 'model'}"
            )
    beside = Path(tempfile.mkdtemp("", f".{folder.name}.", folder.parent))
    new, old = beside / "new", beside / "old"
    try:
        new.mkdir()
        if folder.exists():
            shutil.copymode(folder, new)
        torch.save(dict(weights), new / WEIGHTS)
        text = "".join(lines).encode()
        header = {**_noted(text, new / WEIGHTS), "version": VERSION}
        (new / TEXT).write_bytes(b"%s\n%s" % (_line(header), text))
        _swap(folder, new, old)
        _remove(old)
    finally:
        _remove(new)
        with contextlib.suppress(OSError):
            beside.rmdir()


def _swap(folder: Path, new: Path, old: Path) -> None:
    """Put `new` in the place of `folder`, and that at `old`; or do nothing."""
    try:
        if folder.exists():
            folder.rename(old)
            # Here no other program finds it any more.
            _check_known(old, folder)
        new.rename(folder)
    finally:
        if old.exists() and not folder.exists():
            old.rename(folder)


def _remove(folder: Path) -> None:
    """Remove a folder with the two files, if it is there, and nothing else."""
    if folder.exists():
        for name in (TEXT, WEIGHTS):
            (folder / name).unlink(missing_ok=True)
        folder.rmdir()


# -- knowing a folder again --------------------------------------------------


def _check_known(folder: Path, name: Path) -> None:
    """Raise FileExistsError if a folder has something that is not ours.

    Args:
        folder: where it is.
        name: what the caller calls it.
    """
    if os.listdir(folder) and not _is_unchanged(folder):
        raise FileExistsError(
            f"{name} has other files than a graph that fx.save wrote, or "
            "these were changed since then. Nothing of yours is to be lost: "
            "choose another path, or remove the folder yourself"
        )


def _is_unchanged(folder: Path) -> bool:
    """Whether a folder has just the two files, as they were written."""
    if {*os.listdir(folder)} != {TEXT, WEIGHTS}:
        return False
    files = folder / TEXT, folder / WEIGHTS
    if not all(stat.S_ISREG(file.lstat().st_mode) for file in files):
        return False
    header, _, text = files[0].read_bytes().partition(b"\n")
    try:
        noted = json.loads(header)
        return bool(noted == {**noted, **_noted(text, files[1])})
    except Exception:  # not JSON, or not a zip file
        return False


def _noted(text: bytes, weights: Path) -> dict[str, AnyValue]:
    """What the header says besides the version."""
    with ZipFile(weights) as file:
        parts = [(i.filename, i.file_size, i.CRC) for i in file.infolist()]
    digests = {"text": text, "weights": _line(parts)}
    return {
        "format": FORMAT,
        **{name: sha256(data).hexdigest() for name, data in digests.items()},
    }


def _line(value: AnyValue) -> bytes:
    """A value as JSON."""
    return json.dumps(value).encode()


# -- reading -----------------------------------------------------------------


def plain(file: Path) -> Path:
    """The file, or what it is a link to.

    Raises:
        OSError: it is not there.
        ValueError: it is a pipe or a device, which may have no end.
    """
    if not stat.S_ISREG(file.stat().st_mode):
        raise ValueError("it is not a plain file")
    return file


def check_unmoved(file: IO[str], path: Path) -> None:
    """Raise ValueError if another file is at `path` than the one opened."""
    if not os.path.samestat(os.fstat(file.fileno()), path.stat()):
        raise ValueError("a graph was saved there meanwhile: load it again")


def tensors_in(file: Path, map_location: AnyValue) -> dict[str, torch.Tensor]:
    """The tensors in a file, by name.

    Raises:
        Exception: the file is missing or damaged.
        ValueError: it has something else, or more than its size says.

    Cost: O(size of the file).
    """
    with plain(file).open("rb") as data, ZipFile(data) as archive:
        parts = archive.infolist()
        data.seek(0)
        if data.read(4) != _MAGIC:  # torch would take it for an older format
            raise ValueError("it is not a zip file from its first byte on")
    if sum(part.file_size for part in parts) > file.stat().st_size:
        raise ValueError(
            "its parts are compressed or overlap, so that a small file can "
            "fill all memory; torch.save writes no such file"
        )
    tensors = torch.load(file, map_location=map_location, weights_only=True)
    for name, tensor in tensors.items():
        if type(name) is not str or type(tensor) not in _KINDS:
            raise ValueError(f"{name!r} is not the name of a plain tensor")
    return dict(tensors)


_MAGIC: Final = b"PK\x03\x04"
_KINDS: Final = (torch.Tensor, nn.Parameter)
