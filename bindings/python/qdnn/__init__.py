"""qdnn: quantization on NVIDIA GPUs, or without one, the same bits everywhere.

    import numpy as np, qdnn

    device = qdnn.Device()                       # a GPU, or ptxvm if there is none
    weights = np.random.randn(256, 512).astype("f4")
    q = device.quantize(weights, qdnn.weights("int4_bytes", 128))
    y = device.matmul(np.ones((3, 512), "f4"), q, bias=np.zeros(256, "f4"), activation="silu").numpy()

Arrays of torch and CuPy on the same GPU are used in place; those on the host are copied. Work is queued: `numpy()` waits for it.
"""

from ._arrays import Array
from ._device import Device, training
from ._emit import Emitted, EmittedOperand, Launch, emit, emit_operation
from ._files import File, open
from ._library import QdnnError, QdnnNotSupported, QdnnValueError, version
from ._plans import Descriptor, Plan, Quantization, Quantized, Tensor, quantization, weights
from ._program import Program, Schedule
from ._rows import KvCache
from ._settings import Attention, KvDescription, Norm, Pointwise, QuantizedType, Rope, RopeTables, rope_tables, sampling

__version__ = version()
__all__ = [
    "Array", "Attention", "Descriptor", "Device", "Emitted", "EmittedOperand", "File", "KvCache", "KvDescription", "Launch", "Norm", "Plan",
    "Pointwise", "Program", "QdnnError", "QdnnNotSupported", "QdnnValueError", "Quantization", "Quantized", "QuantizedType", "Rope",
    "RopeTables", "Schedule", "Tensor", "emit", "emit_operation", "open", "quantization", "rope_tables", "sampling", "training", "weights",
]  # fmt: skip
