"""The operations, as methods of a device."""

from __future__ import annotations

import contextlib
import ctypes
from typing import Any, Iterator

from ._arrays import Array, Handle, as_array, as_output, check_shape, data_type
from ._attention import Attending
from ._copies import Copies
from ._library import call, constants, did_you_mean, number
from ._plans import PARTS, Descriptor, Plan, PlanCache, Quantization, Quantized, Tensor
from ._rows import Rows


class Device(Rows, Attending, Copies):
    """A GPU or ptxvm: "auto" (a GPU if there is one), "cuda:1", "vm", "vm:sm_80", "vm:a100". None: use QDNN_DEVICE.
    math: "family" (products of 16-bit x use tensor cores) or "exact" (the same bits on every GPU). None: use QDNN_MATH.

    >>> device = qdnn.Device("vm:sm_80")
    >>> device.array(np.arange(3, dtype="f4")).numpy()
    array([0., 1., 2.], dtype=float32)
    """

    def __init__(self, name: str | None = None, math: str | None = None) -> None:
        self.handle = Handle(name)
        if math is not None:
            call("SetMath", self.pointer, number("MATH", math))
        self.plans = PlanCache()

    @property
    def pointer(self):
        return self.handle.pointer

    @property
    def info(self) -> dict[str, Any]:
        """Name, kind, SM, multiprocessors, memory ... as a dictionary."""
        info = self.handle.info()
        return {name: v.decode() if isinstance(v := getattr(info, name), bytes) else v for name, _ in info._fields_ if name != "size"}

    @property
    def is_ptxvm(self) -> bool:
        return self.handle.info().kind == constants["DEVICE_PTXVM"]

    def __repr__(self):
        return f"<qdnn.Device {self.info['name']}, {self.info['target']}>"

    def synchronize(self) -> None:
        """Waits until all queued work is done.

        >>> device.synchronize()
        """
        call("Synchronize", self.pointer)

    @contextlib.contextmanager
    def stream(self, stream: Any) -> Iterator[Device]:
        """Queues what follows on a CUDA stream: its address, or an object that has one (torch's cuda_stream, CuPy's ptr).

        >>> with device.stream(None):  # None: the default stream
        ...     y = device.add(np.ones(2, "f4"), 1)
        """
        before = ctypes.c_void_p()
        call("GetStream", self.pointer, ctypes.byref(before))
        self.handle.set_stream(next((v for n in ("cuda_stream", "ptr") if (v := getattr(stream, n, None)) is not None), stream))
        try:
            yield self
        finally:
            self.handle.set_stream(before.value)

    def array(self, value: Any, type: str | None = None) -> Array:
        """The value as an array on this device.

        >>> device.array(np.arange(3, dtype="u1")).numpy()
        array([0, 1, 2], dtype=uint8)
        """
        return as_array(self.handle, value, type)

    def from_dlpack(self, other: Any) -> Array:
        """The array of another library: in place if it is on this GPU, else a copy of what is on the host.

        >>> device.from_dlpack(np.arange(3, dtype="i4")).numpy()
        array([0, 1, 2], dtype=int32)
        """
        if not hasattr(other, "__dlpack__"):
            raise TypeError(f"a {other.__class__.__name__} has no __dlpack__")
        return self.array(other)

    def empty(self, shape: tuple, type: str = "f32") -> Array:
        """An array whose content is undefined.

        >>> device.empty((2, 3), "f16").nbytes
        12
        """
        return Array(self.handle, shape, type)

    def plan(self, kind: str, *descriptors: Any) -> Plan:
        """Any plan of the C API by the name in qdnnCreate<kind>Plan, made once and kept: device.plan("Scale", Tensor(...), q).

        >>> device.plan("Scale", qdnn.Tensor((64,)), qdnn.weights("int4_bytes", 64)).info["operation"]
        'quant.int4.scale'
        """
        return self.plans.get(self.handle, kind, *descriptors)

    # ---- Quantizing ----

    def _sized_parts(self, tensor, quantization):
        sizes = ((part, quantization.size(tensor, part)) for part in PARTS)
        return {part: Array(self.handle, (size,), "u8") for part, size in sizes if size}

    def _given_parts(self, given):
        for name in given:
            if name.lower() not in PARTS:
                raise TypeError(f"'{name}' is no part of a quantized tensor: {', '.join(PARTS)}{did_you_mean(name, PARTS)}")
        return {name.lower(): self.array(value) for name, value in given.items()}

    def quantize(self, x: Any, quantization: Quantization, **given: Any) -> Quantized:
        """Computes scales and codes of x. Parts passed by the caller (`scale=...`, `global_scale=...`) are used, not computed.

        >>> q = device.quantize(np.arange(32, dtype="f4"), qdnn.weights("gguf_q8_0"))
        >>> q.bytes
        34
        """
        x = self.array(x)
        tensor, given = Tensor(x.shape, x.type), self._given_parts(given)
        parts = {**self._sized_parts(tensor, quantization), **given}
        made = {part: array for part, array in parts.items() if part != "codes"}
        if made and "scale" not in given:
            self.plan("Scale", tensor, quantization)(x=x, **made)
        self.plan("Quantize", tensor, quantization)(x=x, **parts)
        return Quantized(x.shape, quantization, parts)

    def quantize_dynamic(self, x: Any, quantization: Quantization, **given: Any) -> Quantized:
        """Scales and codes in one operation, x read once where groups allow it: for activations. A global scale is an input.

        >>> q = device.quantize_dynamic(np.ones((2, 64), "f4"), qdnn.quantization(storage="i8", group_size=64))
        >>> q.parts["scale"].numpy().view("f4")
        array([0.00787402, 0.00787402], dtype=float32)
        """
        x = self.array(x)
        tensor = Tensor(x.shape, x.type)
        parts = {**self._sized_parts(tensor, quantization), **self._given_parts(given)}
        self.plan("DynamicQuantize", tensor, quantization)(x=x, **parts)
        return Quantized(x.shape, quantization, parts)

    def quantize_kv(self, x: Any, quantization: Quantization, cache: Tensor | None = None, slots: Any = None,
                    into: Quantized | None = None) -> Quantized:  # fmt: skip
        """Keys or values [tokens, heads, head size], one scale per head and token, into the slots of a cache: `cache` is its
        qdnn.Tensor, `slots` the slot of each token, `into` the quantized cache to write (None: a new one, zeros).

        >>> q = device.quantize_kv(np.ones((2, 1, 8), "f4"), qdnn.quantization(storage="i8", group_size=8), qdnn.Tensor((4, 1, 8)), np.array([3, 0], "i4"))
        >>> device.dequantize(q).numpy()[:, 0, 0]
        array([1., 0., 0., 1.], dtype=float32)
        """
        x = self.array(x)
        tensor = Tensor(x.shape, x.type)
        if cache is None:
            parts = self._sized_parts(tensor, quantization)
            self.plan("QuantizeKvCache", tensor, quantization, None)(x=x, **parts)
            return Quantized(x.shape, quantization, parts)
        if into is None:
            into = Quantized(cache.shape, quantization, self._sized_parts(Tensor(cache.shape, x.type), quantization))
            for part in into.parts.values():
                call("Fill", self.pointer, part.pointer, ctypes.c_ubyte(0), ctypes.c_size_t(part.bytes))
        self.plan("QuantizeKvCache", tensor, quantization, cache)(x=x, row_index=slots, **into.on(self.handle))
        return into

    def load(self, shape: tuple, quantization: Quantization, prepacked: bool = False, **parts: Any) -> Quantized:
        """A quantized tensor from existing parts: load((N, K), weights("gguf_q4_k"), codes=bytes).

        >>> device.dequantize(device.load((1, 2), qdnn.weights("f16"), codes=np.array([[1, 2]], "f2"))).numpy()
        array([[1., 2.]], dtype=float32)
        """
        return Quantized(check_shape(shape), quantization, self._given_parts(parts), prepacked)

    def dequantize(self, quantized: Quantized, type: str = "f32", out: Any = None) -> Any:
        """Dequantizes to a tensor of the given type, or into `out` (of any type; a numpy array is written, too).

        >>> q = device.quantize(np.arange(-7, 8, dtype="f4"), qdnn.weights("int4_bytes"))
        >>> device.dequantize(q).numpy()[:4]
        array([-7., -6., -5., -4.], dtype=float32)
        """
        out, give = as_output(self.handle, out, quantized.shape, None if out is not None else type)
        self.plan("Dequantize", Tensor(quantized.shape, out.type), quantized.quantization)(y=out, **quantized.on(self.handle))
        return give(out)

    def repack(self, quantized: Quantized, to: Quantization) -> Quantized:
        """The same values with codes in another layout, nibble order or code kind; scales and zeros stay.

        >>> q = device.quantize(np.array([1, 7], "f4"), qdnn.quantization(storage="i4"))
        >>> again = device.repack(q, qdnn.quantization(storage="i4", nibble_order="high_first"))
        >>> q.parts["codes"].numpy(), again.parts["codes"].numpy()
        (array([249], dtype=uint8), array([159], dtype=uint8))
        """
        tensor, parts = Tensor(quantized.shape), dict(quantized.on(self.handle))
        codes = Array(self.handle, (to.size(tensor, "codes"),), "u8")
        self.plan("Repack", tensor, quantized.quantization, to)(codes=parts["codes"], repacked=codes)
        return Quantized(quantized.shape, to, {**parts, "codes": codes})

    def prepack(self, w: Quantized, transpose_w: bool = True) -> Quantized:
        """Weights with their codes in the order that tensor cores read, for matmul with algorithm="tensor".

        >>> q = device.prepack(device.quantize(np.ones((16, 64), "f4"), qdnn.weights("gguf_q8_0")))
        >>> device.matmul(np.ones((1, 64), "f2"), q).numpy()[0, :2]
        array([64., 64.], dtype=float16)
        """
        return self._prepack("Prepack", w, transpose_w)

    def unpack(self, w: Quantized, transpose_w: bool = True) -> Quantized:
        """The reverse of prepack.

        >>> q = device.quantize(np.ones((16, 64), "f4"), qdnn.weights("gguf_q8_0"))
        >>> device.unpack(device.prepack(q)).bytes == q.bytes
        True
        """
        return self._prepack("Unpack", w, transpose_w)

    def _prepack(self, kind, w, transpose_w):
        n, k = w.shape[-2:] if transpose_w else w.shape[:-3:-1]
        n, k = (-(-n // 16) * 16, -(-k // 64) * 64) if kind == "Prepack" else (n, k)
        room = Tensor((*w.shape[:-2], *((n, k) if transpose_w else (k, n))))
        codes = Array(self.handle, (w.quantization.size(room, "codes"),), "u8")
        parts, matmul = dict(w.on(self.handle)), Descriptor("Matmul", transpose_w=int(transpose_w))
        stored, packed = (parts["codes"], codes) if kind == "Prepack" else (codes, parts["codes"])
        self.plan(kind, matmul, Tensor(w.shape), w.quantization)(codes=stored, repacked=packed)
        return Quantized(w.shape, w.quantization, {**parts, "codes": codes}, prepacked=kind == "Prepack")

    # ---- Products ----

    def matmul(self, x: Any, w: Quantized, transpose_w: bool = True, bias: Any = None, residual: Any = None, alpha: Any = None,
               activation: str = "none", gated: bool = False, type: str | None = None, out: Any = None, algorithm: str = "auto",
               expert_index: Any = None, check_indices: bool = False, row_weight: Any = None, lora: tuple | None = None,
               x_scale: Any = None, quantize_x: str | None = None) -> Any:  # fmt: skip
        """y = out(act(alpha (x W) + bias) + residual). w is [N, K] (transpose_w) or [K, N]; gated: w has 2N outputs, and
        y = act(a) * b. With `expert_index` (i32, one per row of x) w is a stack of experts, and `row_weight` (f32) multiplies each
        row at the end. alpha: a number, or an array of one or of N. lora: (A [K, rank], B [rank, N]) or (A, B, scale).
        algorithm: "auto" (tensor cores unless x is f32), "exact" (the same bits on every GPU), "tensor", "cublas".
        quantize_x: "e4m3" or "e5m2", for FP8 weights;
        x_scale: f32, one per row, for x that is FP8 already.

        >>> w = device.load((2, 3), qdnn.weights("f32"), codes=np.arange(6, dtype="f4").reshape(2, 3))
        >>> device.matmul(np.ones((1, 3), "f4"), w, bias=np.array([1, -20], "f4"), activation="relu").numpy()
        array([[4., 0.]], dtype=float32)
        """
        x = self.array(x)
        outputs = w.shape[-2 if transpose_w else -1]
        shape = (*x.shape[:-1], outputs // 2 if gated else outputs)
        wanted = type or ("f32" if x.type in ("e4m3", "e5m2") else x.type)
        out, give = as_output(self.handle, out, shape, wanted if out is None or type else None)
        arrays = {**w.on(self.handle), "x": x, "y": out}
        matmul = Descriptor("Matmul", transpose_w=int(transpose_w), activation=activation, gated=int(gated), algorithm=algorithm)
        self._operand(matmul, arrays, "bias", bias, lambda array: {"bias_type": array.type})
        self._operand(matmul, arrays, "residual", residual, lambda array: {"residual": 1})
        self._operand(matmul, arrays, "expert_index", expert_index,
                      lambda array: {"experts": w.shape[0], "check_indices": int(check_indices)})  # fmt: skip
        self._operand(matmul, arrays, "row_weight", row_weight, lambda array: {"row_weight": 1})
        self._operand(matmul, arrays, "x_scale", x_scale, lambda array: {"x_scale": 1})
        if isinstance(alpha, (int, float)):
            matmul.set(alpha=float(alpha))
        else:
            self._operand(matmul, arrays, "alpha", alpha, lambda array: {"alpha": "one" if array.bytes == 4 else "column"})
        if quantize_x:
            matmul.set(quantize_x=data_type(quantize_x))
        if w.prepacked:
            matmul.set(prepacked=1)
        if lora is not None:
            arrays["lora_a"], arrays["lora_b"] = (self.array(part) for part in lora[:2])
            matmul.set(lora_rank=arrays["lora_a"].shape[1], lora_type=arrays["lora_a"].type)
            if len(lora) == 3:
                matmul.set(lora_scale=float(lora[2]))
        weights = Tensor(w.shape, x.type if algorithm == "cublas" else "f32")
        self.plan("Matmul", matmul, Tensor(x.shape, x.type), weights, w.quantization, Tensor(shape, out.type))(**arrays)
        return give(out)

    def _operand(self, descriptor, arrays, name, value, attributes):
        """An operand that the descriptor asks for, if the caller gives it."""
        if value is not None:
            arrays[name] = self.array(value)
            descriptor.set(**attributes(arrays[name]))

    # ---- Integer products ----

    def integer_matmul(self, x: Any, w: Any, type: str, x_type: tuple | None = None, w_type: tuple | None = None, x_scale: Any = None,
                       scale: Any = None, bias: Any = None, multiplier: Any = None, residual: Any = None, alpha: Any = None,
                       out: Any = None, **attributes: Any) -> Any:  # fmt: skip
        """Codes times codes (qdnn/integer.h). x and w are i8 or u8 arrays, or u32 words of i4 (then x_type or w_type is
        ("i4", K)). type "i8", "u8", "i32": requantized, by `multiplier` (a number or one per column); "f32", "f16", "bf16": scaled by
        x_scale (one per row) and scale (one per column, or per group for i8 with i4). x may also be plain numbers.

        >>> x, w = np.array([[1, 2, 3, 4]], "i1"), np.array([[1, 1, 1, 1], [1, -1, 1, -1]], "i1")
        >>> device.integer_matmul(x, w, "i32").numpy()
        array([[10, -2]], dtype=int32)
        """
        x, w = self.array(x), self.array(w)
        x_tensor, w_tensor = _codes_tensor(x, x_type), _codes_tensor(w, w_type)
        integer = Descriptor("Integer", **attributes)
        n = w_tensor.shape[0 if attributes.get("transpose_w", 1) else 1]
        shape = (*x_tensor.shape[:-1], n)
        out, give = as_output(self.handle, out, shape, type)
        arrays = {"x": x, "codes": w, "y": out}
        for name, value in (("x_scale", x_scale), ("scale", scale)):
            if value is not None:
                arrays[name] = self.array(value)
        self._operand(integer, arrays, "bias", bias, lambda array: {"bias_type": array.type})
        self._operand(integer, arrays, "residual", residual, lambda array: {"residual": 1})
        if isinstance(multiplier, (int, float)):
            integer.set(multiplier=float(multiplier))
        else:
            self._operand(integer, arrays, "multiplier", multiplier, lambda array: {"multipliers": "channel"})
        if isinstance(alpha, (int, float)):
            integer.set(alpha=float(alpha))
        else:
            self._operand(integer, arrays, "alpha", alpha, lambda array: {"alpha": "one" if array.bytes == 4 else "column"})
        self.plan("IntegerMatmul", integer, x_tensor, w_tensor, Tensor(shape, type))(**arrays)
        return give(out)

    def integer_dot(self, a: Any, b: Any, length: int, a_scale: Any = None, b_scale: Any = None, type: str = "i32") -> Array:
        """The dot product of two vectors of i4, words of eight; with scales it is a number of the given type.

        >>> a, b = (np.array([w], "u4") for w in (0xCDEF4321, 0xFEDC1234))
        >>> device.integer_dot(a, b, 8).numpy()
        array([40], dtype=int32)
        """
        out = Array(self.handle, (1,), type)
        vector, arrays = Tensor((length,), "i4"), {"x": a, "codes": b, "y": out}
        if type != "i32":
            arrays.update(x_scale=a_scale, scale=b_scale)
        self.plan("IntegerDot", vector, vector, Tensor((1,), type))(**arrays)
        return out

    def integer_top(self, x: Any, w: Any, k: int, length: int, x_scale: Any, scale: Any, index_type: str = "i32") -> tuple[Array, Array]:
        """The k largest scores of each row, and their indices: x and w are words of i4 with rows of `length` codes.

        >>> w = np.array([[0x11111111], [0x22222222]], "u4")
        >>> scores, indices = device.integer_top(w[:1], w, 1, 8, np.ones(1, "f4"), np.ones(2, "f4"))
        >>> scores.numpy(), indices.numpy()
        (array([[16.]], dtype=float32), array([[1]], dtype=int32))
        """
        x, w = self.array(x), self.array(w)
        shape = (x.shape[0], k)
        scores, indices = Array(self.handle, shape, "f32"), Array(self.handle, shape, index_type)
        tensors = (Tensor((x.shape[0], length), "i4"), Tensor((w.shape[0], length), "i4"))
        plan = self.plan("IntegerTop", *tensors, Tensor(shape), Tensor(shape, index_type))
        plan(x=x, codes=w, x_scale=x_scale, scale=scale, y=scores, top_index=indices)
        return scores, indices

    def integer_conv(self, x: Any, w: Any, type: str = "i8", bias: Any = None, multiplier: Any = None, stride: int | tuple = 1,
                     padding: int | tuple = 0, dilation: int | tuple = 1, groups: int = 1, nhwc: bool = False, **attributes: Any) -> Array:  # fmt: skip
        """A 2-D convolution of codes: x [N, C, H, W], w [C_out, C / groups, kh, kw] (nhwc: channels last).

        >>> x, w = np.arange(9, dtype="i1").reshape(1, 1, 3, 3), np.ones((1, 1, 2, 2), "i1")
        >>> device.integer_conv(x, w, "i32").numpy()[0, 0]
        array([[ 8, 12],
               [20, 24]], dtype=int32)
        """
        x, w = self.array(x), self.array(w)
        pairs = {name: value if isinstance(value, tuple) else (value, value)
                 for name, value in (("stride", stride), ("padding", padding), ("dilation", dilation))}  # fmt: skip
        integer = Descriptor("Integer", nhwc=int(nhwc), groups=groups, **attributes)
        for name, (h, wide) in pairs.items():
            integer.set(**{f"{name}_h": h, f"{name}_w": wide})
        high, wide = (1, 2) if nhwc else (2, 3)
        sizes = [
            (x.shape[axis] + 2 * pairs["padding"][i] - pairs["dilation"][i] * (w.shape[axis] - 1) - 1) // pairs["stride"][i] + 1
            for i, axis in enumerate((high, wide))
        ]
        shape = (x.shape[0], *sizes, w.shape[0]) if nhwc else (x.shape[0], w.shape[0], *sizes)
        out = Array(self.handle, check_shape(max(0, size) for size in shape), type)
        arrays = {"x": x, "codes": w, "y": out}
        self._operand(integer, arrays, "bias", bias, lambda array: {"bias_type": array.type})
        if isinstance(multiplier, (int, float)):
            integer.set(multiplier=float(multiplier))
        else:
            self._operand(integer, arrays, "multiplier", multiplier, lambda array: {"multipliers": "channel"})
        self.plan("IntegerConv", integer, Tensor(x.shape, x.type), Tensor(w.shape, w.type), Tensor(out.shape, type))(**arrays)
        return out

    # ---- Training ----

    def scale_count(self, x: Any, train: Descriptor) -> int:
        """How many scales a tensor has: the size of state, scale and dscale.

        >>> device.scale_count(np.ones((3, 4), "f4"), qdnn.training(granularity="channel", axis=0))
        3
        """
        count = ctypes.c_size_t()
        x = self.array(x)
        tensor = Tensor(x.shape, x.type)
        call("GetTrainScaleCount", train.pointer, tensor.pointer, ctypes.byref(count))
        return count.value

    def fake_quantize(self, x: Any, train: Descriptor, state: Any = None) -> Array:
        """y = clamp(round(x / s)) * s, with train = qdnn.training(bits=4, scale_mode="ema"); `state` is read, and written in
        mode ema.

        >>> device.fake_quantize(np.array([-1, 0.3, 1], "f4"), qdnn.training(bits=2)).numpy()
        array([-1.,  0.,  1.], dtype=float32)
        """
        x = self.array(x)
        y = Array(self.handle, x.shape, "f32")
        self.plan("FakeQuantize", Tensor(x.shape, x.type), train)(x=x, y=y, **({} if state is None else {"state": state}))
        return y

    def fake_quantize_backward(self, dy: Any, train: Descriptor, x: Any = None, state: Any = None) -> Array:
        """The gradient of x. x and state as the forward pass had them; backward="identity" needs neither.

        >>> device.fake_quantize_backward(np.array([1, 2], "f4"), qdnn.training(backward="identity")).numpy()
        array([1., 2.], dtype=float32)
        """
        dy = self.array(dy)
        given = {name: value for name, value in (("x", x), ("state", state)) if value is not None}
        dx = Array(self.handle, dy.shape, "f32")
        self.plan("FakeQuantizeBackward", Tensor(dy.shape, dy.type), train)(dy=dy, dx=dx, **given)
        return dx

    def lsq(self, x: Any, scale: Any, train: Descriptor) -> Array:
        """Fake quantization with scales that are parameters.

        >>> device.lsq(np.array([-2, 0.6], "f4"), np.ones(1, "f4"), qdnn.training(bits=2)).numpy()
        array([-1.,  1.], dtype=float32)
        """
        x = self.array(x)
        y = Array(self.handle, x.shape, "f32")
        self.plan("Lsq", Tensor(x.shape, x.type), train)(x=x, scale=scale, y=y)
        return y

    def lsq_backward(self, x: Any, scale: Any, dy: Any, train: Descriptor) -> tuple[Array, Array]:
        """The gradients of x and of the scales.

        >>> dx, dscale = device.lsq_backward(np.array([-2, 0.75], "f4"), np.ones(1, "f4"), np.array([1, 1], "f4"), qdnn.training(bits=2))
        >>> dx.numpy(), dscale.numpy()
        (array([0., 1.], dtype=float32), array([-0.75], dtype=float32))
        """
        x, scale = self.array(x), self.array(scale)
        dx, dscale = Array(self.handle, x.shape, "f32"), Array(self.handle, scale.shape, "f32")
        self.plan("LsqBackward", Tensor(x.shape, x.type), train)(x=x, scale=scale, dy=dy, dx=dx, dscale=dscale)
        return dx, dscale


def training(**attributes: Any) -> Descriptor:
    """A descriptor for the operations of training.

    >>> qdnn.training(bits=4, granularity="channel", axis=0)
    qdnn.Descriptor('Train', bits=4, granularity=1, axis=0)
    """
    return Descriptor("Train", **attributes)


def _codes_tensor(array, described):
    """The tensor of integer codes; ("i4", K) describes rows of K codes in words."""
    if described is None:
        return Tensor(array.shape, array.type)
    type, k = described
    return Tensor((*array.shape[:-1], k), type)
