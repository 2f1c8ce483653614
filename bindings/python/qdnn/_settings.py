"""What operations around the products take: structures of the C API, filled by names."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from ._arrays import is_type, data_type
from ._library import call, constants, did_you_mean, number
from ._plans import Quantization

_i32, _i64, _f32, _f64 = ctypes.c_int, ctypes.c_int64, ctypes.c_float, ctypes.c_double


class Settings:
    """A structure of the C API by the names of its members, as its header documents them; members that are not given are 0.

    Values are numbers, or names of the constants of their type: Norm(kind="layer", eps=1e-5, weight_type="f16").
    """

    # member: C type, and the prefix of the constants that are its values
    MEMBERS: dict[str, tuple[Any, str | None]] = {}

    def __init_subclass__(cls) -> None:
        fields = [("size", ctypes.c_size_t), *((name, kind) for name, (kind, _) in cls.MEMBERS.items())]
        cls._structure = type(f"{cls.__name__}Structure", (ctypes.Structure,), {"_fields_": fields})

    def __init__(self, **given: Any) -> None:
        self.values, self._kept = given, []
        self._c = self._structure(size=ctypes.sizeof(self._structure))
        for name, value in given.items():
            if name not in self.MEMBERS:
                raise TypeError(f"'{name}' is no setting of {type(self).__name__}{did_you_mean(name, self.MEMBERS)}")
            self._set(name, value, *self.MEMBERS[name])

    def _set(self, name: str, value: Any, kind: Any, prefix: str | None) -> None:
        if isinstance(value, str):
            if prefix is None:
                raise ValueError(f"{name} is '{value}'; it takes a number")
            value = data_type(value) if prefix == "DATA" and is_type(value) else number(prefix, value)
        elif kind is ctypes.c_void_p and value is not None:
            self._kept.append(value)
            value = value.pointer if isinstance(value, Quantization) else value.ctypes.data
        elif isinstance(value, tuple):
            value = kind(*value)
        try:
            setattr(self._c, name, value)
        except TypeError as error:
            raise TypeError(f"{name} is {value!r}: {error}") from None

    @property
    def pointer(self) -> Any:
        return ctypes.byref(self._c)

    @property
    def key(self) -> tuple:
        """The values that identify a plan; another object by its own."""
        shown = ((name, getattr(value, "key", value)) for name, value in sorted(self.values.items()))
        return (type(self).__name__, *shown)

    def __repr__(self) -> str:
        return f"qdnn.{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.values.items())})"


class Norm(Settings):
    """qdnnNorm_t of qdnn/norm.h.

    >>> qdnn.Norm(kind="layer", eps=1e-5)
    qdnn.Norm(kind='layer', eps=1e-05)
    """

    MEMBERS = {
        "kind": (_i32, "NORM"), "eps": (_f32, None), "weight_type": (_i32, "DATA"), "weight_plus_one": (_i32, None),
        "bias_type": (_i32, "DATA"), "sum_type": (_i32, "DATA"),
    }  # fmt: skip


class Pointwise(Settings):
    """qdnnPointwise_t of qdnn/pointwise.h.

    >>> qdnn.Pointwise(kind="gated", function="silu", second="last_half")
    qdnn.Pointwise(kind='gated', function='silu', second='last_half')
    """

    MEMBERS = {
        "kind": (_i32, "POINTWISE"), "function": (_i32, "ACTIVATION"), "second": (_i32, "SECOND"), "second_type": (_i32, "DATA"),
        "number": (_f32, None), "limit": (_f32, None), "factor": (_f32, None),
    }  # fmt: skip


class Rope(Settings):
    """qdnnRope_t of qdnn/rope.h.

    >>> qdnn.Rope(rotary=64, positions=4096, pairs="neighbours")
    qdnn.Rope(rotary=64, positions=4096, pairs='neighbours')
    """

    MEMBERS = {
        "rotary": (_i64, None), "first": (_i64, None), "positions": (_i64, None), "pairs": (_i32, "ROPE"),
        "sections": (_i32, "ROPE"), "section": (_i64 * 4, None), "section_stride": (_i64, None), "slots": (_i32, "KV_SLOTS"),
    }  # fmt: skip


class KvDescription(Settings):
    """qdnnKvCache_t of qdnn/cache.h: how the keys, or the values, lie in memory.

    >>> qdnn.KvDescription(pages=4, page_slots=16, heads=2, head_size=64, type="f16")
    qdnn.KvDescription(pages=4, page_slots=16, heads=2, head_size=64, type='f16')
    """

    MEMBERS = {
        "pages": (_i64, None), "page_slots": (_i64, None), "table_pages": (_i64, None), "heads": (_i64, None),
        "head_size": (_i64, None), "type": (_i32, "DATA"), "quant": (ctypes.c_void_p, None), "scales": (_i32, "KV_SCALES"),
        "page_stride": (_i64, None), "slot_stride": (_i64, None), "head_stride": (_i64, None),
    }  # fmt: skip


class Attention(Settings):
    """qdnnAttention_t of qdnn/attention.h.

    >>> qdnn.Attention(mode="tensor", sees="length", window=128)
    qdnn.Attention(mode='tensor', sees='length', window=128)
    """

    MEMBERS = {
        "mode": (_i32, "ATTENTION"), "scale": (_f32, None), "cap": (_f32, None), "sees": (_i32, "SEES"), "window": (_i64, None),
        "one_sequence": (_i32, None), "sinks": (_i32, None), "bias": (_i32, "BIAS"), "mask_type": (_i32, "DATA"),
        "mask_keys": (_i64, None), "mask_heads": (_i32, None), "mask_token_stride": (_i64, None), "mask_head_stride": (_i64, None),
        "value_size": (_i64, None), "counters": (_i32, None),
    }  # fmt: skip


class QuantizedType(Settings):
    """qdnnQuantizedType_t of qdnn/matmul.h, for device.plan("TypedMatmul", ...).

    >>> qdnn.QuantizedType(storage="i4", scale="none", zero="none")
    qdnn.QuantizedType(storage='i4', scale='none', zero='none')
    """

    MEMBERS = {
        "storage": (_i32, "DATA"), "scale": (_i32, "GRANULARITY"), "scale_group_size": (_i64, None), "zero": (_i32, "GRANULARITY"),
        "zero_group_size": (_i64, None),
    }  # fmt: skip

    @property
    def pointer(self) -> Any:
        """This structure has no member `size`."""
        return ctypes.c_void_p(ctypes.addressof(self._c) + self._structure.storage.offset)


class RopeTables(Settings):
    """qdnnRopeTables_t of qdnn/rope.h: the frequencies of rope. `frequencies` and `divisors` are f32 arrays.

    >>> qdnn.RopeTables(rotary=64, base=500000.0, rule="llama3", factor=8.0)
    qdnn.RopeTables(rotary=64, base=500000.0, rule='llama3', factor=8.0)
    """

    MEMBERS = {
        "rotary": (_i64, None), "base": (_f64, None), "frequencies": (ctypes.c_void_p, None), "divisors": (ctypes.c_void_p, None),
        "rule": (_i32, "ROPE_RULE"), "factor": (_f64, None), "low_factor": (_f64, None), "high_factor": (_f64, None),
        "beta_fast": (_f64, None), "beta_slow": (_f64, None), "yarn_exact": (_i32, None), "original_positions": (_i64, None),
        "attention_factor": (_f32, None),
    }  # fmt: skip


def rope_tables(rotary: int, positions: int, base: float = 10000.0, first: int = 0, **settings: Any) -> tuple[np.ndarray, np.ndarray]:
    """Cosines and sines [positions, rotary / 2], made on the host: the same bits on every machine.

    `settings` are those of RopeTables: rule="linear", "llama3" or "yarn" with factor=..., frequencies, divisors and so on.

    >>> cos, sin = qdnn.rope_tables(4, 2)
    >>> cos
    array([[1.       , 1.       ],
           [0.5403023, 0.99995  ]], dtype=float32)
    """
    for name in ("frequencies", "divisors"):
        if settings.get(name) is not None:
            settings[name] = np.ascontiguousarray(settings[name], np.float32)
            if settings[name].shape != (rotary // 2,):
                raise ValueError(f"{name} has the shape {settings[name].shape}; it must be {(rotary // 2,)}")
    tables = RopeTables(rotary=rotary, base=base, **settings)
    cos, sin = (np.empty((max(0, positions), max(0, rotary) // 2), np.float32) for _ in range(2))
    where = (table.ctypes.data_as(ctypes.c_void_p) for table in (cos, sin))
    call("MakeRopeTables", tables.pointer, _i64(first), _i64(positions), *where)
    return cos, sin


# The members of qdnnSampling_t, one row of a sample plan each.
SAMPLING = np.dtype([
    ("temperature", "f4"), ("top_p", "f4"), ("min_p", "f4"), ("top_k", "i4"), ("repetition", "f4"), ("frequency", "f4"),
    ("presence", "f4"), ("reserved", "u4"),
])  # fmt: skip


def sampling(rows: int, **settings: Any) -> np.ndarray:
    """The settings of each row of device.sample, as bytes: temperature, top_p, min_p, top_k and the penalties repetition,
    frequency and presence; each a number, or one per row.

    >>> qdnn.sampling(2, temperature=[0, 0.7], top_k=40)["temperature"]
    array([0. , 0.7], dtype=float32)
    """
    made = np.zeros(rows, SAMPLING)
    made["temperature"], made["top_p"], made["repetition"] = 1, 1, 1
    for name, value in settings.items():
        if name not in SAMPLING.names:
            raise TypeError(f"'{name}' is no setting of sampling{did_you_mean(name, SAMPLING.names)}")
        made[name] = value
    return made
