"""Device memory: our own arrays, and those of other libraries (torch, CuPy ...), used in place through DLPack."""

import ctypes
import math

import numpy as np

from ._library import call, constants, did_you_mean, int64

# name: (qdnn's data type, numpy's, DLPack's code and bits); bf16 appears as u16 on the host
_TYPES = {
    "f32": ("DATA_F32", np.float32, (2, 32)),
    "f16": ("DATA_F16", np.float16, (2, 16)),
    "bf16": ("DATA_BF16", np.uint16, (4, 16)),
    "f64": ("DATA_F64", np.float64, (2, 64)),
    "i32": ("DATA_I32", np.int32, (0, 32)),
    "u32": ("DATA_U32", np.uint32, (1, 32)),
    "i8": ("DATA_I8", np.int8, (0, 8)),
    "u8": ("DATA_U8", np.uint8, (1, 8)),
}
_OF_NUMPY = {np.dtype(t[1]): name for name, t in _TYPES.items() if name != "bf16"}
_OF_DLPACK = {t[2]: name for name, t in _TYPES.items()}


def data_type(name):
    if name not in _TYPES:
        raise ValueError(f"'{name}' is no type: {', '.join(_TYPES)}{did_you_mean(str(name), _TYPES)}")
    return constants[_TYPES[name][0]]


def item_bytes(name):
    return np.dtype(_TYPES[name][1]).itemsize


def check_shape(shape):
    """The sizes as integers of 64 bits, none negative."""
    shape = tuple(int64(size, "a size").value for size in shape)
    if any(size < 0 for size in shape):
        raise ValueError(f"the shape is {shape}; sizes must not be negative")
    return shape


class Array:
    """A packed array on a device. `owner` keeps the memory of another library alive."""

    def __init__(self, device, shape, type, pointer=None, owner=None):
        data_type(type)
        self.device, self.shape, self.type = device, check_shape(shape), type
        self.bytes = math.prod(self.shape) * item_bytes(type)
        self._owner = owner
        self._own = pointer is None
        self.pointer = ctypes.c_void_p(pointer)
        if self._own and self.bytes:
            call("Malloc", device.pointer, ctypes.byref(self.pointer), ctypes.c_size_t(self.bytes))

    def __del__(self):
        if getattr(self, "_own", False) and self.pointer and self.device.pointer:
            call("Free", self.device.pointer, self.pointer)

    def numpy(self):
        """A copy on the host; bf16 as u16."""
        host = np.empty(self.shape, _TYPES[self.type][1])
        if self.bytes:
            call("CopyToHost", self.device.pointer, host.ctypes.data_as(ctypes.c_void_p), self.pointer, ctypes.c_size_t(self.bytes))
        return host

    @property
    def __cuda_array_interface__(self):
        """Lets CuPy, torch and numba use the array without a copy, on a GPU."""
        if self.device.is_ptxvm:
            raise AttributeError("the array is in the memory of ptxvm, which no other library can reach")
        kind = np.dtype(_TYPES[self.type][1]).str
        return {"shape": self.shape, "typestr": kind, "data": (self.pointer.value or 0, False), "version": 3}


# ---- Arrays of other libraries ----


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


_ON_CUDA = (2, 13)  # kDLCUDA, kDLCUDAManaged
_get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_get_pointer.restype = ctypes.c_void_p
_get_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]


def _is_packed(tensor):
    step = 1
    for i in reversed(range(tensor.ndim)):
        if tensor.strides and tensor.shape[i] > 1 and tensor.strides[i] != step:
            return False
        step *= tensor.shape[i]
    return True


def _from_dlpack(device, other):
    """The array of a library that supports DLPack, in place. The capsule is not consumed: it frees the tensor when deleted."""
    capsule = other.__dlpack__()
    tensor = _DLTensor.from_address(_get_pointer(capsule, b"dltensor"))
    name = _OF_DLPACK.get((tensor.code, tensor.bits))
    if name is None or tensor.lanes != 1:
        raise TypeError(f"elements of DLPack's type {tensor.code} with {tensor.bits} bits are not supported")
    if not _is_packed(tensor):
        raise ValueError("the array has gaps or another order of dimensions; make it contiguous")
    shape = [tensor.shape[i] for i in range(tensor.ndim)]
    return Array(device, shape, name, (tensor.data or 0) + tensor.byte_offset, capsule)


def as_array(device, value, type=None):
    """Any array on the device: our own and those on a GPU are used in place, host arrays are copied. A u16 array on the
    host may be given the type bf16."""
    if isinstance(value, Array):
        if value.device is not device:
            raise ValueError("the array is on another device; copy it: device.array(array.numpy())")
        return value
    if hasattr(value, "__dlpack_device__") and value.__dlpack_device__()[0] in _ON_CUDA:
        return _from_dlpack(device, value)
    host = np.ascontiguousarray(value)
    name = type or _OF_NUMPY.get(host.dtype)
    if name is None or np.dtype(_TYPES[name][1]) != host.dtype:
        raise TypeError(f"an array of {host.dtype} cannot be {type or 'used'}; known are {', '.join(_TYPES)}")
    array = Array(device, np.shape(value), name)
    if array.bytes:
        call("CopyToDevice", device.pointer, array.pointer, host.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(array.bytes))
    return array


def _written_by(array, value):
    """Copies a result into a numpy array of the caller."""
    value[...] = array.numpy()
    return array


def as_output(device, out, shape, type):
    """The array that an operation writes, and a function that gives the result to the caller; refuses an `out` of another shape
    or type, and one that cannot be written."""
    if out is None:
        return Array(device, shape, type), lambda array: array
    if isinstance(out, np.ndarray):
        if not out.flags.writeable:
            raise ValueError("out is a read-only array; pass one that can be written")
        array = Array(device, out.shape, type if type == "bf16" and out.dtype == np.uint16 else _OF_NUMPY.get(out.dtype, str(out.dtype)))
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
