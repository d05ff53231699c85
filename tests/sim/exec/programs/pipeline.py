"""torch.distributed.pipelining, 1F1B over four stages, shapes given."""

import os

import torch
import torch.distributed as dist
from torch import nn

torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.pipelining import PipelineStage, Schedule1F1B

STAGES = 4
dist.init_process_group("nccl")
mesh = init_device_mesh("cuda", (STAGES, dist.get_world_size() // STAGES), mesh_dim_names=("pp", "dp"))
group = mesh.get_group("pp")
stage = dist.get_rank(group)
model = nn.Linear(64, 64).cuda()
example = torch.empty(2, 64, device="meta", requires_grad=True)  # torch 2.15 sends no gradients of others
pipeline_stage = PipelineStage(model, stage, STAGES, torch.device("cuda", torch.cuda.current_device()),
                               input_args=(example,), output_args=(example,), group=group)
schedule = Schedule1F1B(pipeline_stage, n_microbatches=4, loss_fn=nn.functional.mse_loss)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for _ in range(2):
    batch = torch.randn(8, 64, device="cuda")
    arguments = (batch,) if stage == 0 else ()
    schedule.step(*arguments, target=batch if stage == STAGES - 1 else None)
    optimizer.step()
    optimizer.zero_grad()
dist.destroy_process_group()
