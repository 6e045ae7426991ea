"""The functions by which Python calls kernels, and the module that holds them, as text of LLVM.

They use CPython's stable interface (3.10 and later) and no header: arrays are read where NumPy has kept their fields
since 1.7 and in 2.x, a hundred times as fast as by the buffer interface.  A call costs what it takes to look at each
argument: its type, and of an array the dtype, the dimensions, and that it is in one piece.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from numba import types

from guided.kernels.ahead.library import MODULE
from guided.kernels.ahead.lowering import Lowered
from guided.kernels.ahead.parameters import Array, Group, Number, Parameter

__all__ = ["wrappers"]

_FASTCALL = 0x80
_STABLE = 3
"""The version of the stable interface, as modules are asked for it."""

_TYPE_NUMBERS = {
    "bool": (0,), "uint8": (2,), "int16": (3,), "int32": (5,), "uint32": (6,), "int64": (7, 9), "uint64": (8, 10),
    "float32": (11,), "float64": (12,),
}  # fmt: skip
"""What NumPy calls each dtype where a long has 64 bits: it has two names for those."""

_ITEM_SIZES = {
    "bool": 1, "uint8": 1, "int16": 2, "int32": 4, "uint32": 4, "int64": 8, "uint64": 8, "float32": 4, "float64": 8,
}  # fmt: skip

_IN_ONE_PIECE, _ALIGNED, _WRITABLE = 0x1, 0x100, 0x400

_DATA, _N_DIMENSIONS, _DIMENSIONS, _STRIDES, _DESCRIPTION, _FLAGS = 16, 24, 32, 40, 56, 64
"""Where the fields of an array are, and in its description the number of the type."""
_TYPE_NUMBER = 28

_COMMON = f"""
@ndarray = internal global ptr null
@numpy_name = internal constant [6 x i8] c"numpy\\00"
@ndarray_name = internal constant [8 x i8] c"ndarray\\00"
@failed = internal constant [15 x i8] c"a kernel fails\\00"
@PyExc_TypeError = external global ptr
@PyExc_SystemError = external global ptr
@_Py_NoneStruct = external global i8

declare i64 @PyLong_AsLongLong(ptr)
declare ptr @PyLong_FromLongLong(i64)
declare ptr @PyBool_FromLong(i64)
declare i32 @PyObject_IsTrue(ptr)
declare ptr @PyErr_Occurred()
declare void @PyErr_SetString(ptr, ptr)
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare void @Py_IncRef(ptr)
declare ptr @Py_BuildValue(ptr, ...)
declare i32 @PyType_IsSubtype(ptr, ptr)
declare i64 @PyType_GetFlags(ptr)
declare i64 @PyTuple_Size(ptr)
declare ptr @PyTuple_GetItem(ptr, i64)
declare ptr @PyModule_Create2(ptr, i32)
declare ptr @PyImport_ImportModule(ptr)
declare ptr @PyObject_GetAttrString(ptr, ptr)

define internal i1 @is_array(ptr %object, i32 %dimensions, i32 %numbers, i32 %flags) {{
  %type.at = getelementptr i8, ptr %object, i64 8
  %type = load ptr, ptr %type.at
  %wanted = load ptr, ptr @ndarray
  %same = icmp eq ptr %type, %wanted
  br i1 %same, label %looked, label %other
other:
  %subtype = call i32 @PyType_IsSubtype(ptr %type, ptr %wanted)
  %is.subtype = icmp ne i32 %subtype, 0
  br i1 %is.subtype, label %looked, label %no
looked:
  %n.at = getelementptr i8, ptr %object, i64 {_N_DIMENSIONS}
  %n = load i32, ptr %n.at
  %n.fits = icmp eq i32 %n, %dimensions
  %description.at = getelementptr i8, ptr %object, i64 {_DESCRIPTION}
  %description = load ptr, ptr %description.at
  %number.at = getelementptr i8, ptr %description, i64 {_TYPE_NUMBER}
  %number = load i32, ptr %number.at
  %short = icmp ult i32 %number, 32
  %least = select i1 %short, i32 %number, i32 31
  %bit = shl i32 1, %least
  %of = and i32 %bit, %numbers
  %number.fits = icmp ne i32 %of, 0
  %flags.at = getelementptr i8, ptr %object, i64 {_FLAGS}
  %has = load i32, ptr %flags.at
  %set = and i32 %has, %flags
  %flags.fit = icmp eq i32 %set, %flags
  %some = and i1 %n.fits, %number.fits
  %all = and i1 %some, %flags.fit
  ret i1 %all
no:
  ret i1 false
}}

define internal i1 @is_group(ptr %object, i64 %size) {{
  %type.at = getelementptr i8, ptr %object, i64 8
  %type = load ptr, ptr %type.at
  %flags = call i64 @PyType_GetFlags(ptr %type)
  %bit = and i64 %flags, {1 << 26}
  %is.tuple = icmp ne i64 %bit, 0
  br i1 %is.tuple, label %counted, label %no
counted:
  %n = call i64 @PyTuple_Size(ptr %object)
  %fits = icmp eq i64 %n, %size
  ret i1 %fits
no:
  ret i1 false
}}

define internal ptr @refuse(ptr %message) noinline cold {{
  %kind = load ptr, ptr @PyExc_TypeError
  call void @PyErr_SetString(ptr %kind, ptr %message)
  ret ptr null
}}

define internal ptr @fail() noinline cold {{
  %kind = load ptr, ptr @PyExc_SystemError
  call void @PyErr_SetString(ptr %kind, ptr @failed)
  ret ptr null
}}
"""


def wrappers(kernels: list[Lowered]) -> str:
    """The text of the module."""
    places: dict[str, list[Lowered]] = {}
    for kernel in kernels:
        places.setdefault(kernel.place, []).append(kernel)
    parts = [_COMMON]
    for place, variants in places.items():
        parts += [_Wrapper(place, variants).text()]
    return "\n".join([*parts, _module(list(places))])


class _Wrapper:
    """The function by which Python calls one kernel, with any of the kinds of arguments that it is compiled for."""

    def __init__(self, place: str, variants: list[Lowered]) -> None:
        self._place = place
        self._variants = variants
        self._lines: list[str] = []
        self._n = 0

    def text(self) -> str:
        """The function, and what it says of other arguments."""
        signatures = [variant.signature for variant in self._variants]
        message = f"{self._place} is compiled for ({') or ('.join(signatures)}) and was called with something else"
        said = _constant(f"refusal {self._place}", message)
        n = len(self._variants[0].of)
        lines = self._lines
        lines += [
            f'define internal ptr @"call {self._place}"(ptr %module, ptr %arguments, i64 %n) {{',
            "  %raised = alloca ptr",
            *(f"  %result{i} = alloca {_result(variant)}" for i, variant in enumerate(self._variants)),
            f"  %counted = icmp eq i64 %n, {n}",
            "  br i1 %counted, label %variant0, label %refused",
        ]
        for i, variant in enumerate(self._variants):
            self._variant(i, variant, "refused" if i + 1 == len(self._variants) else f"variant{i + 1}")
        for name, function in (("refused", f'@refuse(ptr @"refusal {self._place}")'), ("failed", "@fail()")):
            lines += [f"{name}:", f"  %{name}.none = call ptr {function}", f"  ret ptr %{name}.none"]
        # One of the numbers was none, which Python has said.
        lines += ["none:", "  ret ptr null", "}"]
        for variant in self._variants:
            arguments = ", ".join(kind for parameter in variant.of for kind in _kinds(parameter))
            lines.append(f'declare i32 @"{variant.symbol}"(ptr, ptr, {arguments})')
        return "\n".join([said, *lines])

    def _new(self, operation: str) -> str:
        self._n += 1
        self._lines.append(f"  %v{self._n} = {operation}")
        return f"%v{self._n}"

    def _go_on(self, condition: str, other: str) -> None:
        """Branch to a new block if the condition holds."""
        self._n += 1
        self._lines += [f"  br i1 {condition}, label %b{self._n}, label %{other}", f"b{self._n}:"]

    def _field(self, of: str, offset: int, kind: str = "ptr") -> str:
        return self._new(f"load {kind}, ptr {self._new(f'getelementptr i8, ptr {of}, i64 {offset}')}")

    def _variant(self, number: int, variant: Lowered, other: str) -> None:
        """What one kind of arguments is; else go on at ``other``."""
        self._lines.append(f"variant{number}:")
        objects = [self._field("%arguments", 8 * i) for i in range(len(variant.of))]
        # Arrays first: they tell the kinds apart.
        arrays = {}
        for i, parameter in enumerate(variant.of):
            if isinstance(parameter, Array):
                arrays[i] = self._array(objects[i], parameter, other)
            elif isinstance(parameter, Group):
                arrays[i] = list(self._group(objects[i], parameter, other))
        arguments: list[str] = []
        for i, parameter in enumerate(variant.of):
            arguments += [self._number(objects[i], parameter)] if isinstance(parameter, Number) else arrays[i]
        saved = self._new("call ptr @PyEval_SaveThread()")
        status = self._new(f'call i32 @"{variant.symbol}"(ptr %result{number}, ptr %raised, {", ".join(arguments)})')
        self._lines.append(f"  call void @PyEval_RestoreThread(ptr {saved})")
        self._go_on(self._new(f"icmp eq i32 {status}, 0"), f"maybe{number}")
        ready = f"ready{number}"
        self._lines += [f"  br label %{ready}", f"maybe{number}:"]
        # What a kernel says that returns None where it might return something else.
        nothing = self._new(f"icmp eq i32 {status}, -2")
        self._lines += [f"  br i1 {nothing}, label %{ready}, label %failed", f"{ready}:"]
        self._return(f"%result{number}", variant)

    def _group(self, group: str, parameter: Group, other: str) -> Iterator[str]:
        self._go_on(self._new(f"call i1 @is_group(ptr {group}, i64 {len(parameter.arrays)})"), other)
        for i, array in enumerate(parameter.arrays):
            yield from self._array(self._new(f"call ptr @PyTuple_GetItem(ptr {group}, i64 {i})"), array, other)

    def _array(self, array: str, parameter: Array, other: str) -> list[str]:
        """Numba's structure of an array: its owners, entries, their size, the data, lengths and strides."""
        numbers = sum(1 << number for number in _TYPE_NUMBERS[parameter.dtype])
        flags = _IN_ONE_PIECE | _ALIGNED | (0 if parameter.const else _WRITABLE)
        wanted = f"i32 {parameter.dimensions}, i32 {numbers}, i32 {flags}"
        self._go_on(self._new(f"call i1 @is_array(ptr {array}, {wanted})"), other)
        data = self._field(array, _DATA)
        lengths, strides = self._field(array, _DIMENSIONS), self._field(array, _STRIDES)
        shape = [self._field(lengths, 8 * i, "i64") for i in range(parameter.dimensions)]
        steps = [self._field(strides, 8 * i, "i64") for i in range(parameter.dimensions)]
        entries = shape[0] if len(shape) == 1 else self._new(f"mul i64 {shape[0]}, {shape[1]}")
        numbered = [entries, str(_ITEM_SIZES[parameter.dtype])]
        return [
            "ptr null", "ptr null", *(f"i64 {each}" for each in numbered), f"ptr {data}",
            *(f"i64 {each}" for each in (*shape, *steps)),
        ]  # fmt: skip

    def _number(self, number: str, parameter: Number) -> str:
        if parameter.bits == 1:
            truth = self._new(f"call i32 @PyObject_IsTrue(ptr {number})")
            self._go_on(self._new(f"icmp sge i32 {truth}, 0"), "none")
            return f"i8 {self._new(f'trunc i32 {truth} to i8')}"
        value = self._new(f"call i64 @PyLong_AsLongLong(ptr {number})")
        # -1 is also what it says of no number.
        self._n += 1
        clear, unclear = f"clear{self._n}", f"unclear{self._n}"
        is_clear = self._new(f"icmp ne i64 {value}, -1")
        self._lines += [f"  br i1 {is_clear}, label %{clear}, label %{unclear}", f"{unclear}:"]
        raised = self._new("call ptr @PyErr_Occurred()")
        is_none = self._new(f"icmp eq ptr {raised}, null")
        self._lines += [f"  br i1 {is_none}, label %{clear}, label %none", f"{clear}:"]
        if parameter.bits < 64:
            value = self._new(f"trunc i64 {value} to i{parameter.bits}")
        return f"i{parameter.bits} {value}"

    def _return(self, result: str, variant: Lowered) -> None:
        kind = variant.returns
        if kind == types.none:
            self._lines += ["  call void @Py_IncRef(ptr @_Py_NoneStruct)", "  ret ptr @_Py_NoneStruct"]
            return
        if isinstance(kind, types.BaseTuple):
            places = [
                self._new(f"getelementptr {_result(variant)}, ptr {result}, i32 0, i32 {i}") for i in range(len(kind))
            ]
            values = [self._long(place, part) for place, part in zip(places, kind, strict=True)]
            numbers = ", ".join(f"i64 {value}" for value in values)
            form = f'@"form {len(values)}"'
            made = self._new(f"call ptr (ptr, ...) @Py_BuildValue(ptr {form}, {numbers})")
        else:
            boxed = "PyBool_FromLong" if kind == types.boolean else "PyLong_FromLongLong"
            made = self._new(f"call ptr @{boxed}(i64 {self._long(result, kind)})")
        self._lines.append(f"  ret ptr {made}")

    def _long(self, at: str, kind: Any) -> str:
        """What is there, as 64 bits."""
        wide = _scalar(kind)
        value = self._new(f"load {wide}, ptr {at}")
        if wide == "i64":
            return value
        return self._new(f"{'zext' if kind == types.boolean else 'sext'} {wide} {value} to i64")


def _kinds(parameter: Parameter) -> list[str]:
    """The types of what a kernel's function takes for a parameter."""
    if isinstance(parameter, Number):
        return ["i8" if parameter.bits == 1 else f"i{parameter.bits}"]
    if isinstance(parameter, Group):
        return [kind for array in parameter.arrays for kind in _kinds(array)]
    return ["ptr", "ptr", "i64", "i64", "ptr", *["i64"] * (2 * parameter.dimensions)]


def _scalar(kind: Any) -> str:
    if kind == types.boolean:
        return "i8"
    if isinstance(kind, types.Integer) and kind.signed:
        return f"i{kind.bitwidth}"
    raise NotImplementedError(f"no kernel has returned {kind} yet")


def _result(variant: Lowered) -> str:
    """Where a kernel's function writes what it returns."""
    kind = variant.returns
    if kind == types.none:
        return "ptr"
    if isinstance(kind, types.BaseTuple):
        return f"{{ {', '.join(_scalar(part) for part in kind)} }}"
    return _scalar(kind)


def _constant(name: str, text: str) -> str:
    data = text.encode("ascii")
    return f'@"{name}" = internal constant [{len(data) + 1} x i8] c"{text}\\00"'


def _module(places: list[str]) -> str:
    """The module's definition and what makes it."""
    methods = [
        f'{{ ptr, ptr, i32, ptr }} {{ ptr @"name {place}", ptr @"call {place}", i32 {_FASTCALL}, ptr null }}'
        for place in places
    ]
    methods.append("{ ptr, ptr, i32, ptr } zeroinitializer")
    fields = [
        "i64 1",
        "ptr null",
        "ptr null",
        "i64 0",
        "ptr null",
        "ptr @module_name",
        "ptr null",
        "i64 -1",
        "ptr @methods",
    ]
    fields += ["ptr null"] * 4
    kinds = ", ".join(field.split()[0] for field in fields)
    return "\n".join(
        [
            *(_constant(f"name {place}", place) for place in places),
            *(_constant(f"form {n}", f"({'L' * n})") for n in (2, 3)),
            _constant("module_name", MODULE),
            f"@methods = internal global [{len(methods)} x {{ ptr, ptr, i32, ptr }}] [{', '.join(methods)}]",
            f"@definition = internal global {{ {kinds} }} {{ {', '.join(fields)} }}",
            f"""
define ptr @PyInit_{MODULE}() {{
  %numpy = call ptr @PyImport_ImportModule(ptr @numpy_name)
  %no.numpy = icmp eq ptr %numpy, null
  br i1 %no.numpy, label %none, label %imported
imported:
  %type = call ptr @PyObject_GetAttrString(ptr %numpy, ptr @ndarray_name)
  %no.type = icmp eq ptr %type, null
  br i1 %no.type, label %none, label %found
found:
  store ptr %type, ptr @ndarray
  %made = call ptr @PyModule_Create2(ptr @definition, i32 {_STABLE})
  ret ptr %made
none:
  ret ptr null
}}
""",
        ]
    )
