"""Kernels and whole operations as PTX text."""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

from ._library import call, free_emitted, free_ptx


class _Ptx(ctypes.Structure):
    _fields_ = [("ptx", ctypes.c_void_p), ("entry", ctypes.c_char * 64), ("threads", ctypes.c_uint32), ("elements", ctypes.c_uint64)]


class _Argument(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int), ("operand", ctypes.c_int), ("value", ctypes.c_uint64)]


class _Launch(ctypes.Structure):
    _fields_ = [
        ("ptx", ctypes.c_char_p), ("entry", ctypes.c_char_p), ("grid", ctypes.c_uint64 * 3), ("rule", ctypes.c_char_p * 3),
        ("threads", ctypes.c_uint32), ("shared", ctypes.c_uint32), ("argument_count", ctypes.c_int), ("arguments", ctypes.POINTER(_Argument)),
    ]  # fmt: skip


class _Operand(ctypes.Structure):
    _fields_ = [
        ("operand", ctypes.c_int), ("name", ctypes.c_char_p), ("reads", ctypes.c_int), ("writes", ctypes.c_int), ("align", ctypes.c_uint32),
        ("bytes", ctypes.c_uint64),
    ]  # fmt: skip


class _Emitted(ctypes.Structure):
    _fields_ = [
        ("operation", ctypes.c_char_p), ("workspace_bytes", ctypes.c_uint64), ("launch_count", ctypes.c_int),
        ("launches", ctypes.POINTER(_Launch)), ("operand_count", ctypes.c_int), ("operands", ctypes.POINTER(_Operand)),
    ]  # fmt: skip


class Launch(NamedTuple):
    """One launch of an emitted operation. Arguments: (kind, value), with kind "operand" (its name), "workspace" (an offset in
    bytes), "u64" or "f32" (its bits)."""

    ptx: str
    entry: str
    grid: tuple[int, int, int]
    grid_rule: tuple[str, str, str]
    block_threads: int
    shared_bytes: int
    arguments: tuple[tuple[str, Any], ...]


class EmittedOperand(NamedTuple):
    """An operand that the caller binds."""

    name: str
    reads: bool
    writes: bool
    align: int
    bytes: int


class Emitted(NamedTuple):
    """An operation: its launches, in this order on one stream, and what they need."""

    operation: str
    workspace_bytes: int
    launches: tuple[Launch, ...]
    operands: tuple[EmittedOperand, ...]


_KINDS = ("operand", "workspace", "u64", "f32")  # by the numbers of qdnnArgumentKind_t


def _words(settings: dict[str, Any]) -> Any:
    words = [f"{name}={value}".encode() for name, value in settings.items()]
    return (ctypes.c_char_p * (len(words) + 1))(*words, None)


def emit(kernel: str, sm: str, **settings: Any) -> tuple[str, str, int]:
    """The PTX of a kernel, as `ptxgen --kernel` writes it: (text, name of its entry, threads per block).

    >>> text, entry, threads = qdnn.emit("quantize_nf4", "sm_90", data="f16", group_size=64)
    >>> entry
    'qdnn_quantize_nf4'
    """
    made = _Ptx()
    call("EmitPtx", kernel.encode(), sm.encode(), _words(settings), ctypes.byref(made))
    try:
        return ctypes.string_at(made.ptx).decode(), made.entry.decode(), made.threads
    finally:
        free_ptx(ctypes.byref(made))


def emit_operation(operation: str, sm: str, sizes: dict[str, int], **settings: Any) -> Emitted:
    """An operation for an SM and given sizes: every kernel that it takes, with its grid and its arguments. docs/bundles.md lists
    settings and sizes.

    >>> made = qdnn.emit_operation("quant.nf4.quantize", "sm_90", {"n": 4096}, group_size=64)
    >>> [(launch.grid, launch.block_threads) for launch in made.launches]
    [((1, 1, 1), 256)]
    >>> [(operand.name, operand.bytes) for operand in made.operands]
    [('x', 16384), ('codes', 2048), ('scale', 256)]
    """
    made = ctypes.POINTER(_Emitted)()
    call("EmitOperation", operation.encode(), sm.encode(), _words(settings), _words(sizes), ctypes.byref(made))
    try:
        given = made.contents
        operands = [given.operands[i] for i in range(given.operand_count)]
        names = {operand.operand: operand.name.decode() for operand in operands}
        launches = tuple(_launch(given.launches[i], names) for i in range(given.launch_count))
        listed = (EmittedOperand(o.name.decode(), bool(o.reads), bool(o.writes), o.align, o.bytes) for o in operands)
        return Emitted(given.operation.decode(), given.workspace_bytes, launches, tuple(listed))
    finally:
        free_emitted(made)


def _launch(launch: _Launch, names: dict[int, str]) -> Launch:
    given = (launch.arguments[i] for i in range(launch.argument_count))
    arguments = tuple((kind := _KINDS[a.kind], names[a.operand] if kind == "operand" else a.value) for a in given)
    rules = tuple((rule or b"").decode() for rule in launch.rule)
    return Launch(launch.ptx.decode(), launch.entry.decode(), tuple(launch.grid), rules, launch.threads, launch.shared, arguments)
