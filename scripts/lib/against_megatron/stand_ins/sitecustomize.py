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

# Apex's product that adds a weight's gradient to the main gradient. It allocates nothing.
if "weight_gradient" in WANTED:
    apex = types.ModuleType("fused_weight_gradient_mlp_cuda")
    apex.wgrad_gemm_accum_fp32 = apex.wgrad_gemm_accum_fp16 = lambda *arguments: None
    sys.modules[apex.__name__] = apex
