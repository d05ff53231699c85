"""Asks events how long the device took, and a profiler what it did; trains beside it."""

import torch
from torch.profiler import ProfilerActivity, profile

MIB = 2**20
matrix = torch.zeros(8192, 8192, device="cuda", dtype=torch.bfloat16)
other = torch.cuda.Stream()


def milliseconds(work):
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    work()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end)


def multiply():
    return matrix @ matrix


def multiply_beside():
    other.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(other):
        multiply()
    torch.cuda.current_stream().wait_stream(other)


def microseconds(work):
    return round(1000 * milliseconds(work))


multiply()
print("nothing", microseconds(lambda: None))
print("product", microseconds(multiply))
print("two", microseconds(lambda: (multiply(), multiply())))
print("beside", microseconds(multiply_beside))
print("copy", microseconds(lambda: matrix.clone()))
print("small", microseconds(lambda: [matrix[0, 0].add_(1) for _ in range(10)]), flush=True)

weight = torch.nn.Parameter(torch.zeros(8192, 8192, device="cuda", dtype=torch.bfloat16))
optimizer = torch.optim.SGD([weight], 0.1)
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiled:
    for _ in range(2):
        (matrix @ weight).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
rows = {row.key: row for row in profiled.key_averages()}
print("profiled", round(rows["aten::mm"].device_time_total), "calls", rows["aten::mm"].count)
kernels = [event for event in profiled.events() if str(event.device_type).endswith("CUDA")]
print("kernels", len(kernels), "of", len({event.name for event in kernels}), flush=True)
