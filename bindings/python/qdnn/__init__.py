"""qdnn: quantization on NVIDIA GPUs, or without one, the same bits everywhere.

    import numpy as np, qdnn

    device = qdnn.Device()                       # a GPU, or ptxvm if there is none
    weights = np.random.randn(256, 512).astype("f4")
    q = device.quantize(weights, qdnn.weights("int4_bytes", 128))
    y = device.matmul(np.ones((3, 512), "f4"), q, bias=np.zeros(256, "f4"), activation="silu").numpy()

Arrays of torch and CuPy on the same GPU are used in place; numpy's are copied.
"""

import ctypes

from ._arrays import Array, as_array, as_output, check_shape, data_type
from ._library import Object, QdnnError, call, constants, did_you_mean, int64, number

__all__ = ["Array", "Device", "QdnnError", "Quantization", "Quantized", "quantization", "weights"]

# The parts of a quantized tensor, and the element type of each as an array; None: raw bytes.
_PARTS = ("CODES", "SCALE", "ZERO", "GLOBAL_SCALE", "GROUP_INDEX", "NESTED_MAP", "NESTED_SCALE", "NESTED_OFFSET")


class Quantization(Object):
    """A descriptor of how a tensor is quantized. Attributes have their names in the header, values are numbers or names."""

    # the prefix of the constants that are values of an attribute
    _VALUES = {
        "storage": "DATA",
        "zero_type": "DATA",
        "granularity": "GRANULARITY",
        "scale_type": "SCALE",
        "zero_kind": "ZERO",
        "rounding": "ROUND",
        "division": "DIVIDE",
        "nibble_order": "NIBBLE",
        "layout": "LAYOUT",
        "code_kind": "CODE",
        "block_format": "BLOCK",
        "groups": "GROUPS",
        "range": "RANGE",
        "mx_rounding": "MX",
        "scale_swizzle": "SWIZZLE",
    }

    def __init__(self):
        super().__init__("CreateQuantDescriptor", "DestroyQuantDescriptor")

    def set(self, **attributes):
        for name, value in attributes.items():
            attribute = number("QUANT", name)
            if isinstance(value, str):
                if name not in self._VALUES:
                    raise ValueError(f"{name} is '{value}'; it takes a number")
                value = number(self._VALUES[name], value)
            call("SetQuantAttribute", self.pointer, attribute, int64(value, name))
        return self


def quantization(**attributes):
    """A quantization from attributes: quantization(storage="i4", group_size=64, scale_type="f16")."""
    return Quantization().set(**attributes)


def weights(name, extent=0):
    """A public format by name, such as "gguf_q4_k", "gptq_4bit", "bnb_nf4": docs/formats.md lists them."""
    made = Quantization()
    call("SetQuantWeights", made.pointer, number("WEIGHTS", name), int64(extent, "extent"))
    return made


class _Tensor(Object):
    def __init__(self, shape, type):
        super().__init__("CreateTensorDescriptor", "DestroyTensorDescriptor")
        dims = (ctypes.c_int64 * len(shape))(*check_shape(shape))
        call("SetTensorDescriptor", self.pointer, data_type(type), len(shape), dims, None)


class Quantized:
    """A quantized tensor: its plain shape, how it is quantized, and its parts on the device by name."""

    def __init__(self, shape, quantization, parts):
        self.shape, self.quantization, self.parts = tuple(shape), quantization, parts

    @property
    def bytes(self):
        return sum(part.bytes for part in self.parts.values())


class _Binding(ctypes.Structure):
    _fields_ = [("operand", ctypes.c_int), ("pointer", ctypes.c_void_p), ("bytes", ctypes.c_size_t)]


class _Plan(Object):
    def __init__(self, device, create, *arguments):
        super().__init__(create, "DestroyPlan", device.pointer, *arguments)
        self.device = device

    def run(self, arrays):
        """Executes with arrays given by operand; allocates the workspace."""
        size = ctypes.c_size_t()
        call("GetPlanWorkspaceSize", self.pointer, ctypes.byref(size))
        workspace = Array(self.device, (size.value,), "u8")
        bindings = (_Binding * len(arrays))(
            *(_Binding(number("OPERAND", name), array.pointer, array.bytes) for name, array in arrays.items())
        )
        call("Execute", self.device.pointer, self.pointer, bindings, len(arrays), workspace.pointer, size)
        call("Synchronize", self.device.pointer)


class Device(Object):
    """A GPU or ptxvm: "auto" (a GPU if there is one), "cuda:1", "vm", "vm:sm_80". None: use QDNN_DEVICE."""

    def __init__(self, name=None):
        if name is None:
            super().__init__("Create", "Destroy")
        else:
            self.pointer, self._destroy = ctypes.c_void_p(), "Destroy"
            if "\0" in name:
                raise ValueError(f"the device is {name!r}; a name has no NUL")
            call("CreateOn", ctypes.byref(self.pointer), name.encode())

    @property
    def is_ptxvm(self):
        info = (ctypes.c_char * 512)()
        ctypes.cast(info, ctypes.POINTER(ctypes.c_size_t))[0] = len(info)
        call("GetDeviceInfo", self.pointer, info)
        kind = ctypes.cast(info, ctypes.POINTER(ctypes.c_int))[ctypes.sizeof(ctypes.c_size_t) // 4]
        return kind == constants["DEVICE_PTXVM"]

    def array(self, value, type=None):
        """The value as an array on this device."""
        return as_array(self, value, type)

    # ---- Operations ----

    def _part_sizes(self, tensor, quantization):
        for part in _PARTS:
            size = ctypes.c_size_t()
            operand = number("OPERAND", part)
            call("GetOperandSize", quantization.pointer, tensor.pointer, operand, ctypes.byref(size))
            if size.value:
                yield part, size.value

    def _parts(self, given):
        known = [part.lower() for part in _PARTS]
        for name in given:
            if name.lower() not in known:
                raise TypeError(f"'{name}' is no part of a quantized tensor: {', '.join(known)}{did_you_mean(name, known)}")
        return {name.upper(): as_array(self, value) for name, value in given.items()}

    def quantize(self, x, quantization, **given):
        """Computes scales and codes of x. Parts passed by the caller (`scale=...`, `global_scale=...`) are used, not computed."""
        x = as_array(self, x)
        tensor = _Tensor(x.shape, x.type)
        parts = self._parts(given)
        for part, size in self._part_sizes(tensor, quantization):
            parts.setdefault(part, Array(self, (size,), "u8"))
        made = {part: array for part, array in parts.items() if part != "CODES"}
        if made and "scale" not in given:
            _Plan(self, "CreateScalePlan", tensor.pointer, quantization.pointer).run({"X": x, **made})
        _Plan(self, "CreateQuantizePlan", tensor.pointer, quantization.pointer).run({"X": x, **parts})
        return Quantized(x.shape, quantization, parts)

    def load(self, shape, quantization, **parts):
        """A quantized tensor from existing parts: load((N, K), weights("gguf_q4_k"), codes=bytes)."""
        return Quantized(check_shape(shape), quantization, self._parts(parts))

    def dequantize(self, quantized, type="f32", out=None):
        """Dequantizes to a tensor of the given type, or into `out` (of any type; a numpy array is written, too)."""
        out, give = as_output(self, out, quantized.shape, None if out is not None else type)
        tensor = _Tensor(quantized.shape, out.type)
        plan = _Plan(self, "CreateDequantizePlan", tensor.pointer, quantized.quantization.pointer)
        plan.run({**quantized.parts, "Y": out})
        return give(out)

    def matmul(self, x, w, transpose_w=True, bias=None, residual=None, alpha=None, activation="none", gated=False, type=None, out=None):
        """y = out(act(alpha (x W) + bias) + residual), with the same bits everywhere. w is [N, K] (transpose_w) or [K, N];
        gated: w has 2N outputs, and y = act(a) * b. alpha: a number, or an array of one or of N."""
        x = as_array(self, x)
        outputs = w.shape[0 if transpose_w else 1]
        shape = (*x.shape[:-1], outputs // 2 if gated else outputs)
        out, give = as_output(self, out, shape, type or (x.type if out is None else None))
        arrays = {**w.parts, "X": x, "Y": out}
        matmul = Object("CreateMatmulDescriptor", "DestroyMatmulDescriptor")
        settings = {"TRANSPOSE_W": int(transpose_w), "ACTIVATION": number("ACTIVATION", activation), "GATED": int(gated)}
        if bias is not None:
            arrays["BIAS"] = as_array(self, bias)
            settings["BIAS_TYPE"] = data_type(arrays["BIAS"].type)
        if residual is not None:
            arrays["RESIDUAL"] = as_array(self, residual)
            settings["RESIDUAL"] = 1
        if isinstance(alpha, (int, float)):
            call("SetMatmulAlpha", matmul.pointer, ctypes.c_float(alpha))
        elif alpha is not None:
            arrays["ALPHA"] = as_array(self, alpha)
            settings["ALPHA"] = number("ALPHA", "one" if arrays["ALPHA"].bytes == 4 else "column")
        for name, value in settings.items():
            call("SetMatmulAttribute", matmul.pointer, number("MATMUL", name), ctypes.c_int64(value))
        tensors = [_Tensor(x.shape, x.type), _Tensor(w.shape, "f32"), _Tensor(shape, out.type)]
        pointers = [t.pointer for t in tensors]
        plan = _Plan(self, "CreateMatmulPlan", matmul.pointer, pointers[0], pointers[1], w.quantization.pointer, pointers[2])
        plan.run(arrays)
        return give(out)
