"""The functions of the recorder (recorder_interface.h)."""

import ctypes
from ctypes import c_char_p, c_double, c_int, c_int64, c_uint64, c_void_p

CALLBACK = ctypes.PYFUNCTYPE(None)
ARGUMENTS = {
    "attention_starts": (c_void_p, c_char_p),
    "closure_ends": (),
    "closure_starts": (),
    "compiles": (),
    "enter_module": (c_char_p,),
    "evaluation_ends": (),
    "evaluation_starts": (),
    "experts_chosen": (c_uint64, c_int64, c_int64, c_int64, c_char_p),
    "host_updated": (c_int64, c_int),
    "host_waits": (c_double, c_int),
    "is_rank": (c_int64, c_int64),
    "kernel_loops": (c_void_p, c_int64),
    "kernel_reads": (c_void_p, c_int64),
    "kernel_updates": (c_char_p, c_void_p, c_int64, c_int64),
    "leave_module": (),
    "memory_lasts": (c_uint64, c_char_p, c_char_p),
    "model_reads": (c_uint64, c_int64),
    "optimizer_steps": (c_uint64,),
    "own_work_ends": (),
    "own_work_starts": (),
    "parameters": (c_char_p,),
    "product_starts": (c_void_p,),
    "raised": (c_char_p,),
    "read_known": (c_uint64, c_int64, c_void_p),
    "region_made": (c_char_p, c_int, CALLBACK, CALLBACK),
    "saves": (),
    "tensor_holds": (c_uint64, c_int64, c_void_p),
    "tensor_lies": (c_uint64, c_int64),
    "tuned": (c_char_p, c_char_p, c_int64),
    "was_ended": (),
    "work_ends": (),
}


class Recorder:
    """Has a method for each function: `recorder.enter_module(b"layers.0")`."""

    def __init__(self, path):
        # PyDLL: calls are short and keep the interpreter's lock.
        library = ctypes.PyDLL(path)
        for name, arguments in ARGUMENTS.items():
            function = getattr(library, f"onerank_exec_{name}")
            function.argtypes = arguments
            setattr(self, name, function)
