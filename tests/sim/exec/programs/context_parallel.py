"""Ring attention over all ranks of a node."""

import os

import torch
import torch.distributed as dist
from torch import nn

torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.experimental import context_parallel

dist.init_process_group("nccl")
mesh = init_device_mesh("cuda", (dist.get_world_size() // 8, 8), mesh_dim_names=("dp", "cp"))
model = nn.Linear(64, 3 * 64, dtype=torch.bfloat16).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for _ in range(2):
    x = torch.randn(1, 4096, 64, device="cuda", dtype=torch.bfloat16)
    with context_parallel(mesh["cp"], buffers=[x], buffer_seq_dims=[1]):
        q, k, v = (t.unflatten(-1, (2, 32)).transpose(1, 2) for t in model(x).chunk(3, dim=-1))
        nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True).float().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
dist.destroy_process_group()
