"""Tells around every optimizer step what lasting memory is for: weights, gradients, states."""

import functools
import sys
import weakref
from time import sleep  # which is told to nobody

import torch

from .harmless import harmless
from .tensors import bytes_on_host, tell

# In these an optimizer makes what lasts. Gradients are made again for every step.
FIRST_STEPS = 3
WATCHDOG_LOOKS = 300e-3  # seconds, at least twice: PyTorch's watchdog of NCCL sleeps for 100 ms between its looks


def distributed():
    """torch.distributed with its process group; None if the program has none."""
    module = sys.modules.get("torch.distributed")
    return module if module and module.is_available() and module.is_initialized() else None


def let_watchdog_look():
    """What a collective used that nobody waited for, PyTorch's watchdog releases when it has seen the end
    of it. DistributedDataParallel's first bucket, which holds all gradients, is then still there when new
    ones are laid out in the second step, whose forward begins on a GPU long after the watchdog's look."""
    if distributed():
        sleep(WATCHDOG_LOOKS)


def parameters_of(optimizer):
    return (parameter for group in optimizer.param_groups for parameter in group["params"])


def update_on_host(optimizer):
    """What a step moves in the host's memory, in bytes, and whether it does so in one pass. It reads
    gradients, and reads and writes parameters and their states."""
    moved, kept = 0, 0
    for parameter in parameters_of(optimizer):
        if parameter.grad is None or bytes_on_host(parameter) == 0:
            continue
        state = optimizer.state.get(parameter, {})
        kept += sum(map(bytes_on_host, state.values())) if isinstance(state, dict) else 0
        moved += bytes_on_host(parameter.grad) + 2 * bytes_on_host(parameter)
    of_torch = type(optimizer).__module__.startswith("torch.optim")
    is_fused = not of_torch or kept == 0 or bool(optimizer.param_groups[0].get("fused"))
    return moved + 2 * kept, is_fused


def told(recorder, closure, tell_gradients):
    """It runs the model: it is no part of the step in which it is called. Gradients are there after it."""

    @functools.wraps(closure, updated=())
    def closure_told(*arguments, **named):
        recorder.closure_starts()
        try:
            loss = closure(*arguments, **named)
            tell_gradients()
            return loss
        finally:
            recorder.closure_ends()

    return closure_told


def with_told_closure(recorder, optimizers):
    """A hook that changes the arguments of an optimizer's step, whose first one is the optimizer."""

    def change(optimizer, arguments, named):
        if torch.compiler.is_compiling():
            return None
        tell_gradients = harmless(functools.partial(optimizers.tell_gradients, optimizer))
        if callable(named.get("closure")):
            return arguments, {**named, "closure": told(recorder, named["closure"], tell_gradients)}
        if len(arguments) > 1 and callable(arguments[1]):
            return (arguments[0], told(recorder, arguments[1], tell_gradients), *arguments[2:]), named
        return None

    return change


class Optimizers:
    def __init__(self, recorder, parameters):
        self.recorder = recorder
        self.parameters = parameters
        self.unfinished = weakref.WeakSet()  # those whose step has not ended
        self._steps = weakref.WeakKeyDictionary()  # taken by each
        self._updates = weakref.WeakKeyDictionary()  # update_on_host() of each
        self._told_updates = 0  # how many were told
        self._told_before = weakref.WeakKeyDictionary()  # of these, before the step of each

    def before_step(self, optimizer, *_):
        # By their first parameter optimizers of different parameters are told apart.
        self.recorder.optimizer_steps(next(map(id, parameters_of(optimizer)), 0))
        self._steps[optimizer] = step = self._steps.get(optimizer, 0) + 1
        self.unfinished.add(optimizer)
        self._told_before[optimizer] = self._told_updates
        is_new = step <= FIRST_STEPS or not self.parameters.are_known()
        if is_new:
            self.parameters.walk()
        self._tell_named(is_new)
        self._tell_unnamed(optimizer, is_new)
        if is_new:
            self._tell_rank()
            self.parameters.send()

    def after_step(self, optimizer, *_):
        self.unfinished.discard(optimizer)
        self._tell_update(optimizer)
        step = self._steps.get(optimizer, 0)
        if step > FIRST_STEPS:
            return
        if step == 1:
            let_watchdog_look()
        for parameter, state in optimizer.state.items():
            name = self.parameters.names.get(id(parameter), b"")
            for value in state.values() if isinstance(state, dict) else ():
                tell(self.recorder, value, b"optimizer_state", name)

    def steps_one_after_another(self, optimizer):
        """No optimizer steps it, whatever was told since its step began."""
        self._told_before[optimizer] = self._told_updates

    def tell_gradients(self, optimizer):
        self._tell_named(is_new=False)
        self._tell_unnamed(optimizer, is_new=False)

    def _tell_named(self, is_new):
        """The parameters of the models, and their gradients."""
        for reference, name, has_main_gradient in self.parameters.named:
            parameter = reference()
            if is_new:
                self.parameters.tell(parameter, name)
            gradient = getattr(parameter, "main_grad", None) if has_main_gradient else parameter.grad
            if gradient is not None:
                self.parameters.has_gradient(parameter)
                tell(self.recorder, gradient, b"gradient", name)

    def _tell_unnamed(self, optimizer, is_new):
        """Optimizers with copies of the weights are given the copies."""
        for parameter in parameters_of(optimizer):
            if id(parameter) in self.parameters.names:
                continue
            if is_new and self.parameters.names:
                tell(self.recorder, parameter, b"master_weight", b"")
            elif is_new:
                self.parameters.tell(parameter, b"")
            if parameter.grad is not None:
                tell(self.recorder, parameter.grad, b"gradient", b"")

    def _tell_rank(self):
        if group := distributed():
            self.recorder.is_rank(group.get_rank(), group.get_world_size())

    def _tell_update(self, optimizer):
        """An optimizer that stepped others did nothing itself."""
        if self._told_before.pop(optimizer, None) != self._told_updates:
            return
        if self._steps[optimizer] <= FIRST_STEPS:
            self._updates[optimizer] = update_on_host(optimizer)
        moved, is_fused = self._updates.get(optimizer, (0, True))
        if moved > 0:
            self._told_updates += 1
            self.recorder.host_updated(moved, is_fused)
