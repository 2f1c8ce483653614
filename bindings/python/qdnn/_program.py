"""Programs, whole models as lists of steps on named tensors, and schedules, lists of plans with their arrays."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import numpy as np

from ._arrays import Array, as_array
from ._library import Object, call, constants, did_you_mean, int64, number
from ._plans import Plan, Tensor, bind, operand_number

if TYPE_CHECKING:
    from ._device import Device


class _Binding(ctypes.Structure):
    _fields_ = [("operand", ctypes.c_int), ("tensor", ctypes.c_int), ("offset", ctypes.c_size_t)]


class _Argument(ctypes.Structure):
    _fields_ = [
        ("kind", ctypes.c_int), ("tensor", ctypes.c_int), ("offset", ctypes.c_size_t), ("bytes", ctypes.c_int), ("value", ctypes.c_uint64),
    ]  # fmt: skip


class _Kernel(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t), ("source", ctypes.c_int), ("text", ctypes.c_char_p), ("entry", ctypes.c_char_p),
        ("function", ctypes.c_void_p), ("grid", ctypes.c_uint32 * 3), ("block", ctypes.c_uint32 * 3), ("shared_bytes", ctypes.c_uint32),
        ("rows_per_block", ctypes.c_uint32), ("arguments", ctypes.POINTER(_Argument)), ("count", ctypes.c_int),
    ]  # fmt: skip


class _ProgramInfo(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t), ("tensors", ctypes.c_int), ("steps", ctypes.c_int), ("max_rows", ctypes.c_int64),
        ("arena_bytes", ctypes.c_size_t), ("intermediate_bytes", ctypes.c_size_t), ("fused", ctypes.c_int),
    ]  # fmt: skip


class _TensorInfo(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t), ("name", ctypes.c_char_p), ("place", ctypes.c_int), ("bytes", ctypes.c_size_t),
        ("row_bytes", ctypes.c_size_t), ("alignment", ctypes.c_size_t), ("first_step", ctypes.c_int), ("last_step", ctypes.c_int),
        ("offset", ctypes.c_size_t),
    ]  # fmt: skip


class Program(Object):
    """Steps on named tensors, checked and planned once, run by one call with any number of rows up to `max_rows`.

    Tensors are external (arrays of the caller) or intermediate (memory of the program, shared by those that are never needed
    at the same time). Those `by_rows` use the first rows in a run of fewer.

    >>> program = qdnn.Program(device, max_rows=4)
    >>> x, y = (program.external(name, (4, 2), by_rows=True) for name in "xy")
    >>> h = program.intermediate("h", (4, 2), by_rows=True)
    >>> silu = qdnn.Pointwise(kind="function", function="silu")
    >>> twice = qdnn.Pointwise(kind="mul", second="number", number=2)
    >>> rows = qdnn.Tensor((4, 2))
    >>> program.add(device.plan("Pointwise", silu, rows, None, rows, None), "silu", x=x, y=h)
    >>> program.add(device.plan("Pointwise", twice, rows, None, rows, None), "twice", x=h, y=y)
    >>> result = device.empty((4, 2))
    >>> program.run({"x": np.zeros((1, 2), "f4"), "y": result}, rows=1)
    >>> result.numpy()[0]
    array([0., 0.], dtype=float32)
    >>> program
    <qdnn.Program of 4 rows: 3 tensors, 2 steps, 256 bytes of its own>
    """

    def __init__(self, device: Device, max_rows: int) -> None:
        super().__init__("CreateProgram", "DestroyProgram", device.handle.pointer, int64(max_rows, "max_rows"))
        self.device, self.max_rows = device.handle, max_rows
        self._names: dict[str, int] = {}
        self._bound: dict[str, Array] = {}
        self._arena: Array | None = None

    # ---- Tensors ----

    def external(self, name: str, shape: tuple, type: str = "f32", by_rows: bool = False, value: Any = None) -> int:
        """A tensor in the caller's memory; its number, which steps take. A `value` (a weight, for example) is used in every run
        that does not name another; codes and scales are bytes, of type "u8"."""
        made = self._tensor(name, "external", shape, type, by_rows)
        if value is not None:
            self.bind({name: value})
        return made

    def intermediate(self, name: str, shape: tuple, type: str = "f32", by_rows: bool = False) -> int:
        """A tensor in memory of the program's own."""
        return self._tensor(name, "intermediate", shape, type, by_rows)

    def _tensor(self, name: str, place: str, shape: tuple, type: str, by_rows: bool) -> int:
        made, described = ctypes.c_int(), Tensor(shape, type)
        call("AddTensorToProgram", self.pointer, name.encode(), number("PROGRAM", place), described.pointer, int(by_rows), ctypes.byref(made))
        self._names[name] = made.value
        return made.value

    def bind(self, arrays: dict[str, Any]) -> None:
        """Arrays of external tensors, by name, for all runs that follow."""
        self._bound.update(self._checked(arrays))

    def _checked(self, arrays: dict[str, Any]) -> dict[str, Array]:
        for name in arrays:
            if name not in self._names:
                raise ValueError(f"the program has no tensor '{name}'{did_you_mean(name, self._names)}")
        return {name: as_array(self.device, value) for name, value in arrays.items()}

    # ---- Steps ----

    def add(self, plan: Plan, name: str | None = None, per_row: int = 1, **operands: Any) -> None:
        """Appends a plan with a tensor for each operand, or (tensor, offset in bytes). `per_row`: how many rows of the plan
        belong to a row of a run; 0: all of it is executed in every run."""
        bindings = (_Binding * len(operands))()
        for i, (operand, tensor) in enumerate(operands.items()):
            bindings[i] = _Binding(operand_number(operand), *(tensor if isinstance(tensor, tuple) else (tensor, 0)))
        call("AddPlanToProgram", self.pointer, _text(name), plan.pointer, int64(per_row, "per_row"), bindings, len(operands))

    def copy(self, to: int, source: int, name: str | None = None) -> None:
        """Appends a copy of a tensor."""
        call("AddCopyToProgram", self.pointer, _text(name), to, source)

    def fill(self, tensor: int, byte: int = 0, name: str | None = None) -> None:
        """Appends a step that sets every byte of a tensor."""
        call("AddFillToProgram", self.pointer, _text(name), tensor, ctypes.c_ubyte(byte))

    def kernel(self, text: str, entry: str, arguments: list, grid: tuple = (1, 1, 1), block: tuple = (128, 1, 1), *, name: str | None = None,
               source: str = "ptx", shared_bytes: int = 0, rows_per_block: int = 0) -> None:  # fmt: skip
        """Appends a kernel of your own, in PTX (or source="cuda", where NVRTC is installed).

        Arguments, in the order of its parameters: ("read", tensor), ("write", tensor) or ("read_write", tensor), with an offset
        in bytes as a third element; ("rows", 4) or ("rows", 8), the rows of the run in so many bytes; a number of numpy's.
        With `rows_per_block`, grid[0] is the rows divided by it.
        """
        given = (_Argument * max(1, len(arguments)))(*(_argument(argument) for argument in arguments))
        three = lambda sizes: (ctypes.c_uint32 * 3)(*sizes, *(1,) * (3 - len(sizes)))
        made = _Kernel(size=ctypes.sizeof(_Kernel), source=number("SOURCE", source), text=text.encode(), entry=entry.encode(),
                       grid=three(grid), block=three(block), shared_bytes=shared_bytes, rows_per_block=rows_per_block,
                       arguments=given, count=len(arguments))  # fmt: skip
        call("AddKernelToProgram", self.pointer, _text(name), ctypes.byref(made))

    # ---- Running ----

    def compile(self) -> None:
        """Checks the order of the steps and plans the memory; nothing can be added afterwards. The first run does it, too."""
        call("CompileProgram", self.pointer)
        self._arena = Array(self.device, (self.info["arena_bytes"],), "u8")
        self._sizes = {name: self.tensor_info(name) for name in self._names}

    @property
    def info(self) -> dict[str, int]:
        """Tensors, steps, max_rows, arena_bytes and intermediate_bytes, as a dictionary."""
        return _described("GetProgramInfo", _ProgramInfo, self.pointer)

    def tensor_info(self, name: str) -> dict[str, Any]:
        """Bytes, place in the arena, first and last step of a tensor ... as a dictionary."""
        return _described("GetProgramTensorInfo", _TensorInfo, self.pointer, self._names[name])

    def run(self, arrays: dict[str, Any] | None = None, rows: int | None = None) -> None:
        """Queues all steps on the device's stream, with an array for each external tensor that has none yet. `rows`: only the
        first so many (None: all)."""
        if self._arena is None:
            self.compile()
        rows = self.max_rows if rows is None else rows
        given = {**self._bound, **self._checked(arrays or {})}
        pointers = (ctypes.c_void_p * max(1, len(self._names)))()
        for name, array in given.items():
            info = self._sizes[name]
            needed = info["row_bytes"] * rows if info["row_bytes"] else info["bytes"]
            if array.bytes < needed:
                raise ValueError(f"'{name}' has {array.bytes} bytes; {rows} rows of the program need {needed}")
            pointers[self._names[name]] = array.pointer.value
        arena = (self._arena.pointer, ctypes.c_size_t(self._arena.bytes))
        call("RunProgram", self.device.pointer, self.pointer, pointers, len(self._names), int64(rows, "rows"), *arena)

    def __repr__(self) -> str:
        info = self.info
        return f"<qdnn.Program of {self.max_rows} rows: {info['tensors']} tensors, {info['steps']} steps, {info['arena_bytes']} bytes of its own>"


def _text(name: str | None) -> bytes | None:
    return None if name is None else name.encode()


def _described(function: str, structure: Any, *arguments: Any) -> dict[str, Any]:
    info = structure(size=ctypes.sizeof(structure))
    call(function, *arguments, ctypes.byref(info))
    values = ((name, getattr(info, name)) for name, _ in structure._fields_ if name != "size")
    return {name: value.decode() if isinstance(value, bytes) else value for name, value in values}


def _argument(given: Any) -> _Argument:
    if isinstance(given, np.generic):
        return _Argument(constants["KERNEL_ARGUMENT_NUMBER"], bytes=given.itemsize, value=int.from_bytes(given.tobytes(), "little"))
    if not isinstance(given, tuple):
        raise TypeError(f"the argument {given!r} is no number of numpy's; its type would be unknown")
    kind = number("KERNEL_ARGUMENT", given[0])
    if kind == constants["KERNEL_ARGUMENT_ROWS"]:
        return _Argument(kind, bytes=given[1])
    return _Argument(kind, given[1], given[2] if len(given) > 2 else 0)


class Schedule(Object):
    """Plans with their arrays, checked when they are added, launched by one call.

    >>> schedule = qdnn.Schedule(device)
    >>> x = device.array(np.array([3, 4], "f4"))
    >>> double = device.plan("Pointwise", qdnn.Pointwise(kind="mul", second="number", number=2), qdnn.Tensor((2,)), None, qdnn.Tensor((2,)), None)
    >>> y, z = device.empty((2,)), device.empty((2,))
    >>> schedule.add(double, x=x, y=y)
    >>> schedule.add(double, x=y, y=z)
    >>> schedule.run()
    >>> z.numpy()
    array([12., 16.], dtype=float32)
    """

    def __init__(self, device: Device) -> None:
        super().__init__("CreateSchedule", "DestroySchedule", device.handle.pointer)
        self.device, self._kept = device.handle, []

    def add(self, plan: Plan, rows: int | None = None, **operands: Any) -> None:
        """Appends a plan with an array for each operand; `rows`: only the first so many."""
        bindings, kept = bind(self.device, operands)
        if rows is None:
            call("AddToSchedule", self.pointer, plan.pointer, bindings, len(operands))
        else:
            call("AddRowsToSchedule", self.pointer, plan.pointer, int64(rows, "rows"), bindings, len(operands))
        self._kept += [plan, *kept]

    def run(self) -> None:
        """Queues all steps on the device's stream."""
        size = ctypes.c_size_t()
        call("GetScheduleWorkspaceSize", self.pointer, ctypes.byref(size))
        call("ExecuteSchedule", self.device.pointer, self.pointer, self.device.workspace(size.value), size)
