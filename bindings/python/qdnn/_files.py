"""Weights in files: GGUF, safetensors, and the checkpoints of GPTQ, AWQ, compressed-tensors, ModelOpt and bitsandbytes."""

import collections.abc
import ctypes

import numpy as np

from ._library import QdnnError, constants, error_of, files_library
from ._plans import PARTS, Quantization, Quantized, weights


class _Setting(ctypes.Structure):
    _fields_ = [("attribute", ctypes.c_int), ("value", ctypes.c_int64)]


class _Operand(ctypes.Structure):
    _fields_ = [("operand", ctypes.c_int), ("data", ctypes.c_void_p), ("bytes", ctypes.c_uint64), ("tensor", ctypes.c_int)]


class _Weight(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p), ("format", ctypes.c_char_p), ("problem", ctypes.c_char_p), ("quantized", ctypes.c_bool),
        ("weights", ctypes.c_int), ("extent", ctypes.c_int64), ("settings", ctypes.c_int), ("setting", _Setting * 12),
        ("rank", ctypes.c_int), ("dims", ctypes.c_int64 * 8), ("transposed", ctypes.c_bool), ("operands", ctypes.c_int),
        ("operand", _Operand * 8), ("bytes", ctypes.c_uint64),
    ]  # fmt: skip


class _Info(ctypes.Structure):
    _fields_ = [
        ("kind", ctypes.c_int), ("version", ctypes.c_int), ("quant_method", ctypes.c_char_p), ("shards", ctypes.c_int),
        ("tensors", ctypes.c_int), ("weights", ctypes.c_int), ("metadata", ctypes.c_int), ("bytes", ctypes.c_uint64),
    ]  # fmt: skip


class _Metadata(ctypes.Structure):
    _fields_ = [("key", ctypes.c_char_p), ("text", ctypes.c_char_p), ("data", ctypes.c_void_p), ("bytes", ctypes.c_uint64)]


_NAMES = {number: name[len("WEIGHTS_") :].lower() for name, number in constants.items() if name.startswith("WEIGHTS_")}
_ATTRIBUTES = {number: name[len("QUANT_") :].lower() for name, number in constants.items() if name.startswith("QUANT_")}
_PART_OF = {constants[f"OPERAND_{part.upper()}"]: part for part in PARTS}


def _call(function, *arguments):
    library = files_library()
    status = getattr(library, "qdnn" + function)(*arguments)
    if status:
        text = ctypes.create_string_buffer(1024)
        library.qdnnGetLastFileErrorString(text, ctypes.c_size_t(len(text)))
        raise error_of(status, text.value.decode(errors="replace"))


class File(collections.abc.Mapping):
    """A model file or a checkpoint's folder: a mapping from the names of weights to qdnn.Quantized, on the host.

    >>> qdnn.open("/no/such.gguf")
    Traceback (most recent call last):
    qdnn._library.QdnnValueError: /no/such.gguf: cannot be read: No such file or directory (QDNN_STATUS_BAD_PARAM)
    """

    def __init__(self, path):
        self._file = ctypes.c_void_p()
        _call("OpenFile", str(path).encode(), ctypes.byref(self._file))
        info = _Info()
        _call("GetFileInfo", self._file, ctypes.byref(info))
        self.path, self.kind = path, ("gguf", "safetensors")[info.kind]
        self.quant_method, self.bytes, self._n_metadata = info.quant_method.decode(), info.bytes, info.metadata
        self._weights = {}
        for i in range(info.weights):
            weight = _Weight()
            _call("GetFileWeight", self._file, i, ctypes.byref(weight))
            self._weights[weight.name.decode()] = weight

    def __del__(self):
        if getattr(self, "_file", None):
            files_library().qdnnCloseFile(self._file)

    def __iter__(self):
        return iter(self._weights)

    def __len__(self):
        return len(self._weights)

    def __getitem__(self, name):
        """The weight with its parts as numpy arrays over the file's memory, which they keep open."""
        weight = self._weights[name]
        if weight.problem:
            raise QdnnError(constants["STATUS_NOT_SUPPORTED"], "QDNN_STATUS_NOT_SUPPORTED", f"{name}: {weight.problem.decode()}")
        how = weights(_NAMES[weight.weights], weight.extent)
        how.set(**{_ATTRIBUTES[s.attribute]: s.value for s in weight.setting[: weight.settings]})
        parts = {_PART_OF[o.operand]: self._bytes(o) for o in weight.operand[: weight.operands]}
        return Quantized(tuple(weight.dims[: weight.rank]), how, parts)

    def _bytes(self, operand):
        if not operand.bytes:
            return np.zeros(0, np.uint8)
        memory = (ctypes.c_ubyte * operand.bytes).from_address(operand.data)
        memory.file = self
        return np.frombuffer(memory, np.uint8)

    def format(self, name):
        """How a weight is stored, for display: "gptq 4-bit g128 v2"."""
        return self._weights[name].format.decode()

    def is_transposed(self, name):
        """Whether a weight is [K, N]: matmul then takes transpose_w=False."""
        return self._weights[name].transposed

    @property
    def metadata(self):
        """Keys and values as text, long ones cut."""
        entry, found = _Metadata(), {}
        for i in range(self._n_metadata):
            _call("GetFileMetadata", self._file, i, ctypes.byref(entry))
            found[entry.key.decode(errors="replace")] = entry.text.decode(errors="replace")
        return found

    def __repr__(self):
        return f"<qdnn.File {self.path}: {self.kind}, {len(self)} weights, {self.bytes} bytes>"


def open(path):
    """Opens a GGUF file, a safetensors file, the index of a sharded checkpoint, or a checkpoint's folder."""
    return File(path)
