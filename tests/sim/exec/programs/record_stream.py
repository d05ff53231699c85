"""Blocks of 64 MiB that a second stream uses and that are given up at once, one after the other. The
host waits for the device after every `argument` of them. No ranks, no training."""

import sys

import torch

torch.cuda.set_device(0)
side = torch.cuda.Stream()
for count in range(1, 13):
    block = torch.empty(64 << 20, dtype=torch.uint8, device="cuda")
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        block.fill_(1)
    block.record_stream(side)
    del block
    if count % int(sys.argv[1]) == 0:
        torch.cuda.synchronize()
print("allocated", torch.cuda.max_memory_allocated())
print("reserved", torch.cuda.max_memory_reserved())

import one_step
