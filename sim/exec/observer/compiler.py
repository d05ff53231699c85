"""Watches torch.compile: when it compiles, and what its kernels read and write in place."""

import ctypes
import functools
import sys

import torch

from .harmless import harmless


class Compiler:
    def __init__(self, recorder):
        self.recorder = recorder
        self._watched = set()  # modules of the compiler that were loaded
        self._updating = set()  # names of compiled kernels

    def watch_compilations(self):
        self._once_loaded("torch._dynamo.callback", self._tell_compilations)

    def watch_launches(self):
        self._once_loaded("torch._inductor.runtime.triton_heuristics", self._tell_launches)

    def _once_loaded(self, name, watch):
        if name not in self._watched and name in sys.modules:
            self._watched.add(name)
            watch(sys.modules[name])

    def _tell_compilations(self, callbacks):
        callbacks.callback_handler.register_start_callback(lambda *_: self.recorder.compiles())

    def _tell_launches(self, heuristics):
        launch = heuristics.CachingAutotuner.run
        tell_launch = harmless(self._tell_launch)

        @functools.wraps(launch)
        def told_launch(kernel, *arguments, **named):
            tell_launch(kernel, arguments)
            return launch(kernel, *arguments, **named)

        heuristics.CachingAutotuner.run = told_launch

    def _tell_launch(self, kernel, arguments):
        """What a kernel of torch.compile reads and writes by one parameter ("in_out_ptr0")."""
        name = kernel.fn.__name__
        updated, others = [], []
        for parameter, argument in zip(kernel.fn.arg_names, arguments):
            if isinstance(argument, torch.Tensor):
                (updated if parameter.startswith("in_out_ptr") else others).append(argument.data_ptr())
        if updated:
            self._updating.add(name)
        if name in self._updating:  # of several kernels with one name
            addresses = (ctypes.c_uint64 * (len(updated) + len(others)))(*updated, *others)
            self.recorder.kernel_updates(name.encode(), addresses, len(addresses), len(updated))
