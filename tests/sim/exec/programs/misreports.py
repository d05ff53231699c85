"""Trains, and tells the recorder what it does not understand, so that an error of Onerank itself is kept."""

import ctypes
import os

import torch

model = torch.nn.Linear(16, 16).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    model(torch.zeros(4, 16, device="cuda")).sum().backward()
    optimizer.step()
recorder = ctypes.PyDLL(os.environ["ONERANK_EXEC_RECORDER"])
recorder.onerank_exec_memory_lasts(ctypes.c_uint64(0), b"nonsense", b"")
