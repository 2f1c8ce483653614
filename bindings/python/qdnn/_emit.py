"""Kernels as PTX text."""

import ctypes

from ._library import call, free_ptx


class _Ptx(ctypes.Structure):
    _fields_ = [("ptx", ctypes.c_void_p), ("entry", ctypes.c_char * 64), ("threads", ctypes.c_uint32), ("elements", ctypes.c_uint64)]


def emit(kernel, sm, **settings):
    """The PTX of a kernel, as `ptxgen --kernel` writes it: (text, name of its entry, threads per block).

    >>> text, entry, threads = qdnn.emit("quantize_nf4", "sm_90", data="f16", group_size=64)
    >>> entry
    'qdnn_quantize_nf4'
    """
    words = [f"{name}={value}".encode() for name, value in settings.items()]
    given = (ctypes.c_char_p * (len(words) + 1))(*words, None)
    made = _Ptx()
    call("EmitPtx", kernel.encode(), sm.encode(), given, ctypes.byref(made))
    try:
        return ctypes.string_at(made.ptx).decode(), made.entry.decode(), made.threads
    finally:
        free_ptx(ctypes.byref(made))
