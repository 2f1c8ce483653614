"""Operations around the products, as methods of a device: norms, functions of each element, rope and KV caches, softmax, the
largest of each row, sampling."""

from __future__ import annotations

import ctypes
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ._arrays import Array, as_output, item_bytes
from ._library import call
from ._plans import Descriptor, Quantization, Quantized, Tensor
from ._settings import KvDescription, Norm, Pointwise, Rope, sampling

if TYPE_CHECKING:
    from ._device import Device


class KvCache:
    """Keys and values of past tokens on a device, zeros at first: plain numbers of a `type`, or quantized.

    `pages` of `page_slots` tokens each, which have `heads` heads of `head_size` elements. With `table_pages` a page table says
    which pages a sequence has, so many at most; without, page i is the region of sequence i. Static scales (granularity
    "tensor" or "channel") are passed as `key_scale` and `value_scale`. `value_head_size`: that of values, where it differs; 0:
    there are none, as where values are the first elements of the keys (MLA).

    >>> qdnn.KvCache(device, pages=4, page_slots=16, heads=2, head_size=64, type="f16").bytes
    32768
    >>> i8 = qdnn.quantization(storage="i8", group_size=64, scale_type="f16")
    >>> qdnn.KvCache(device, pages=4, page_slots=16, heads=2, head_size=64, quantization=i8).bytes
    16896
    """

    def __init__(self, device: Device, pages: int, page_slots: int, heads: int, head_size: int, *, type: str | None = None,
                 quantization: Quantization | None = None, table_pages: int = 0, scales: str = "by_slot",
                 value_head_size: int | None = None, key_scale: Any = None, value_scale: Any = None) -> None:  # fmt: skip
        if (type is None) == (quantization is None):
            raise ValueError("a cache has either a type or a quantization")
        self.device, self.type, self.quantization, self.scales = device, type, quantization, scales
        self.pages, self.page_slots, self.table_pages, self.heads = pages, page_slots, table_pages, heads
        self.head_size, self.value_head_size = head_size, head_size if value_head_size is None else value_head_size
        self.keys, self.key_scale = self._make(self.head_size, key_scale)
        self.values, self.value_scale = self._make(self.value_head_size, value_scale) if self.value_head_size else (None, None)

    def _make(self, head_size: int, scale: Any) -> tuple[Array, Array | None]:
        tensor = Tensor((self.pages * self.page_slots, self.heads, head_size))
        if self.quantization is None:
            return self._zeros(math.prod(tensor.shape) * item_bytes(self.type)), None
        codes, scales = (self.quantization.size(tensor, part) for part in ("codes", "scale"))
        given = None if scale is None else self.device.array(scale)
        return self._zeros(codes), given if given is not None or not scales else self._zeros(scales)

    def _zeros(self, size: int) -> Array:
        array = self.device.empty((size,), "u8")
        call("Fill", self.device.pointer, array.pointer, ctypes.c_ubyte(0), ctypes.c_size_t(size))
        return array

    def describe(self, values: bool = False) -> KvDescription | None:
        """The description of the keys, or of the values, that plans take; None: there are no values."""
        if values and not self.value_head_size:
            return None
        how = {"type": self.type} if self.quantization is None else {"quant": self.quantization}
        return KvDescription(pages=self.pages, page_slots=self.page_slots, table_pages=self.table_pages, heads=self.heads,
                             head_size=self.value_head_size if values else self.head_size, scales=self.scales, **how)  # fmt: skip

    @property
    def operands(self) -> dict[str, Array]:
        """Its arrays by the names of operands."""
        named = {"keys": self.keys, "values": self.values, "key_scale": self.key_scale, "value_scale": self.value_scale}
        return {name: array for name, array in named.items() if array is not None}

    @property
    def bytes(self) -> int:
        return sum(array.bytes for array in self.operands.values())

    def numpy(self) -> tuple[np.ndarray, np.ndarray | None]:
        """Keys and values as numbers, [pages, page_slots, heads, head_size]."""
        keys = self._numbers(self.keys, self.key_scale, self.head_size)
        return keys, None if self.values is None else self._numbers(self.values, self.value_scale, self.value_head_size)

    def _numbers(self, codes: Array, scale: Array | None, head_size: int) -> np.ndarray:
        shape = (self.pages, self.page_slots, self.heads, head_size)
        if self.quantization is None:
            return Array(self.device.handle, shape, self.type, codes.pointer.value, codes).numpy()
        parts = {"codes": codes} if scale is None else {"codes": codes, "scale": self._scales_by_slot(scale)}
        held = Quantized((self.pages * self.page_slots, self.heads, head_size), self.quantization, parts)
        return self.device.dequantize(held).numpy().reshape(shape)

    def _scales_by_slot(self, scale: Array) -> Any:
        if self.scales == "by_slot":
            return scale
        slots = self.pages * self.page_slots
        by_head = scale.numpy().reshape(self.heads, slots, -1)
        return np.ascontiguousarray(by_head.transpose(1, 0, 2)).reshape(-1)

    def __repr__(self) -> str:
        how = self.type or repr(self.quantization)
        return f"<qdnn.KvCache {self.pages} pages of {self.page_slots}, {self.heads} heads of {self.head_size}, {how}>"


class Rows:
    """What Device inherits."""

    def _written(self: Device, shape: tuple, type: str, quantization: Quantization | None, out: Any, global_scale: Any) -> tuple:
        """The operands that a plan writes, and a function that makes the result of them."""
        if quantization is None:
            out, give = as_output(self.handle, out, shape, type)
            return {"y": out}, lambda: give(out)
        if out is not None:
            raise ValueError("a quantized result is not written to `out`")
        parts = self._sized_parts(Tensor(shape, type), quantization)
        if global_scale is not None:
            parts["global_scale"] = self.array(global_scale)
        return parts, lambda: Quantized(shape, quantization, parts)

    # ---- Norms ----

    def rms_norm(self, x: Any, weight: Any = None, eps: float = 1e-6, *, residual: Any = None, weight_plus_one: bool = False,
                 type: str | None = None, quantization: Quantization | None = None, global_scale: Any = None, out: Any = None) -> Any:  # fmt: skip
        """y = h / sqrt(mean(h^2) + eps) * weight for each row of x; h is x, or x + residual: then the result is (y, h).
        With `quantization` y is a Quantized tensor, made in the same kernel.

        >>> device.rms_norm(np.array([[3, 4]], "f4"), np.array([1, 2], "f4"), eps=0).numpy()
        array([[0.84852815, 2.2627418 ]], dtype=float32)
        """
        return self._norm("rms", x, weight, None, eps, residual, weight_plus_one, type, quantization, global_scale, out)

    def layer_norm(self, x: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5, *, residual: Any = None,
                   type: str | None = None, quantization: Quantization | None = None, global_scale: Any = None, out: Any = None) -> Any:  # fmt: skip
        """y = (h - mean(h)) / sqrt(variance(h) + eps) * weight + bias for each row; as rms_norm otherwise.

        >>> device.layer_norm(np.array([[1, 3]], "f4"), eps=0).numpy()
        array([[-1.,  1.]], dtype=float32)
        """
        return self._norm("layer", x, weight, bias, eps, residual, False, type, quantization, global_scale, out)

    def _norm(self: Device, kind: str, x: Any, weight: Any, bias: Any, eps: float, residual: Any, plus_one: bool, type: str | None,
              quantization: Quantization | None, global_scale: Any, out: Any) -> Any:  # fmt: skip
        x = self.array(x)
        operands = {name: self.array(value) for name, value in (("weight", weight), ("bias", bias), ("residual", residual))
                    if value is not None}  # fmt: skip
        types = {f"{'sum' if name == 'residual' else name}_type": array.type for name, array in operands.items()}
        norm = Norm(kind=kind, eps=eps, weight_plus_one=int(plus_one), **types)
        written, give = self._written(x.shape, type or x.type, quantization, out, global_scale)
        if residual is not None:
            operands["sum"] = self.empty(x.shape, types["sum_type"])
        plan = self.plan("Norm", norm, Tensor(x.shape, x.type), Tensor(x.shape, type or x.type), quantization)
        plan(x=x, **operands, **written)
        return (give(), operands["sum"]) if residual is not None else give()

    # ---- Each element ----

    def add(self, x: Any, b: Any, **settings: Any) -> Any:
        """x + b: b is an array of x's shape, one row, or a number. `type`, `quantization` and `out` as for rms_norm.

        >>> device.add(np.array([[1, 2], [3, 4]], "f4"), np.array([10, 20], "f4")).numpy()
        array([[11., 22.],
               [13., 24.]], dtype=float32)
        """
        return self._pointwise("add", x, b, **settings)

    def multiply(self, x: Any, b: Any, **settings: Any) -> Any:
        """x * b, as add.

        >>> device.multiply(np.array([1, 2], "f2"), 0.5).numpy()
        array([0.5, 1. ], dtype=float16)
        """
        return self._pointwise("mul", x, b, **settings)

    def function(self, x: Any, function: str, *, limit: float = 0.0, **settings: Any) -> Any:
        """f(x): "relu", "silu", "gelu_erf", "gelu_tanh", "tanh", "sigmoid", "relu_squared", "softcap" (with its limit).

        >>> device.function(np.array([-1, 0, 2], "f4"), "relu_squared").numpy()
        array([0., 0., 4.], dtype=float32)
        """
        return self._pointwise("function", x, None, function=function, limit=limit, **settings)

    def gated(self, x: Any, b: Any = "last_half", function: str = "silu", *, limit: float = 0.0, factor: float = 0.0, **settings: Any) -> Any:
        """f(a) * b. b is an array, and a is x; or both are parts of the rows of x, where b is "last_half", "first_half" or
        "interleaved" (the odd columns). `limit` and `factor` belong to "clamped_silu".

        >>> device.gated(np.array([[-1, 2, 3, 4]], "f4"), function="relu").numpy()
        array([[0., 8.]], dtype=float32)
        """
        return self._pointwise("gated", x, b, function=function, limit=limit, factor=factor, **settings)

    def _pointwise(self: Device, kind: str, x: Any, b: Any, *, function: str = "none", limit: float = 0.0, factor: float = 0.0,
                   type: str | None = None, quantization: Quantization | None = None, global_scale: Any = None, out: Any = None) -> Any:  # fmt: skip
        x = self.array(x)
        shape, second, operands, tensor = x.shape, {"second": "none"}, {}, None
        if isinstance(b, str):
            shape, second = (*shape[:-1], shape[-1] // 2), {"second": b}
        elif isinstance(b, (int, float)):
            second = {"second": "number", "number": b}
        elif b is not None:
            operands["b"] = b = self.array(b)
            tensor, second = Tensor(b.shape, b.type), {"second": "tensor" if b.shape == shape else "row", "second_type": b.type}
        how = Pointwise(kind=kind, function=function, limit=limit, factor=factor, **second)
        written, give = self._written(shape, type or x.type, quantization, out, global_scale)
        self.plan("Pointwise", how, Tensor(x.shape, x.type), tensor, Tensor(shape, type or x.type), quantization)(x=x, **operands, **written)
        return give()

    # ---- Rope and KV caches ----

    def rope(self: Device, x: Any, tables: tuple, position: Any, *, heads: int | None = None, cache: KvCache | None = None, slots: Any = None,
             sequence: Any = None, key_index: Any = None, page_table: Any = None, pairs: str = "halves", first: int = 0,
             sections: str = "one_position", section: tuple = (), section_stride: int = 0, type: str | None = None, out: Any = None) -> Any:  # fmt: skip
        """Rotates heads by their positions (i32, one per token), with the tables of qdnn.rope_tables (None: nothing is rotated).

        Without a cache x is [tokens, heads, head size], and so is the result. With one, x is [tokens, ...]: rows of queries (so
        many `heads`), keys and values. The queries are returned; keys and values go into the cache in the same kernel, to
        `slots` (i32, one per token), or to the place that `sequence`, `key_index` and `page_table` name.

        >>> tables = qdnn.rope_tables(2, 8)
        >>> x = np.array([[[1, 0]], [[1, 0]]], "f4")
        >>> device.rope(x, tables, np.array([0, 1], "i4")).numpy()[:, 0]
        array([[1.        , 0.        ],
               [0.5403023 , 0.84147096]], dtype=float32)
        """
        x = self.array(x)
        settings = {"pairs": pairs, "first": first, "sections": sections, "section": tuple(section), "section_stride": section_stride}
        operands = {"x": x}
        if tables is not None:
            operands.update(cos=self.array(tables[0]), sin=self.array(tables[1]), position=position)
            settings.update(positions=operands["cos"].shape[0], rotary=2 * operands["cos"].shape[1])
        if cache is not None:
            settings["slots"] = "listed" if slots is not None else "by_sequence"
            where = {"row_index": slots, "sequence": sequence, "key_index": key_index, "page_table": page_table}
            operands.update({name: value for name, value in where.items() if value is not None}, **cache.operands)
            shape = (x.shape[0], heads or 0, cache.head_size)
        else:
            shape = x.shape
        y, give = None, lambda: None
        if cache is None or heads:
            operands["y"], given = as_output(self.handle, out, shape, type or x.type)
            y, give = Tensor(shape, type or x.type), lambda: given(operands["y"])
        caches = (None, None) if cache is None else (cache.describe(), cache.describe(values=True))
        self.plan("Rope", Rope(**settings), Tensor(x.shape, x.type), y, *caches)(**operands)
        return give()

    # ---- Selection ----

    def softmax(self: Device, x: Any, *, mask: Any = None, scale: float = 1.0, slope: Any = None, sink: Any = None, type: str | None = None,
                out: Any = None) -> Any:  # fmt: skip
        """softmax(scale * x + slope * mask) of each row; `mask` is [mask rows, n] and repeats, `slope` and `sink` (one more score
        of each row) are f32, one for each repetition.

        >>> device.softmax(np.zeros((1, 4), "f4")).numpy()
        array([[0.25, 0.25, 0.25, 0.25]], dtype=float32)
        """
        x = self.array(x)
        operands = {name: self.array(value) for name, value in (("mask", mask), ("slope", slope), ("sink", sink)) if value is not None}
        select = Descriptor("Select", **{name: 1 for name in operands if name != "mask"})
        if mask is not None:
            select.set(mask=operands["mask"].type, mask_rows=math.prod(operands["mask"].shape[:-1]))
        if scale != 1:
            select.set(scale=float(scale))
        out, give = as_output(self.handle, out, x.shape, type or x.type)
        self.plan("Softmax", Tensor(x.shape, x.type), select, Tensor(x.shape, out.type))(x=x, y=out, **operands)
        return give(out)

    def top_k(self: Device, x: Any, k: int) -> tuple[Array, Array]:
        """The k largest elements of each row, the largest first, and their indices (i32).

        >>> values, indices = device.top_k(np.array([[3, 9, 5]], "f4"), 2)
        >>> values.numpy(), indices.numpy()
        (array([[9., 5.]], dtype=float32), array([[1, 2]], dtype=int32))
        """
        x = self.array(x)
        shape = (*x.shape[:-1], k)
        values, indices = self.empty(shape, x.type), self.empty(shape, "i32")
        self.plan("TopK", Tensor(x.shape, x.type), Descriptor("Select", top=k))(x=x, y=values, index=indices)
        return values, indices

    def route(self: Device, logits: Any, k: int, *, expert_bias: Any = None, epsilon: float = 0.0, factor: float = 1.0, **settings: Any) -> tuple[Array, Array]:  # fmt: skip
        """The k experts of each token from a router's logits [tokens, experts], the best first (i32), and their weights (f32).
        Settings: scores="softmax" or "sigmoid", expert_groups, kept_groups, group_score="largest" or "two_largest", renormalize=1.

        >>> experts, weights = device.route(np.array([[0, 9, 9, 0]], "f4"), 2, renormalize=1)
        >>> experts.numpy(), weights.numpy()
        (array([[1, 2]], dtype=int32), array([[0.5, 0.5]], dtype=float32))
        """
        logits = self.array(logits)
        select, operands = Descriptor("Select", top=k, **settings), {}
        if expert_bias is not None:
            operands["expert_bias"] = expert_bias
            select.set(expert_bias=1)
        select.set(epsilon=float(epsilon), factor=float(factor))
        shape = (*logits.shape[:-1], k)
        experts, weights = self.empty(shape, "i32"), self.empty(shape, "f32")
        self.plan("Route", Tensor(logits.shape, logits.type), select)(logits=logits, index=experts, weight_out=weights, **operands)
        return experts, weights

    def combine(self: Device, x: Any, weights: Any, residual: Any = None, *, type: str | None = None, out: Any = None) -> Any:
        """The weighted sum of what the k experts of each token gave: x is [..., k, n], weights f32 [..., k]; plus a residual.

        >>> device.combine(np.array([[[1, 2], [3, 4]]], "f4"), np.array([[0.5, 0.25]], "f4")).numpy()
        array([[1.25, 2.  ]], dtype=float32)
        """
        x = self.array(x)
        operands = {} if residual is None else {"residual": self.array(residual)}
        out, give = as_output(self.handle, out, (*x.shape[:-2], x.shape[-1]), type or x.type)
        select = Descriptor("Select", top=x.shape[-2], residual=int(residual is not None))
        self.plan("Combine", Tensor(x.shape, x.type), select, Tensor(out.shape, out.type))(x=x, row_weight=weights, y=out, **operands)
        return give(out)

    def sample(self: Device, logits: Any, *, seed: Any = None, step: Any = 0, token_count: Any = None, **settings: Any) -> Array:
        """A token (i32) from each row of logits. Without a seed: the largest. With one (u64, a number or one per row) a random
        one; the same seed and step give the same token. Settings are those of qdnn.sampling: temperature, top_p, top_k, min_p,
        and with `token_count` (i32 [rows, n], how often each has occurred) the penalties repetition, frequency and presence.

        >>> logits = np.array([[0, 5, 1], [7, 0, 7]], "f4")
        >>> device.sample(logits).numpy()
        array([1, 0], dtype=int32)
        >>> device.sample(logits, seed=1, step=[0, 4], top_k=1).numpy()
        array([1, 0], dtype=int32)
        """
        logits = self.array(logits)
        rows = math.prod(logits.shape[:-1])
        index = self.empty(logits.shape[:-1], "i32")
        select, operands = Descriptor("Select", greedy=int(seed is None), counts=int(token_count is not None)), {}
        if token_count is not None:
            operands["token_count"] = token_count
        if seed is not None:
            by_row = lambda value: np.broadcast_to(np.asarray(value, np.uint64), (rows,))
            operands.update(sampling=sampling(rows, **settings).view(np.uint8), seed=by_row(seed), step=by_row(step))
        elif settings:
            raise ValueError(f"{', '.join(settings)}: only a random choice has settings; pass a seed")
        self.plan("Sample", Tensor(logits.shape, logits.type), select)(logits=logits, index=index, **operands)
        return index
