import torch

torch.ones(1, device="cuda")
print("before", flush=True)
raise ValueError("broken on purpose")
