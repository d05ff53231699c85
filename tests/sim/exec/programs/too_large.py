import torch

blocks = [torch.empty(2**30, device="cuda", dtype=torch.uint8) for _ in range(100)]
