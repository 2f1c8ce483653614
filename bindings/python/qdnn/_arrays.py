"""Device memory: our own arrays, and those of other libraries (torch, CuPy ...), used in place through DLPack."""

from __future__ import annotations

import ctypes
import math
from typing import Any

import numpy as np

from ._library import Object, call, constants, did_you_mean, int64

try:
    import ml_dtypes
except ImportError:
    ml_dtypes = None


def _narrow(name, bits):
    """ml_dtypes' type where that package is installed, else unsigned integers with the same bits."""
    return getattr(ml_dtypes, name) if ml_dtypes else bits


# name: (qdnn's data type, numpy's, DLPack's code and bits); None: DLPack has none that others know
_TYPES = {
    "f32": ("DATA_F32", np.float32, (2, 32)),
    "f16": ("DATA_F16", np.float16, (2, 16)),
    "bf16": ("DATA_BF16", _narrow("bfloat16", np.uint16), (4, 16)),
    "f64": ("DATA_F64", np.float64, (2, 64)),
    "e4m3": ("DATA_F8E4M3", _narrow("float8_e4m3fn", np.uint8), None),
    "e5m2": ("DATA_F8E5M2", _narrow("float8_e5m2", np.uint8), None),
    "i64": ("DATA_I64", np.int64, (0, 64)),
    "u64": ("DATA_U64", np.uint64, (1, 64)),
    "i32": ("DATA_I32", np.int32, (0, 32)),
    "u32": ("DATA_U32", np.uint32, (1, 32)),
    "i8": ("DATA_I8", np.int8, (0, 8)),
    "u8": ("DATA_U8", np.uint8, (1, 8)),
}
# Types of descriptors alone: their elements are packed into words.
_PACKED = {"i4": "DATA_I4"}
_OF_NUMPY = {}
for _name, _type in _TYPES.items():  # the first that has a numpy type: u8 is bytes, not e4m3
    if ml_dtypes or _name not in ("bf16", "e4m3", "e5m2"):
        _OF_NUMPY.setdefault(np.dtype(_type[1]), _name)
_OF_DLPACK = {t[2]: name for name, t in _TYPES.items() if t[2]}
# numpy arrays that stand for a type without being of it: their bits
_BITS = {"bf16": np.dtype(np.uint16), "e4m3": np.dtype(np.uint8), "e5m2": np.dtype(np.uint8)}


def is_type(name):
    return name in _TYPES or name in _PACKED


def data_type(name):
    if name in _PACKED:
        return constants[_PACKED[name]]
    if name not in _TYPES:
        known = [*_TYPES, *_PACKED]
        raise ValueError(f"'{name}' is no type: {', '.join(known)}{did_you_mean(str(name), known)}")
    return constants[_TYPES[name][0]]


def item_bytes(name):
    return np.dtype(_TYPES[name][1]).itemsize


def check_shape(shape):
    """The sizes as integers of 64 bits, none negative."""
    shape = tuple(int64(size, "a size").value for size in shape)
    if any(size < 0 for size in shape):
        raise ValueError(f"the shape is {shape}; sizes must not be negative")
    return shape


class Handle(Object):
    """A handle of the library with its memory. Arrays and plans keep it alive; it refers to none of them."""

    def __init__(self, name):
        if name is not None and "\0" in name:
            raise ValueError(f"the device is {name!r}; a name has no NUL")
        self.pointer, self._destroy = ctypes.c_void_p(), "Destroy"
        self._free, self._workspace, self._streams, self.stream = {}, (ctypes.c_void_p(), 0), {None}, None
        if name is None:
            call("Create", ctypes.byref(self.pointer))
        else:
            call("CreateOn", ctypes.byref(self.pointer), name.encode())

    def allocate(self, size):
        """Memory of at least that many bytes: what an array of this size class gave back, or new."""
        kept = self._free.get(_size_class(size))
        if kept:
            return kept.pop()
        pointer = ctypes.c_void_p()
        call("Malloc", self.pointer, ctypes.byref(pointer), ctypes.c_size_t(_size_class(size)))
        return pointer

    def release(self, pointer, size):
        """Keeps memory for the next array. Work that still uses it comes before that array's, as long as all of it is on one
        stream; with several, the memory is freed, which waits for them."""
        if len(self._streams) == 1:
            self._free.setdefault(_size_class(size), []).append(pointer)
        else:
            call("Free", self.pointer, pointer)

    def workspace(self, size):
        pointer, has = self._workspace
        if size > has:
            if pointer:
                call("Free", self.pointer, pointer)
            pointer = ctypes.c_void_p()
            call("Malloc", self.pointer, ctypes.byref(pointer), ctypes.c_size_t(size))
            self._workspace = (pointer, size)
        return pointer

    def set_stream(self, stream):
        """Work that is queued from now on goes to this stream (an address; None: the default one)."""
        call("Synchronize", self.pointer)  # the workspace and freed memory pass from stream to stream
        self._streams.add(stream)
        self.stream = stream
        call("SetStream", self.pointer, ctypes.c_void_p(stream))

    def empty(self):
        """Gives kept memory back to the device."""
        kept, self._free = self._free, {}
        for pointers in kept.values():
            for pointer in pointers:
                call("Free", self.pointer, pointer)

    def info(self):
        made = (ctypes.c_char * 1024)()
        ctypes.cast(made, ctypes.POINTER(ctypes.c_size_t))[0] = ctypes.sizeof(_DeviceInfo)
        call("GetDeviceInfo", self.pointer, made)
        return _DeviceInfo.from_buffer(made)

    def __del__(self):
        if getattr(self, "pointer", None):
            try:
                self.empty()
                call("Free", self.pointer, self._workspace[0])
            except Exception:  # the device has failed: the handle is destroyed all the same
                pass
        super().__del__()


class _DeviceInfo(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t), ("kind", ctypes.c_int), ("ordinal", ctypes.c_int), ("sm_major", ctypes.c_int),
        ("sm_minor", ctypes.c_int), ("driver_version", ctypes.c_int), ("multiprocessors", ctypes.c_int),
        ("memory_bytes", ctypes.c_uint64), ("target", ctypes.c_char * 16), ("name", ctypes.c_char * 256),
        ("memory_bytes_per_second", ctypes.c_double),
    ]  # fmt: skip


def _size_class(size):
    """Powers of two and the middle between them."""
    power = 1 << max(9, (size - 1).bit_length())
    return power * 3 // 4 if size <= power * 3 // 4 else power


class Array:
    """A packed array on a device. `owner` keeps the memory of another library alive.

    >>> device.array(np.ones((2, 3), "f4"))
    <qdnn.Array (2, 3) of f32 on ptxvm sm_80 (emulated GPU)>
    """

    def __init__(self, device: Handle, shape: tuple, type: str, pointer: int | None = None, owner: Any = None) -> None:
        data_type(type)
        if type in _PACKED:
            raise ValueError(f"{type} elements are packed; make an array of the words that hold them")
        self.device, self.shape, self.type = device, check_shape(shape), type
        self.bytes = self.nbytes = math.prod(self.shape) * item_bytes(type)
        self._owner = owner
        self._own = pointer is None and self.bytes > 0
        self.pointer = device.allocate(self.bytes) if self._own else ctypes.c_void_p(pointer)

    def __del__(self):
        if getattr(self, "_own", False) and self.device.pointer:
            self.device.release(self.pointer, self.bytes)

    def __len__(self):
        if not self.shape:
            raise TypeError("an array without dimensions has no length")
        return self.shape[0]

    def __repr__(self):
        return f"<qdnn.Array {self.shape} of {self.type} on {self.device.info().name.decode()}>"

    def numpy(self) -> np.ndarray:
        """A copy on the host, once all work before it is done. bf16, e4m3 and e5m2 as ml_dtypes has them where that is
        installed, else as their bits."""
        host = np.empty(self.shape, _TYPES[self.type][1])
        if self.bytes:
            call("CopyToHost", self.device.pointer, host.ctypes.data_as(ctypes.c_void_p), self.pointer, ctypes.c_size_t(self.bytes))
        return host

    def __array__(self, dtype=None, copy=None):
        if copy is False:
            raise ValueError("the array is on a device: numpy gets a copy")
        host = self.numpy()
        return host if dtype is None else host.astype(dtype)

    def reshape(self, *shape: Any) -> Array:
        """The same memory with another shape.

        >>> device.array(np.arange(6, dtype="f4")).reshape(3, -1)
        Traceback (most recent call last):
        ValueError: the shape is (3, -1); sizes must not be negative
        >>> device.array(np.arange(4, dtype="f4")).reshape(2, 2).numpy()
        array([[0., 1.],
               [2., 3.]], dtype=float32)
        """
        shape = shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
        if math.prod(check_shape(shape)) != math.prod(self.shape):
            raise ValueError(f"{self.shape} cannot become {tuple(shape)}")
        return Array(self.device, shape, self.type, self.pointer.value, self)

    # ---- For other libraries ----

    @property
    def _on_gpu(self):
        return _is_gpu(self.device)

    @property
    def __cuda_array_interface__(self):
        """Lets CuPy, torch and numba use the array without a copy, on a GPU."""
        if not self._on_gpu:
            raise AttributeError("the array is in the memory of ptxvm, which no other library can reach")
        if ml_dtypes and self.type in _BITS:
            raise AttributeError(f"{self.type} is no type of this interface; use DLPack")
        kind = np.dtype(_TYPES[self.type][1]).str
        return {"shape": self.shape, "typestr": kind, "data": (self.pointer.value or 0, False), "version": 3}

    def __dlpack_device__(self):
        return (_CUDA, self.device.info().ordinal) if self._on_gpu else (_CPU, 0)

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        """The array for another library: in place on a GPU, once the consumer's stream would see what was queued before;
        from ptxvm, whose memory no other library can reach, a copy on the host."""
        wanted = dl_device or self.__dlpack_device__()
        if tuple(wanted) == (_CPU, 0):
            if copy is False:
                raise BufferError("the array is on a device: the host gets a copy")
            return self.numpy().__dlpack__()
        if tuple(wanted) != self.__dlpack_device__() or copy:
            raise BufferError(f"the array is on {self.__dlpack_device__()}; it cannot be given as one on {tuple(wanted)}")
        if stream != -1:
            call("Synchronize", self.device.pointer)
        return to_capsule(self, self.__dlpack_device__())


# ---- Arrays of other libraries ----


def _is_gpu(device):
    return device.info().kind == constants["DEVICE_GPU"]


class _DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


_CPU, _CUDA = 1, 2
_ON_CUDA = (2, 13)  # kDLCUDA, kDLCUDAManaged
_get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_get_pointer.restype = ctypes.c_void_p
_get_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]


class _DLManagedTensor(ctypes.Structure):
    pass


_deleter = ctypes.CFUNCTYPE(None, ctypes.POINTER(_DLManagedTensor))
_DLManagedTensor._fields_ = [("tensor", _DLTensor), ("context", ctypes.c_void_p), ("deleter", _deleter)]
_lent = {}  # what other libraries hold: the array and its description, by the description's address


@_deleter
def _take_back(managed):
    _lent.pop(ctypes.addressof(managed.contents), None)


@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def _forget_capsule(capsule):
    """A capsule that nobody consumed: consumers rename it, and call the deleter themselves."""
    if _is_valid(capsule, b"dltensor"):
        _lent.pop(_pointer_in(capsule, b"dltensor"), None)


_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_IsValid", ctypes.pythonapi))
_pointer_in = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))
_new_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
    ("PyCapsule_New", ctypes.pythonapi)
)


def to_capsule(array, device):
    """A DLPack capsule over the array's memory, which keeps the array until its consumer is done."""
    kind = _TYPES[array.type][2]
    if kind is None:
        raise BufferError(f"DLPack has no type for {array.type}")
    shape = (ctypes.c_int64 * max(1, len(array.shape)))(*array.shape)
    tensor = _DLTensor(array.pointer.value, *device, len(array.shape), *kind, 1, shape, None, 0)
    managed = _DLManagedTensor(tensor, None, _take_back)
    _lent[ctypes.addressof(managed)] = (array, managed, shape)
    return _new_capsule(ctypes.addressof(managed), b"dltensor", ctypes.cast(_forget_capsule, ctypes.c_void_p))


def _is_packed(tensor):
    step = 1
    for i in reversed(range(tensor.ndim)):
        if tensor.strides and tensor.shape[i] > 1 and tensor.strides[i] != step:
            return False
        step *= tensor.shape[i]
    return True


def _from_dlpack(device, other):
    """The array of a library that supports DLPack, in place, once what was queued before it is done for our stream. The capsule is
    not consumed: it frees the tensor when deleted."""
    if not _is_gpu(device):
        raise ValueError("the array is on a GPU, whose memory ptxvm cannot reach; copy it to the host")
    ordinal, ours = other.__dlpack_device__()[1], device.info().ordinal
    if ordinal != ours:
        raise ValueError(f"the array is on GPU {ordinal}, and this device is GPU {ours}; copy it there")
    capsule = other.__dlpack__(stream=device.stream or 1)  # 1: the default stream
    tensor = _DLTensor.from_address(_get_pointer(capsule, b"dltensor"))
    name = _OF_DLPACK.get((tensor.code, tensor.bits))
    if name is None or tensor.lanes != 1:
        raise TypeError(f"elements of DLPack's type {tensor.code} with {tensor.bits} bits are not supported")
    if not _is_packed(tensor):
        raise ValueError("the array has gaps or another order of dimensions; make it contiguous")
    shape = [tensor.shape[i] for i in range(tensor.ndim)]
    return Array(device, shape, name, (tensor.data or 0) + tensor.byte_offset, capsule)


def host_values(value):
    """A host array of any library as numpy's; torch's bf16, which numpy does not know, by its bits."""
    if hasattr(value, "detach"):
        if str(value.dtype) == "torch.bfloat16":
            bits = value.contiguous().view(__import__("torch").int16).numpy()
            return bits.view(_TYPES["bf16"][1])
        value = value.numpy()
    elif hasattr(value, "__dlpack__") and not hasattr(value, "__array__"):
        value = np.from_dlpack(value)
    return value


def as_array(device, value, type=None):
    """Any array on the device: our own and those on a GPU are used in place, host arrays are copied. A u16 array on the
    host may be given the type bf16."""
    if isinstance(value, Array):
        if value.device is not device:
            raise ValueError("the array is on another device; copy it: device.array(array.numpy())")
        return value
    if hasattr(value, "detach"):  # torch's parameters have gradients, which no other library takes
        value = value.detach()
    if hasattr(value, "__dlpack_device__") and value.__dlpack_device__()[0] in _ON_CUDA:
        return _from_dlpack(device, value)
    value = host_values(value)
    host = np.ascontiguousarray(value)  # it has a dimension, also where the value has none
    name = type or _OF_NUMPY.get(host.dtype)
    if name is None or host.dtype not in (np.dtype(_TYPES[name][1]), _BITS.get(name)):
        raise TypeError(f"an array of {host.dtype} cannot be {type or 'used'}; known are {', '.join(_TYPES)}")
    array = Array(device, np.shape(value), name)
    if array.bytes:
        call("CopyToDevice", device.pointer, array.pointer, host.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(array.bytes))
    return array


def _written_by(array, value):
    """Copies a result into a numpy array of the caller."""
    value[...] = array.numpy().view(value.dtype)
    return array


def as_output(device, out, shape, type):
    """The array that an operation writes, and a function that gives the result to the caller; refuses an `out` of another shape
    or type, and one that cannot be written."""
    if out is None:
        return Array(device, shape, type), lambda array: array
    if isinstance(out, np.ndarray):
        if not out.flags.writeable:
            raise ValueError("out is a read-only array; pass one that can be written")
        name = type if type in _BITS and out.dtype == _BITS[type] else _OF_NUMPY.get(out.dtype, str(out.dtype))
        array = Array(device, out.shape, name)
        give = lambda made: _written_by(made, out)
    elif isinstance(out, Array) or (hasattr(out, "__dlpack_device__") and out.__dlpack_device__()[0] in _ON_CUDA):
        array, give = as_array(device, out), lambda made: made
    else:
        raise TypeError(f"out is a {out.__class__.__name__}, which cannot be written in place; pass an Array or a numpy array")
    if array.shape != tuple(shape):
        raise ValueError(f"out has the shape {array.shape}; it must be {tuple(shape)}")
    if type is not None and array.type != type:
        raise TypeError(f"out has elements of type {array.type}; it must be {type}")
    return array, give
