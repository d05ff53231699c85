"""What programs ask NVIDIA's management library, by pynvml and by torch."""

import pynvml
import torch

pynvml.nvmlInit()
print("driver", pynvml.nvmlSystemGetDriverVersion())
handle = pynvml.nvmlDeviceGetHandleByIndex(0)
print("name", pynvml.nvmlDeviceGetName(handle))
print("devices", pynvml.nvmlDeviceGetCount(), torch.cuda.device_count())
total = pynvml.nvmlDeviceGetMemoryInfo(handle).total
block = torch.empty(2**30, dtype=torch.uint8, device="cuda")
print("total", total)
print("used", pynvml.nvmlDeviceGetMemoryInfo(handle).used)
print("use", torch.cuda.utilization(), torch.cuda.device_memory_used())
print("peers", torch.cuda.can_device_access_peer(0, 1))
print("clock", torch.cuda.clock_rate())
links = [link for link in range(18) if pynvml.nvmlDeviceGetNvLinkState(handle, link)]
print("links", len(links))
print("limit", pynvml.nvmlDeviceGetPowerManagementLimit(handle))
start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
start.record()
end.record()
assert start.elapsed_time(end) > 0

import one_step
