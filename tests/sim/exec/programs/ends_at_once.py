"""Ends while autograd's thread, made slow, has yet to take the interpreter to drop a function that it called."""

import os
import pathlib
import sys

import torch
from torch import nn

from sgd import Sgd

model = nn.Linear(16, 16).cuda()
optimizer = Sgd(model.parameters())
model.weight.register_hook(lambda _: torch.autograd.Variable._execution_engine.queue_callback(lambda: None))
for step in range(3):
    model(torch.randn(4, 16, device="cuda")).sum().backward()
    optimizer.step()
    if step == 0:
        cpu = min(os.sched_getaffinity(0))
        for task in pathlib.Path("/proc/self/task").iterdir():
            os.sched_setaffinity(int(task.name), {cpu})
            if (task / "comm").read_text().startswith("pt_autograd"):
                os.setpriority(os.PRIO_PROCESS, int(task.name), 19)
        sys.setswitchinterval(60)  # nobody takes the interpreter from the main thread
