"""Attention over KV caches, as a method of a device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._arrays import Array, as_output
from ._plans import Tensor
from ._settings import Attention, KvDescription

if TYPE_CHECKING:
    from ._device import Device
    from ._rows import KvCache


class Attending:
    """What Device inherits."""

    def attention(self: Device, x: Any, cache: KvCache | tuple, *, key_index: Any = None, lengths: Any = None, visible: Any = None,
                  window: int = 0, sequence: Any = None, page_table: Any = None, scale: float = 0.0, cap: float = 0.0, sink: Any = None,
                  mask: Any = None, slope: Any = None, mode: str = "auto", value_size: int = 0, type: str | None = None,
                  out: Any = None) -> Any:  # fmt: skip
        """softmax(scores of the queries x [tokens, heads, head size] with the keys) times the values, [tokens, heads, value size].

        `cache`: a qdnn.KvCache, or (keys, values), arrays [keys, heads, head size] of one sequence, or with the sequences in
        front. A query sees keys 0 to `key_index` (i32, one per token: causal), or all of its sequence's `lengths` (i32, one per
        sequence), or those from the first to the last of `visible` (i32 [tokens, 2]); none given: all that there are; of these
        the last `window`. `sequence` (i32, one per token; None: all are of sequence 0) and `page_table` say where keys are.
        `scale` 0: 1 / sqrt(head size). `mask` is added to the scores, [tokens, keys] or [heads, tokens, keys], times `slope` (f32,
        one per head) if that is given; `slope` alone: ALiBi. `sink` (f32, one per head) is one more score.
        mode: "auto" (tensor cores for f16 and bf16, unless the device asks for math="exact"), "exact" (the same bits on every GPU),
        "tensor". `value_size`: without values in the cache, they are the first so many elements of the keys.

        >>> keys, values = np.zeros((2, 1, 8), "f4"), np.stack([np.full((1, 8), 1, "f4"), np.full((1, 8), 3, "f4")])
        >>> device.attention(np.ones((2, 1, 8), "f4"), (keys, values), key_index=np.array([0, 1], "i4")).numpy()[:, 0, 0]
        array([1., 2.], dtype=float32)
        """
        x = self.array(x)
        described, operands = _described(self, cache)
        sees = {"key_index": key_index, "sequence_length": lengths, "visible": visible}
        given = {name: value for name, value in sees.items() if value is not None}
        if len(given) > 1:
            raise ValueError(f"{' and '.join(given)}: one of them says which keys a query sees")
        named = {"key_index": "key_index", "sequence_length": "length", "visible": "range"}
        settings = {"mode": mode, "scale": scale, "cap": cap, "sees": named[next(iter(given))] if given else "all", "window": window,
                    "one_sequence": int(sequence is None), "sinks": int(sink is not None), "value_size": value_size}  # fmt: skip
        others = {"sequence": sequence, "page_table": page_table, "sink": sink, "slope": slope, "mask": mask}
        operands.update({name: self.array(value) for name, value in {**given, **others}.items() if value is not None})
        settings.update(_bias(operands))
        size = value_size if described[1] is None else described[1].values["head_size"]
        if not size:
            raise ValueError("the cache has no values; pass value_size, how many elements of the keys they are")
        shape = (*x.shape[:2], size)
        out, give = as_output(self.handle, out, shape, type or x.type)
        tensors = (Tensor(x.shape, x.type), *described, Tensor(shape, out.type))
        self.plan("Attention", Attention(**settings), *tensors)(x=x, y=out, **operands)
        return give(out)


def _bias(operands: dict[str, Array]) -> dict[str, Any]:
    if "mask" not in operands:
        return {"bias": "alibi"} if "slope" in operands else {}
    mask = operands["mask"]
    by_head = {"mask_heads": 1} if len(mask.shape) == 3 else {}
    return {"bias": "sloped_mask" if "slope" in operands else "mask", "mask_type": mask.type, "mask_keys": mask.shape[-1], **by_head}


def _described(device: Device, cache: Any) -> tuple[tuple, dict[str, Array]]:
    """The descriptions of keys and values, and their operands."""
    if not isinstance(cache, tuple):
        return (cache.describe(), cache.describe(values=True)), cache.operands
    operands = {name: device.array(array) for name, array in zip(("keys", "values"), cache)}
    return tuple(_contiguous(array) for array in operands.values()) + (None,) * (2 - len(operands)), operands


def _contiguous(array: Array) -> KvDescription:
    if len(array.shape) not in (3, 4):
        raise ValueError(f"keys and values have the shape {array.shape}; it must be [keys, heads, head size], or with sequences in front")
    sequences, keys, heads, size = (1, *array.shape)[-4:]
    return KvDescription(pages=sequences, page_slots=keys, heads=heads, head_size=size, type=array.type)
