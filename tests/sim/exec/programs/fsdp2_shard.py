"""The Llama of Onerank's own shard (framework torchtitan) as a PyTorch program under FSDP2, or whole: the same
operators on tensors of the same shapes. usage: fsdp2_shard.py LAYERS HIDDEN FFN HEADS GROUPS VOCABULARY
SEQUENCE MICRO_BATCHES ZERO_STAGE RECOMPUTE REPLICAS TENSOR WORDS, where RECOMPUTE is none, full, op or N:
TorchTitan's selective_ac_option, TENSOR the number of tensor ranks, and WORDS of these: tied (embedding and head have
one weight) and always (fsdp_reshard_after_forward)"""
import collections
import contextlib
import os
import sys

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed._composable.replicate import replicate
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel, PrepareModuleInput, RowwiseParallel, SequenceParallel, loss_parallel, parallelize_module)
from torch.utils.checkpoint import CheckpointPolicy, create_selective_checkpoint_contexts

LAYERS, HIDDEN, FFN, HEADS, GROUPS, VOCABULARY, SEQUENCE, MICRO_BATCHES, ZERO_STAGE = map(
    int, sys.argv[1:10])
RECOMPUTE = sys.argv[10]
REPLICAS, TENSOR = map(int, sys.argv[11:13])
WORDS = sys.argv[13:]
WIDTH = HIDDEN // HEADS

# _op_sac_save_list in torchtitan/models/llama3/infra/parallelize.py of v0.2.2, of what runs here.
KEPT = {torch.ops.aten.mm.default,
        torch.ops.aten._scaled_dot_product_flash_attention.default,
        torch.ops._c10d_functional.reduce_scatter_tensor.default,
        torch.ops.aten.max.default}


def rotate(x, rotations):
    pairs = torch.view_as_complex(x.float().unflatten(-1, (-1, 2)))
    return torch.view_as_real(pairs * rotations).flatten(-2).to(x.dtype)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.query = nn.Linear(HIDDEN, HEADS * WIDTH, bias=False)
        self.key = nn.Linear(HIDDEN, GROUPS * WIDTH, bias=False)
        self.value = nn.Linear(HIDDEN, GROUPS * WIDTH, bias=False)
        self.projection = nn.Linear(HIDDEN, HIDDEN, bias=False)

    def heads(self, x, rotations):
        query, key, value = (
            layer(x).unflatten(-1, (-1, WIDTH)) for layer in (self.query, self.key, self.value))
        return rotate(query, rotations), rotate(key, rotations), value

    def forward(self, x, rotations):
        query, key, value = (t.permute(1, 2, 0, 3) for t in self.heads(x, rotations))
        attended = F.scaled_dot_product_attention(
            query, key, value, is_causal=True, enable_gqa=HEADS != GROUPS)
        del query, key, value
        return self.projection(attended.permute(2, 0, 1, 3).flatten(-2))


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(HIDDEN, FFN, bias=False)
        self.up = nn.Linear(HIDDEN, FFN, bias=False)
        self.down = nn.Linear(FFN, HIDDEN, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention_norm = nn.RMSNorm(HIDDEN)
        self.attention = Attention()
        self.mlp_norm = nn.RMSNorm(HIDDEN)
        self.mlp = Mlp()

    def forward(self, x, rotations):
        x = x + self.attention(self.attention_norm(x), rotations)
        return x + self.mlp(self.mlp_norm(x))


class Llama(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, HIDDEN)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm = nn.RMSNorm(HIDDEN)
        self.head = nn.Linear(HIDDEN, VOCABULARY, bias=False)
        self.tie()

    def tie(self):
        if "tied" in WORDS:
            self.head.weight = self.embedding.weight

    def forward(self, tokens, rotations):
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x, rotations)
        return self.head(self.norm(x))


def contexts():
    """_apply_op_sac in torchtitan/distributed/activation_checkpoint.py of v0.2.2."""
    products = collections.Counter()

    def policy(context, operator, *args, **kwargs):
        product = operator == torch.ops.aten.mm.default
        products[context.is_recompute] += product
        kept = operator in KEPT and not (product and products[context.is_recompute] % 2 == 0)
        return CheckpointPolicy.MUST_SAVE if kept else CheckpointPolicy.PREFER_RECOMPUTE

    return create_selective_checkpoint_contexts(policy)


def recompute(model):
    for number in range(LAYERS):
        if RECOMPUTE == "op":
            options = {"context_fn": contexts}
        elif RECOMPUTE == "full" or RECOMPUTE.isdigit() and (number + 1) % int(RECOMPUTE) == 0:
            options = {}
        else:
            continue
        model.layers[number] = checkpoint_wrapper(model.layers[number], early_stop=False, **options)


def shard(model, mesh):
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    options = {"mesh": mesh, "mp_policy": policy, "reshard_after_forward": ZERO_STAGE == 3}
    fully_shard(model.embedding, **options)
    for layer in model.layers:
        fully_shard(layer, **options)
    fully_shard([model.norm, model.head], **{**options, "reshard_after_forward": "always" in WORDS})
    fully_shard(model, **options)


def divide(model, mesh):
    """apply_tp in torchtitan/models/llama3/infra/parallelize.py of v0.2.2; here the sequence is dimension 0."""
    parallelize_module(model, mesh, {
        "embedding": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(0)),
        "norm": SequenceParallel(sequence_dim=0),
        "head": ColwiseParallel(input_layouts=Shard(0), output_layouts=Shard(-1), use_local_output=False)})
    for layer in model.layers:
        parallelize_module(layer, mesh, {
            "attention_norm": SequenceParallel(sequence_dim=0),
            "attention": PrepareModuleInput(
                input_layouts=(Shard(0), None), desired_input_layouts=(Replicate(), None)),
            "attention.query": ColwiseParallel(),
            "attention.key": ColwiseParallel(),
            "attention.value": ColwiseParallel(),
            "attention.projection": RowwiseParallel(output_layouts=Shard(0)),
            "mlp_norm": SequenceParallel(sequence_dim=0),
            "mlp": PrepareModuleInput(input_layouts=(Shard(0),), desired_input_layouts=(Replicate(),)),
            "mlp.gate": ColwiseParallel(),
            "mlp.up": ColwiseParallel(),
            "mlp.down": RowwiseParallel(output_layouts=Shard(0))})


def tables():
    exponents = torch.arange(0, WIDTH, 2, device="cuda").float() / WIDTH
    angles = torch.outer(torch.arange(SEQUENCE, device="cuda").float(), 500000.0 ** -exponents)
    angles = angles[:, None, None]
    return torch.polar(torch.ones_like(angles), angles)


def main():
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    torch.backends.cuda.enable_cudnn_sdp(False)  # the plan's attention is flash
    dist.init_process_group("nccl")
    world = dist.get_world_size()
    mesh = init_device_mesh("cuda", (REPLICAS, world // REPLICAS // TENSOR, TENSOR),
                            mesh_dim_names=("replicate", "shard", "tensor"))
    with torch.device("meta"):
        model = Llama()
    if TENSOR > 1:
        divide(model, mesh["tensor"])
    recompute(model)
    if ZERO_STAGE >= 2:
        shard(model, mesh["replicate", "shard"] if REPLICAS > 1 else mesh["shard"])
    else:
        model.bfloat16()
    model.to_empty(device="cuda")
    model.tie()
    if ZERO_STAGE == 0 and world > 1:
        replicate(model, device_mesh=mesh["shard"], bucket_cap_mb=100)
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.02)
    rotations = tables()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)

    for step in range(2):
        optimizer.zero_grad()
        torch.cuda.reset_peak_memory_stats()
        for _ in range(MICRO_BATCHES):
            tokens = torch.zeros(SEQUENCE, 1, device="cuda", dtype=torch.long)
            labels = torch.zeros(SEQUENCE, 1, device="cuda", dtype=torch.long)
            logits = model(tokens, rotations)
            with loss_parallel() if TENSOR > 1 else contextlib.nullcontext():
                rows = logits.float().flatten(0, 1)
                del logits
                losses = F.cross_entropy(rows, labels.reshape(-1), reduction="none")
                del rows
                loss = losses.mean() / MICRO_BATCHES
                del losses
                loss.backward()
        print(torch.cuda.max_memory_allocated(), torch.cuda.memory_allocated(),
              torch.cuda.max_memory_reserved(), flush=True)
        optimizer.step()
    dist.destroy_process_group()


main()
