"""The library through ctypes: finding it, its constants, and calls with a check of the status."""

import ctypes
import difflib
import functools
import operator
import os
import re
from pathlib import Path

_HERE = Path(__file__).resolve().parent
_SOURCE = _HERE.parent.parent.parent  # in a checkout


class QdnnError(RuntimeError):
    """A failed call: the library's error message, and the status by name and number."""

    def __init__(self, status, name, sentence):
        super().__init__(f"{sentence} ({name})")
        self.status, self.name, self.sentence = status, name, sentence


class QdnnValueError(QdnnError, ValueError):
    """An argument that the library refuses."""


class QdnnNotSupported(QdnnError, NotImplementedError):
    """A valid request that this version, device or driver does not serve."""


_ERRORS = {2: QdnnValueError, 3: QdnnNotSupported}  # by the thousands of the status


def _find_library(name="libqdnn.so"):
    """QDNN_LIBRARY names libqdnn.so; libqdnn_files.so is beside it."""
    named = os.environ.get("QDNN_LIBRARY")
    if named:
        return str(Path(named).with_name(name)) if name != "libqdnn.so" else named
    for path in (_HERE / name, _SOURCE / "build" / name):
        if path.exists():
            return str(path)
    return f"{name}.0.1"


@functools.cache
def files_library():
    """The reader of files, which is a library of its own."""
    return ctypes.CDLL(_find_library("libqdnn_files.so"))


def _constants_in(text):
    """Every `QDNN_NAME = number`, wherever a line ends."""
    pairs = re.findall(r"\bQDNN_(\w+)\s*=\s*(-?(?:0x[0-9A-Fa-f]+|\d+))\b", text)
    return {name: int(number, 0) for name, number in pairs}


def _read_constants():
    """The constants of the headers, the only place that defines these numbers, which never change."""
    folder = _HERE / "include"
    if not folder.exists():
        folder = _SOURCE / "include" / "qdnn"
    found = {}
    for path in sorted(folder.glob("*.h")):
        found.update(_constants_in(path.read_text()))
    return found


constants = _read_constants()
_library = ctypes.CDLL(_find_library())  # no call of it holds the interpreter's lock
_library.qdnnGetErrorString.restype = ctypes.c_char_p
_library.qdnnGetWeightsName.restype = ctypes.c_char_p


def last_sentence():
    text = ctypes.create_string_buffer(1024)
    _library.qdnnGetLastErrorString(text, ctypes.c_size_t(len(text)))
    return text.value.decode()


def call(function, *arguments):
    """Calls qdnn<function>; raises QdnnError unless it succeeds."""
    status = getattr(_library, "qdnn" + function)(*arguments)
    if status:
        raise error_of(status, last_sentence())


def error_of(status, sentence):
    return _ERRORS.get(status // 1000, QdnnError)(status, _library.qdnnGetErrorString(status).decode(), sentence)


def number(prefix, name):
    """The constant QDNN_<prefix>_<name>, whatever the case of the name."""
    key = f"{prefix}_{name.upper()}"
    if key not in constants:
        known = sorted(k[len(prefix) + 1 :].lower() for k in constants if k.startswith(prefix + "_"))
        raise ValueError(f"'{name}' is none of: {', '.join(known)}{did_you_mean(name, known)}")
    return constants[key]


def did_you_mean(name, known):
    """A suffix of an error about a misspelt name; empty where nothing is close."""
    close = difflib.get_close_matches(name.lower(), list(known), 1)
    return f"; did you mean '{close[0]}'?" if close else ""


def int64(value, what):
    """An integer of 64 bits: ctypes would silently drop the bits above them."""
    value = operator.index(value)
    if not -(2**63) <= value < 2**63:
        raise ValueError(f"{what} is {value}, which does not fit into 64 bits")
    return ctypes.c_int64(value)


class Object:
    """A handle, plan or descriptor, destroyed with its Python object."""

    def __init__(self, create, destroy, *arguments):
        self.pointer = ctypes.c_void_p()
        self._destroy = destroy
        call(create, *arguments, ctypes.byref(self.pointer))

    def __del__(self):
        if getattr(self, "pointer", None):
            getattr(_library, "qdnn" + self._destroy)(self.pointer)
            self.pointer = None


def version():
    """The library's version, "0.1.0"."""
    number = _library.qdnnGetVersion()
    return f"{number // 10000}.{number // 100 % 100}.{number % 100}"


def free_ptx(pointer):
    _library.qdnnFreePtx(pointer)


def free_emitted(pointer):
    _library.qdnnFreeEmitted(pointer)
