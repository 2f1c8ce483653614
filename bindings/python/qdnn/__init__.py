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
from ._emit import emit
from ._files import File, open
from ._library import QdnnError, QdnnNotSupported, QdnnValueError, version
from ._plans import Descriptor, Plan, Quantization, Quantized, Tensor, quantization, weights

__version__ = version()
__all__ = [
    "Array", "Descriptor", "Device", "File", "Plan", "QdnnError", "QdnnNotSupported", "QdnnValueError", "Quantization", "Quantized",
    "Tensor", "emit", "open", "quantization", "training", "weights",
]  # fmt: skip
