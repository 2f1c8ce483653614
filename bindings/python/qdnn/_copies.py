"""Copies between strides and types, and rows by their numbers, as methods of a device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._arrays import Array, as_output, data_type, item_bytes
from ._plans import Quantized, Tensor

if TYPE_CHECKING:
    from ._device import Device


def _packed(shape: tuple) -> list[int]:
    strides = [1] * len(shape)
    for i in reversed(range(len(shape) - 1)):
        strides[i] = strides[i + 1] * max(1, shape[i + 1])
    return strides


class Copies:
    """What Device inherits."""

    def copy(self: Device, x: Any, type: str | None = None, *, axes: tuple | None = None, shape: tuple | None = None,
             strides: tuple | None = None, offset: int = 0, out: Any = None) -> Any:  # fmt: skip
        """A packed copy of x, rounded to a type. `axes`: its dimensions in another order. `shape` with `strides` and `offset`, in
        elements: any view of x's elements, also one that repeats (a stride of 0) or leaves out some of them.

        >>> x = np.arange(6, dtype="f4").reshape(2, 3)
        >>> device.copy(x, "f16", axes=(1, 0)).numpy()
        array([[0., 3.],
               [1., 4.],
               [2., 5.]], dtype=float16)
        >>> device.copy(x, shape=(2, 2), strides=(0, 2), offset=1).numpy()
        array([[1., 3.],
               [1., 3.]], dtype=float32)
        """
        x = self.array(x)
        if axes is not None and (shape is not None or strides is not None or offset):
            raise ValueError("axes is given, and a view by shape, strides or offset; one of them says what is copied")
        if (shape is None) != (strides is None):
            raise ValueError("a view has a shape and strides; one of them is missing")
        if axes is not None:
            if sorted(axes) != list(range(len(x.shape))):
                raise ValueError(f"axes are {tuple(axes)}; x has the dimensions {tuple(range(len(x.shape)))}")
            packed = _packed(x.shape)
            shape, strides = tuple(x.shape[axis] for axis in axes), tuple(packed[axis] for axis in axes)
        elif shape is None:
            shape, strides = x.shape, tuple(_packed(x.shape))
        source = _view(x, shape, strides, offset)
        out, give = as_output(self.handle, out, shape, type or (None if out is not None else x.type))
        if shape:
            self.plan("Copy", Tensor(shape, x.type, strides), Tensor(shape, out.type))(x=source, y=out)
        else:
            self.plan("Copy", Tensor((1,), x.type), Tensor((1,), out.type))(x=source, y=out)
        return give(out)

    def gather(self: Device, table: Any, indices: Any, type: str | None = None, out: Any = None) -> Any:
        """The rows of a table by index (i32; of a plain table also i64): an embedding. A qdnn.Quantized table is dequantized (to f32,
        without a type). Rows are what follows the first dimension; an index out of range gives a row of NaN.

        >>> q = device.quantize(np.repeat([[127, 254]], 32, 1).reshape(2, 32).astype("f4"), qdnn.weights("gguf_q8_0"))
        >>> device.gather(q, np.array([1, 0, 1], "i4")).numpy()[:, 0]
        array([254., 127., 254.], dtype=float32)
        >>> device.gather(np.array([[1, 2], [3, 4]], "f2"), np.array([1], "i8")).numpy()
        array([[3., 4.]], dtype=float16)
        """
        indices = self.array(indices)
        if isinstance(table, Quantized):
            shape = (*indices.shape, table.shape[-1])
            out, give = as_output(self.handle, out, shape, None if out is not None and type is None else type or "f32")
            described, y = Tensor(table.shape, out.type), Tensor(shape, out.type)
            self.plan("DequantizeRows", described, table.quantization, y)(row_index=indices, y=out, **table.on(self.handle))
            return give(out)
        table = self.array(table)
        shape = (*indices.shape, *table.shape[1:])
        out, give = as_output(self.handle, out, shape, type or table.type)
        rows = Tensor((indices.bytes // item_bytes(indices.type), *table.shape[1:]), out.type)
        self.plan("Gather", Tensor(table.shape, table.type), data_type(indices.type), rows)(x=table, row_index=indices, y=out)
        return give(out)

    def scatter(self: Device, x: Any, indices: Any, table: Any) -> Any:
        """table[indices[i]] = x[i]. The table is written in place and returned (one on the host is copied to the device first). An
        index (i32 or i64) that names no row is left out; no two may be the same.

        >>> device.scatter(np.array([[5, 6]], "f4"), np.array([1], "i4"), np.zeros((2, 2), "f4")).numpy()
        array([[0., 0.],
               [5., 6.]], dtype=float32)
        """
        x, indices = self.array(x), self.array(indices)
        written = self.array(table)
        plan = self.plan("Scatter", Tensor(x.shape, x.type), data_type(indices.type), Tensor(written.shape, written.type))
        plan(x=x, row_index=indices, y=written)
        return written

    def quantize_rows(self: Device, x: Any, indices: Any, into: Quantized) -> Quantized:
        """Quantizes each row of x, by itself, into the row of a quantized table that indices (i32 or i64) names; returns the table.

        >>> table = device.quantize(np.zeros((3, 32), "f4"), qdnn.weights("gguf_q8_0"))
        >>> device.dequantize(device.quantize_rows(np.full((1, 32), 127, "f4"), np.array([2], "i4"), table)).numpy()[:, 0]
        array([  0.,   0., 127.], dtype=float32)
        """
        x, indices = self.array(x), self.array(indices)
        plan = self.plan("QuantizeRows", Tensor(x.shape, x.type), into.quantization, data_type(indices.type), Tensor(into.shape, x.type))
        plan(x=x, row_index=indices, **into.on(self.handle))
        return into


def _view(x: Array, shape: tuple, strides: tuple, offset: int) -> Array:
    """The elements that a view begins with, checked: a view must lie within x."""
    count = x.bytes // item_bytes(x.type)
    if len(shape) != len(strides):
        raise ValueError(f"the shape is {tuple(shape)}, strides are {tuple(strides)}; there must be one for each dimension")
    if 0 in shape:
        return x
    last = offset + sum((size - 1) * stride for size, stride in zip(shape, strides))
    if offset < 0 or min((*strides, 0)) < 0 or last >= count:
        raise ValueError(f"the view reaches from element {offset} to {last}; x has {count}")
    return Array(x.device, (count - offset,), x.type, x.pointer.value + offset * item_bytes(x.type), x)
