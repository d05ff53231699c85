"""Watches torch.compile: when it compiles, and what its kernels are given."""

import ctypes
import functools
import re

import torch

from .harmless import harmless

# What kernels only read: their inputs, and the lists of a mask (flex_attention.py).
ONLY_READ = re.compile(r"in_ptr|arg_(FULL_)?(KV|Q)_(NUM_BLKS|IDX)$")


def array_of(kind, numbers):
    return (kind * len(numbers))(*numbers), len(numbers)


def has_virtual_gpu():
    return hasattr(ctypes.CDLL(None), "onerank_virtual_gpu_clock")


def as_it_is(tuner, launcher, *arguments, **named):
    """In place of Inductor's search for a faster configuration, which compiles each to time it: the virtual
    GPU takes the same time for all that move the same."""
    return launcher


class Compiler:
    """`attention` is that of flex_attention.py, or None."""

    def __init__(self, recorder, arrivals, attention):
        self.recorder = recorder
        self.attention = attention
        self._updating = set()  # names of compiled kernels
        arrivals.watch("torch._dynamo.callback", self._tell_compilations)
        arrivals.watch("torch._inductor.runtime.triton_heuristics", self._tell_launches)

    def _tell_compilations(self, callbacks):
        callbacks.callback_handler.register_start_callback(lambda *_: self.recorder.compiles())

    def _tell_launches(self, heuristics):
        launch = heuristics.CachingAutotuner.run
        tell_launch = harmless(self._tell_launch)

        @functools.wraps(launch)
        def told_launch(kernel, *arguments, **named):
            tell_launch(kernel, arguments)
            is_attention = self.attention is not None and self.attention.tell_launch(kernel, arguments)
            try:
                return launch(kernel, *arguments, **named)
            finally:
                self.recorder.kernel_reads(None, 0)
                self.recorder.kernel_loops(None, 0)
                if is_attention:
                    self.recorder.work_ends()

        heuristics.CachingAutotuner.run = told_launch
        if has_virtual_gpu():
            heuristics.CachingAutotuner.coordinate_descent_tuning = as_it_is

    def _tell_launch(self, kernel, arguments):
        """What a kernel of torch.compile reads and writes by one parameter ("in_out_ptr0"), what it only
        reads, and the lengths of its loops ("xnumel"). Its other numbers are none: the place of its random
        numbers, for one, grows from layer to layer."""
        name = kernel.fn.__name__
        updated, others, read, loops = [], [], [], []
        for parameter, argument in zip(kernel.fn.arg_names, arguments):
            if parameter.endswith("numel") and isinstance(argument, int) and argument > 1:
                loops.append(argument)
            if isinstance(argument, torch.Tensor):
                (updated if parameter.startswith("in_out_ptr") else others).append(argument.data_ptr())
                if ONLY_READ.match(parameter):
                    read.append(argument.data_ptr())
        self.recorder.kernel_reads(*array_of(ctypes.c_uint64, read))
        self.recorder.kernel_loops(*array_of(ctypes.c_int64, loops))
        if updated:
            self._updating.add(name)
        if name in self._updating:  # of several kernels with one name
            addresses, count = array_of(ctypes.c_uint64, updated + others)
            self.recorder.kernel_updates(name.encode(), addresses, count, len(updated))
