"""The functions that the GGUF integration of transformers asks of a kernel module: products, rows and dequantization of blocks that
stay tensors of bytes, as they are in the file.

    qdnn.transformers.use_for_gguf()       # makes transformers use this module

Types are ggml's numbers. Tensors on a GPU are used in place; those on the host are copied to ptxvm at each call.
"""

from __future__ import annotations

import torch

from ._plans import Quantized, weights
from .torch import _give, _on_stream, _result, device_of

# ggml's number of a type: its name, elements and bytes of a block
TYPES = {
    2: ("q4_0", 32, 18), 3: ("q4_1", 32, 20), 6: ("q5_0", 32, 22), 7: ("q5_1", 32, 24), 8: ("q8_0", 32, 34), 9: ("q8_1", 32, 36),
    10: ("q2_k", 256, 84), 11: ("q3_k", 256, 110), 12: ("q4_k", 256, 144), 13: ("q5_k", 256, 176), 14: ("q6_k", 256, 210),
    15: ("q8_k", 256, 292), 16: ("iq2_xxs", 256, 66), 17: ("iq2_xs", 256, 74), 18: ("iq3_xxs", 256, 98), 19: ("iq1_s", 256, 50),
    20: ("iq4_nl", 32, 18), 21: ("iq3_s", 256, 110), 22: ("iq2_s", 256, 82), 23: ("iq4_xs", 256, 136), 29: ("iq1_m", 256, 56),
    34: ("tq1_0", 256, 54), 35: ("tq2_0", 256, 66), 39: ("mxfp4", 32, 17), 40: ("nvfp4", 64, 36), 41: ("q1_0", 128, 18),
    42: ("q2_0", 64, 18),
}  # fmt: skip
GEMV_TYPES = frozenset(TYPES)  # every type has products
MAX_GEMV_ROWS = 8  # transformers unpacks the weights for more rows than that; mul_mat_vec itself takes any number


def quantized(blocks: torch.Tensor, ggml_type: int) -> Quantized:
    """Blocks [..., rows, bytes of a row] as a quantized tensor [..., rows, columns], over the same memory."""
    if ggml_type not in TYPES:
        raise ValueError(f"{ggml_type} is no type of GGUF blocks: {', '.join(f'{number} ({name})' for number, (name, *_) in TYPES.items())}")
    name, elements, size = TYPES[ggml_type]
    if blocks.shape[-1] % size:
        raise ValueError(f"rows have {blocks.shape[-1]} bytes; those of {name} are a multiple of {size}")
    shape = (*blocks.shape[:-1], blocks.shape[-1] // size * elements)
    return Quantized(shape, weights(f"gguf_{name}"), {"codes": blocks.detach().contiguous().reshape(-1)})


@torch.library.custom_op("qdnn::gguf_mul_mat_vec", mutates_args=())
def _mul_mat_vec(weight: torch.Tensor, x: torch.Tensor, ggml_type: int) -> torch.Tensor:
    device = device_of(x.device)
    out, y = _result(x, (*x.shape[:-1], weight.shape[0]), x.dtype)
    if out.numel():
        _on_stream(device, x)
        device.matmul(x.detach().contiguous(), quantized(weight, ggml_type), out=y)
    return _give(out, y)


@_mul_mat_vec.register_fake
def _(weight, x, ggml_type):
    return x.new_empty((*x.shape[:-1], weight.shape[0]))


@torch.library.custom_op("qdnn::gguf_mul_mat_id", mutates_args=())
def _mul_mat_id(blocks: torch.Tensor, x: torch.Tensor, ids: torch.Tensor, ggml_type: int) -> torch.Tensor:
    device = device_of(x.device)
    tokens, chosen = ids.shape
    rows = x.detach().unsqueeze(1).expand(tokens, chosen, x.shape[-1]).reshape(tokens * chosen, -1).contiguous()
    out, y = _result(x, (tokens * chosen, blocks.shape[1]), x.dtype)
    if out.numel():
        _on_stream(device, x)
        device.matmul(rows, quantized(blocks, ggml_type), expert_index=ids.to(torch.int32).reshape(-1).contiguous(), out=y)
    return _give(out, y).reshape(tokens, chosen, -1)


@_mul_mat_id.register_fake
def _(blocks, x, ids, ggml_type):
    return x.new_empty((*ids.shape, blocks.shape[1]))


@torch.library.custom_op("qdnn::gguf_dequantize", mutates_args=())
def _dequantize(weight: torch.Tensor, ggml_type: int, dtype: torch.dtype) -> torch.Tensor:
    device, held = device_of(weight.device), quantized(weight, ggml_type)
    out, y = _result(weight, held.shape, dtype)
    if out.numel():
        _on_stream(device, weight)
        device.dequantize(held, out=y)
    return _give(out, y)


def _columns(weight, ggml_type):
    _, elements, size = TYPES[ggml_type]
    return weight.shape[-1] // size * elements


@_dequantize.register_fake
def _(weight, ggml_type, dtype):
    return weight.new_empty((*weight.shape[:-1], _columns(weight, ggml_type)), dtype=dtype)


@torch.library.custom_op("qdnn::gguf_get_rows", mutates_args=())
def _get_rows(weight: torch.Tensor, indices: torch.Tensor, ggml_type: int, dtype: torch.dtype) -> torch.Tensor:
    device, held = device_of(weight.device), quantized(weight, ggml_type)
    out, y = _result(weight, (*indices.shape, held.shape[-1]), dtype)
    if out.numel():
        _on_stream(device, weight)
        device.gather(held, indices.to(torch.int32).contiguous(), out=y)
    return _give(out, y)


@_get_rows.register_fake
def _(weight, indices, ggml_type, dtype):
    return weight.new_empty((*indices.shape, _columns(weight, ggml_type)), dtype=dtype)


# ---- The interface ----


def mul_mat_vec(weight: torch.Tensor, x: torch.Tensor, ggml_type: int, out_features: int) -> torch.Tensor:
    """x [M, K] times blocks [N, bytes of a row]: [M, N] of x's type."""
    return _mul_mat_vec(weight, x, ggml_type)


def mul_mat_id(blocks: torch.Tensor, x: torch.Tensor, ids: torch.Tensor, ggml_type: int, out_features: int) -> torch.Tensor:
    """Each row of x [tokens, K] times those experts of blocks [experts, N, bytes of a row] that ids [tokens, chosen] names:
    [tokens, chosen, N]."""
    return _mul_mat_id(blocks, x, ids, ggml_type)


def dequantize(weight: torch.Tensor, ggml_type: int, rows: int, cols: int, dtype: torch.dtype) -> torch.Tensor:
    """Blocks [rows, bytes of a row] as plain numbers [rows, cols]."""
    return _dequantize(weight, ggml_type, dtype).reshape(rows, cols)


def get_rows(weight: torch.Tensor, indices: torch.Tensor, ggml_type: int, cols: int, dtype: torch.dtype) -> torch.Tensor:
    """Rows of a table by index, as plain numbers [indices, cols]."""
    return _get_rows(weight, indices, ggml_type, dtype)
