"""Takes one step, and waits without end in the closure of another, which no code of its own calls."""

import threading

import torch

torch.ones(1, device="cuda")
import one_step

torch.optim.SGD([torch.nn.Parameter(torch.ones(1, device="cuda"))]).step(threading.Event().wait)
