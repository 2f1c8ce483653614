"""Descriptors and plans: what is computed, of which shapes; a plan is made once, kept, and executed on the device's stream."""

from __future__ import annotations

import collections
import ctypes
import math
from typing import Any

from ._arrays import as_array, check_shape, data_type
from ._library import Object, call, constants, did_you_mean, int64, number


class Tensor(Object):
    """A descriptor of a plain tensor: shape, type, and distances between neighbours in elements (None: packed).

    >>> qdnn.Tensor((2, 64), "f16")
    qdnn.Tensor((2, 64), 'f16')
    """

    def __init__(self, shape: tuple, type: str = "f32", strides: tuple | None = None) -> None:
        super().__init__("CreateTensorDescriptor", "DestroyTensorDescriptor")
        self.shape, self.type = check_shape(shape), type
        self.strides = None if strides is None else check_shape(strides)
        if self.strides is not None and len(self.strides) != len(self.shape):
            raise ValueError(f"strides are {self.strides}; there must be one for each of the {len(self.shape)} dimensions")
        sizes = ctypes.c_int64 * len(self.shape)
        strides = None if self.strides is None else sizes(*self.strides)
        call("SetTensorDescriptor", self.pointer, data_type(type), len(self.shape), sizes(*self.shape), strides)

    @property
    def key(self):
        return ("tensor", self.shape, self.type, self.strides)

    def __repr__(self):
        return f"qdnn.Tensor({self.shape}, '{self.type}'" + (f", {self.strides})" if self.strides else ")")


class Descriptor(Object):
    """Attributes by their names in the header of a family: Descriptor("Train", bits=4, backward="tanh").

    Values are numbers, or the names of the constants that the header's comments list. Floating-point settings of a family
    (the decay of Train) are set by the call of that name.

    >>> qdnn.Descriptor("Select", top=4)
    qdnn.Descriptor('Select', top=4)
    """

    # attribute: the prefix of the constants that are its values
    VALUES = {
        "storage": "DATA", "zero_type": "DATA", "granularity": "GRANULARITY", "scale_type": "SCALE", "zero_kind": "ZERO",
        "rounding": "ROUND", "division": "DIVIDE", "nibble_order": "NIBBLE", "layout": "LAYOUT", "code_kind": "CODE",
        "block_format": "BLOCK", "groups": "GROUPS", "range": "RANGE", "mx_rounding": "MX", "scale_swizzle": "SWIZZLE",
        "zero_granularity": "GRANULARITY", "scale_order": "SCALE_ORDER", "scale_mode": "SCALE_MODE", "backward": "BACKWARD",
        "algorithm": "MATMUL", "activation": "ACTIVATION", "alpha": "ALPHA", "multipliers": "GRANULARITY", "mask": "DATA",
        "scores": "SCORES", "group_score": "GROUP_SCORE",
    }  # fmt: skip

    def __init__(self, family: str, **attributes: Any) -> None:
        super().__init__(f"Create{family}Descriptor", f"Destroy{family}Descriptor")
        self.family, self.attributes, self.floats = family, {}, {}
        self.set(**attributes)

    def _number(self, name, value):
        if not isinstance(value, str):
            return int64(value, name)
        lower = name.lower()
        if lower.endswith("_type") and lower != "scale_type" or lower in ("quantize_x",):
            return ctypes.c_int64(0 if value == "none" else number("DATA", value))
        if lower not in self.VALUES:
            raise ValueError(f"{name} is '{value}'; it takes a number")
        return ctypes.c_int64(number(self.VALUES[lower], value))

    def set(self, **attributes: Any) -> Any:
        for name, value in attributes.items():
            if isinstance(value, float):
                call(f"Set{self.family}{''.join(part.title() for part in name.split('_'))}", self.pointer, ctypes.c_float(value))
                self.floats[name] = value
                continue
            attribute, value = number(self.family.upper(), name), self._number(name, value)
            call(f"Set{self.family}Attribute", self.pointer, attribute, value)
            self.attributes[name.lower()] = value.value
        return self

    @property
    def key(self):
        return (self.family, tuple(sorted(self.attributes.items())), tuple(sorted(self.floats.items())))

    def __repr__(self):
        settings = {**self.attributes, **self.floats}
        return f"qdnn.Descriptor('{self.family}'" + "".join(f", {name}={value}" for name, value in settings.items()) + ")"


class Quantization(Descriptor):
    """How a tensor is quantized. Attributes have their names in qdnn/quant.h, values are numbers or names.

    >>> qdnn.weights("gguf_q4_0").size(qdnn.Tensor((2, 64)), "codes")
    72
    """

    def __init__(self, **attributes: Any) -> None:
        self.weights = None
        super().__init__("Quant", **attributes)

    @property
    def key(self):
        return (*super().key, self.weights)

    def size(self, tensor: Tensor, operand: str) -> int:
        """The bytes of one part ("codes", "scale" ...) of a tensor that is quantized so; 0: it has none."""
        size = ctypes.c_size_t()
        call("GetOperandSize", self.pointer, tensor.pointer, number("OPERAND", operand), ctypes.byref(size))
        return size.value

    def __reduce__(self):
        return _restore_quantization, (self.weights, self.attributes, self.floats)

    def __repr__(self):
        named = f"qdnn.weights('{self.weights[0]}', {self.weights[1]})" if self.weights else "qdnn.quantization()"
        settings = ", ".join(f"{name}={value}" for name, value in {**self.attributes, **self.floats}.items())
        return f"{named}.set({settings})" if settings else named


def _restore_quantization(named, attributes, floats):
    made = weights(*named) if named else Quantization()
    return made.set(**attributes, **floats)


def quantization(**attributes: Any) -> Quantization:
    """A quantization from attributes.

    >>> qdnn.quantization(storage="i4", group_size=64, scale_type="f16")
    qdnn.quantization().set(storage=27, group_size=64, scale_type=1)
    """
    return Quantization(**attributes)


def weights(name: str, extent: int = 0) -> Quantization:
    """A public format by name: docs/formats.md lists them. `extent` is its group size; 0: the usual one.

    >>> qdnn.weights("gptq_4bit", 128)
    qdnn.weights('gptq_4bit', 128)
    """
    made = Quantization()
    call("SetQuantWeights", made.pointer, number("WEIGHTS", name), int64(extent, "extent"))
    made.weights = (name.lower(), int(extent))
    return made


class _Binding(ctypes.Structure):
    _fields_ = [("operand", ctypes.c_int), ("pointer", ctypes.c_void_p), ("bytes", ctypes.c_size_t)]


class _PlanInfo(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t), ("operation", ctypes.c_char_p), ("kernels", ctypes.c_int), ("blocks", ctypes.c_uint64),
        ("block_threads", ctypes.c_uint32), ("ptx_version", ctypes.c_int), ("from_cache", ctypes.c_bool),
        ("from_bundle", ctypes.c_bool), ("emit_seconds", ctypes.c_double), ("load_seconds", ctypes.c_double),
        ("settings", ctypes.c_char * 1024), ("choice", ctypes.c_char_p),
    ]  # fmt: skip


_OPERANDS = {name[len("OPERAND_") :].lower(): value for name, value in constants.items() if name.startswith("OPERAND_")}


def operand_number(name: str) -> int:
    """The number of an operand, by its name in qdnn/types.h."""
    found = _OPERANDS.get(name.lower())
    if found is None:
        raise TypeError(f"'{name}' is no operand{did_you_mean(name, _OPERANDS)}")
    return found


def bind(device: Any, operands: dict[str, Any]) -> tuple[Any, list]:
    """The bindings of a plan's execution, and the arrays that they refer to."""
    bindings, kept = (_Binding * len(operands))(), []
    for i, (name, value) in enumerate(operands.items()):
        found, array = operand_number(name), as_array(device, value)
        kept.append(array)
        bindings[i] = _Binding(found, array.pointer, array.bytes)
    return bindings, kept


class Plan(Object):
    """Everything that an operation needs, resolved: executing it only queues kernels on the device's stream.

    >>> plan = device.plan("Scale", qdnn.Tensor((256,)), qdnn.weights("int4_bytes", 64))
    >>> scale = device.empty((4,))
    >>> plan(x=np.full(256, 7, "f4"), scale=scale)
    >>> scale.numpy()
    array([1., 1., 1., 1.], dtype=float32)
    """

    def __init__(self, device: Any, kind: str, *descriptors: Any) -> None:
        self._descriptors = descriptors
        pointers = [int64(d, "a size") if isinstance(d, int) else None if d is None else d.pointer for d in descriptors]
        super().__init__(f"Create{kind}Plan", "DestroyPlan", device.pointer, *pointers)
        self.device, self.kind = device, kind
        size = ctypes.c_size_t()
        call("GetPlanWorkspaceSize", self.pointer, ctypes.byref(size))
        self.workspace_bytes = size.value

    @property
    def info(self) -> dict[str, Any]:
        """What the plan does: operation, kernels, blocks, settings, choice ... as a dictionary."""
        info = _PlanInfo(size=ctypes.sizeof(_PlanInfo))
        call("GetPlanInfo", self.pointer, ctypes.byref(info))
        return {
            name: value.decode() if isinstance(value, bytes) else value
            for name, value in ((name, getattr(info, name)) for name, _ in _PlanInfo._fields_ if name != "size")
        }

    def __call__(self, rows: int | None = None, **operands: Any) -> None:
        """Executes with an array for each operand, by name: plan(x=x, codes=codes, y=y). `rows`: only the first so many."""
        bindings, kept = bind(self.device, operands)  # kept: arrays that were made of the caller's live until the launch
        workspace = self.device.workspace(self.workspace_bytes)
        size = ctypes.c_size_t(self.workspace_bytes)
        arguments = (bindings, len(operands), workspace, size)
        if rows is None:
            call("Execute", self.device.pointer, self.pointer, *arguments)
        else:
            call("ExecuteRows", self.device.pointer, self.pointer, int64(rows, "rows"), *arguments)

    def __repr__(self):
        info = self.info
        return f"<qdnn.Plan {info['operation']}: {info['kernels']} kernel(s), {info['settings']}>"


class PlanCache:
    """The plans of a device by what they were made from; the least recently used are given up."""

    def __init__(self, most=256):
        self._most, self._plans = most, collections.OrderedDict()

    def get(self, device, kind, *descriptors):
        key = (kind, *(getattr(d, "key", d) for d in descriptors))
        plan = self._plans.get(key)
        if plan is None:
            plan = self._plans[key] = Plan(device, kind, *descriptors)
            if len(self._plans) > self._most:
                self._plans.popitem(last=False)
        self._plans.move_to_end(key)
        return plan

    def clear(self):
        self._plans.clear()

    def __len__(self):
        return len(self._plans)


# The parts of a quantized tensor, in the order in which they are stored.
PARTS = ("codes", "scale", "zero", "global_scale", "group_index", "nested_map", "nested_scale", "nested_offset")


class Quantized:
    """A quantized tensor: its plain shape, how it is quantized, and its parts by name (on a device; on the host once unpickled).

    `prepacked`: its codes are in the order that tensor cores read, for matmul with algorithm="tensor".

    >>> device.quantize(np.ones((2, 64), "f4"), qdnn.weights("gguf_q4_0"))
    <qdnn.Quantized (2, 64), qdnn.weights('gguf_q4_0', 0), 72 bytes, 4.5 bits per element>
    """

    def __init__(self, shape: tuple, quantization: Quantization, parts: dict[str, Any], prepacked: bool = False) -> None:
        self.shape, self.quantization, self.parts, self.prepacked = tuple(shape), quantization, parts, prepacked

    @property
    def bytes(self) -> int:
        return sum(part.nbytes for part in self.parts.values())

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def on(self, device):
        """The parts as arrays on a device, copied there once."""
        self.parts = {name: as_array(device, part) for name, part in self.parts.items()}
        return self.parts

    def numpy(self) -> dict[str, Any]:
        """The parts as numpy arrays, by name."""
        return {name: part.numpy() if hasattr(part, "numpy") else part for name, part in self.parts.items()}

    def __reduce__(self):
        return Quantized, (self.shape, self.quantization, self.numpy(), self.prepacked)

    def __repr__(self):
        bits = 8 * self.bytes / self.size if self.size else 0
        return f"<qdnn.Quantized {self.shape}, {self.quantization!r}, {self.bytes} bytes, {bits:.3g} bits per element>"
