"""Stands between `onerank exec` and an unedited Megatron-LM; Python runs it first.

ONERANK_STAND_INS names what stands in for libraries that this machine cannot run or build.
"""
import argparse
import ctypes
import os
import sys
import types
import typing

WANTED = set(filter(None, os.environ.get("ONERANK_STAND_INS", "").split(",")))

# Megatron-LM imports it from Python 3.12 on.
if not hasattr(typing, "override"):
    typing.override = lambda function: function

# Stages in the middle build no dataset, and are told by rank 0, which is absent, that they train.
argparse.Namespace.do_train = True

# cuDNN's attention, before TransformerEngine is loaded: see fused_attention.cpp.
if "fused_attention" in WANTED:
    ctypes.CDLL(os.environ["ONERANK_FUSED_ATTENTION"], mode=os.RTLD_GLOBAL | os.RTLD_LAZY)

# Attention in 8 bits: Megatron-LM's configuration asks for it, and no flag; TransformerEngine has it for
# MXFP8 with cuDNN 9.21 and later.
if "quantized_attention" in WANTED:
    from transformer_engine.pytorch.attention.dot_product_attention import utils

    argparse.Namespace.fp8_dot_product_attention = True
    utils.get_cudnn_version = lambda: (9, 22, 0)

# The all-gather dispatcher takes the weights of its own experts' tokens by their map, whose count only
# a kernel would know; balanced experts have ONERANK_EXPERT_SHARE of all places. What autograd keeps,
# values and map, is the same.
if "masked_select" in WANTED:
    import fractions

    import torch

    SHARE = fractions.Fraction(os.environ["ONERANK_EXPERT_SHARE"])

    class Selected(torch.autograd.Function):
        @staticmethod
        def forward(context, values, mask):
            context.save_for_backward(values, mask)
            return values.new_empty(int(mask.numel() * SHARE))

        @staticmethod
        def backward(context, gradient):
            return torch.zeros_like(context.saved_tensors[0]), None

    torch.Tensor.masked_select = lambda self, mask: Selected.apply(self, mask)

# Apex's product that adds a weight's gradient to the main gradient. It allocates nothing, nor does
# TransformerEngine's, whose workspace is there.
if "weight_gradient" in WANTED:
    def add_weight_gradient(inputs, gradient, main_gradient):
        from transformer_engine.pytorch.cpp_extensions import general_gemm
        general_gemm(inputs, gradient, out_dtype=main_gradient.dtype, layout="NT",
                     out=main_gradient, accumulate=True)

    apex = types.ModuleType("fused_weight_gradient_mlp_cuda")
    apex.wgrad_gemm_accum_fp32 = apex.wgrad_gemm_accum_fp16 = add_weight_gradient
    sys.modules[apex.__name__] = apex

# Given a device, PyTorch's coalescing manager starts a gather whose handle nobody waits for. Inputs
# and outputs are then held until the watchdog, which sleeps for 0.1 s, has seen the end of it: for
# how many layers depends on how fast this host runs.
if "coalescing" in WANTED:
    import functools

    import torch.distributed

    def without_device(coalescing_manager):
        @functools.wraps(coalescing_manager)
        def manager(group=None, device=None, async_ops=False):
            return coalescing_manager(group, async_ops=async_ops)
        return manager

    waiting = without_device(torch.distributed._coalescing_manager)
    for module in (torch.distributed, torch.distributed.distributed_c10d):
        module._coalescing_manager = waiting
