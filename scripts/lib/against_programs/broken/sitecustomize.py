"""Breaks any program that trains, in the way that ONERANK_BREAK says.

It lies on PYTHONPATH and is imported by Python itself. Each way is one in which a run says nothing of the
training: `onerank exec` has to refuse it, and must never say that it fits.
"""
import itertools
import os
import sys
import types


def without_steps(torch):
    """The optimizer's step does nothing; at the second the program ends, as after its last one."""
    init = torch.optim.Optimizer.__init__
    calls = itertools.count(1)

    def no_step(*_, **__):
        if next(calls) == 2:
            sys.exit()

    def init_without_step(self, *arguments, **named):
        init(self, *arguments, **named)
        self.step = types.MethodType(no_step, self)

    torch.optim.Optimizer.__init__ = init_without_step


def on_another_device(torch):
    """The process uses another device before the one that it trains on."""
    torch.ones(1, device=f"cuda:{torch.cuda.device_count() - 1}")


def by_unknown_counts(_):
    """What the step does is a matter of numbers that a kernel computes."""
    from torch.optim.optimizer import register_optimizer_step_pre_hook

    register_optimizer_step_pre_hook(lambda *_: torch.rand(8, device="cuda").nonzero())


def in_another_world(_):
    """The program meets half of the ranks."""
    os.environ["WORLD_SIZE"] = str(int(os.environ["WORLD_SIZE"]) // 2)


WAYS = {"steps": without_steps, "device": on_another_device, "counts": by_unknown_counts,
        "world": in_another_world}

# Python is also asked where its torch is.
if "ONERANK_EXEC_WANTED_RANK" in os.environ:
    import torch

    WAYS[os.environ["ONERANK_BREAK"]](torch)
