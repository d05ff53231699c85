"""Tells around every optimizer step, also around those that torch.compile has compiled."""

import gc
import threading
import weakref

import torch
from torch.optim import optimizer as torch_optimizers

from .harmless import harmless
from .optimizers import with_told_closure
from .recorder import CALLBACK


def hook(step, traced_step):
    """A hook of torch.optim. A compiled step runs none, but hooks are traced with it: `traced_step` as a
    constant, which leaves nothing in what is compiled."""

    def told(optimizer, arguments, named):
        if torch.compiler.is_compiling():
            return traced_step()
        return step(optimizer)

    return told


def now_compiled():
    return str(torch._guards.CompileContext.current_compile_id())


def traced_code():
    """One list for each attempt to trace a region: its own code, then what was inlined whole."""
    return torch._guards.TracingContext.get().traced_code


def constant(function):
    """What torch.compile calls while it traces, and leaves out of what it makes."""

    def called():
        function()

    called._dynamo_marked_constant = True
    return called


class CompiledSteps:
    def __init__(self, recorder, optimizers):
        self.recorder = recorder
        self.optimizers = optimizers
        # Of what torch.optim puts around every step.
        self._step_code = torch_optimizers.Optimizer.profile_hook_step(lambda: None).__code__
        self._compiled = weakref.WeakSet()  # optimizers that may be stepped by compiled code
        self._around_regions = []  # what the recorder calls
        self._thread = threading.local()

    def watch(self):
        before = hook(self.optimizers.before_step, constant(harmless(self._before_traced_step)))
        after = hook(self.optimizers.after_step, constant(harmless(self._after_traced_step)))
        torch_optimizers.register_optimizer_step_pre_hook(before)
        torch_optimizers.register_optimizer_step_pre_hook(with_told_closure(self.recorder, self.optimizers))
        torch_optimizers.register_optimizer_step_post_hook(after)

    def _before_traced_step(self):
        self._watch_regions()
        self._thread.traced = code = traced_code()
        if code[0] is self._step_code:
            self._thread.stepping = now_compiled()

    def _after_traced_step(self):
        if traced_code() is getattr(self._thread, "traced", None):
            self._thread.stepping = now_compiled()

    def _watch_regions(self):
        """From the first traced step on: the compiler is loaded then."""
        if self._around_regions:
            return
        for tell in (self._before_compiled_step, self._after_compiled_step):
            self._around_regions.append(CALLBACK(torch.compiler.disable(tell)))
        torch._dynamo.convert_frame.register_bytecode_hook(harmless(self._region_made))

    def _region_made(self, *_):
        region, stepping = now_compiled(), getattr(self._thread, "stepping", None)
        self._thread.stepping = None
        if stepping == region:
            known = torch_optimizers.Optimizer
            self._compiled.update(found for found in gc.get_objects() if issubclass(type(found), known))
        self.recorder.region_made(region.encode(), stepping == region, *self._around_regions)

    def _before_compiled_step(self):
        for optimizer in list(self._compiled):
            self.optimizers.before_step(optimizer)

    def _after_compiled_step(self):
        for optimizer in list(self._compiled):
            self.optimizers.steps_one_after_another(optimizer)
            self.optimizers.after_step(optimizer)
