"""A row of measurements as a plan.

Rows are written in the words of their source. Everything that a source says for all of its rows
stands in SOURCES, what single rows did otherwise in CORRECTIONS; two readers know the two ways in
which a row spells its model: an `arch` of plain numbers, or the arguments of Megatron-LM. What a
plan has a word for is put into it even where Onerank cannot do it yet: Onerank then says so itself,
and the row comes in on the day it can.
"""
import json
import math
import re

from .rows import LeftOut

# The start of a row's GPU -> a name of `onerank list gpus`. The first match wins.
GPUS = [
    ("B200", "b200-sxm"), ("GB200", "gb200"), ("GB300", "gb300"), ("DGX-GB200", "gb200"),
    ("DGX-GB300", "gb300"), ("DGX-B200", "b200-sxm"), ("DGX-B300", "b300-sxm"), ("H200", "h200-sxm"),
    ("H100 PCIe", "h100-pcie"), ("H100 9", "h100-sxm-96"), ("H100", "h100-sxm"), ("DGX-H100", "h100-sxm"),
    ("h100_80gb", "h100-sxm"), ("A100-SXM4-80GB", "a100-sxm-80"), ("A100 80GB", "a100-sxm-80"),
    ("a100_80gb", "a100-sxm-80"), ("a100_40gb", "a100-sxm-40"), ("A800 80GB", "a800-sxm"),
    ("A100 40GB", "a100-sxm-40"), ("V100 32GB", "v100-sxm2-32"), ("V100 16GB", "v100-sxm2-16"),
    ("RTX 4090", "rtx4090"), ("A6000", "rtx-a6000"),
]

RECOMPUTE = [("none", "none"), ("full", "full"), ("selective (core attention)", "selective"),
             ("selective attention", "selective"), ("selective op", "selective")]

NORMS = {"rmsnorm": "RMSNorm", "layernorm": "LayerNorm"}
ACTIVATIONS = {"gelu": "gelu", "relu": "relu", "squared-relu": "squared_relu"}
POSITIONS = {"rope": "rope", "learned": "learned_absolute", "none": "none", "alibi": "none"}

# What a source does in all of its rows, as keys of a plan ("section.key").
MEGATRON_DROPOUT = {"model.hidden_dropout": 0.1, "model.attention_dropout": 0.1}  # its defaults
# Its own layers, before TransformerEngine; it had no such check yet.
MEGATRON_OF_2022 = {"training.framework": "megatron-lm", "training.megatron_core": "0.1",
                    "training.transformer_impl": "local",
                    "training.attention_mask_in_dataloader": False,
                    "training.check_for_nan_in_loss_and_grad": False}
# Before 2 September 2021, when backward began to overlap collectives with products.
MEGATRON_OF_2021 = {**MEGATRON_OF_2022, "training.megatron_core": "0.0"}
SOURCES = {
    # Megatron-LM with TransformerEngine and its fused cross-entropy ("cef"; simu_tools sets Triton
    # up for it). run_pretrain_llama3.sh has no biases and no mask; on B200 attention is cuDNN's.
    "simumax": {"training.framework": "megatron-lm", "model.add_bias_linear": False,
                "model.normalization": "RMSNorm", "model.position_embedding": "rope",
                "training.attention": "fused", "training.cross_entropy_fusion": "te",
                "training.attention_mask_in_dataloader": False,
                # Its Megatron-LM (23e00ed) is core 0.14.0.
                "training.megatron_core": "0.14"},
    # Arguments that a row does not give have Megatron-LM's own defaults.
    "mcore-golden": {"training.framework": "megatron-lm"},
    # Selene (paper): eight HDR InfiniBand cards a node.
    "sc21": {**MEGATRON_DROPOUT, **MEGATRON_OF_2021, "cluster.inter_link": "ib-hdr-200"},
    "korthikanti": {**MEGATRON_DROPOUT, **MEGATRON_OF_2022, "cluster.inter_link": "ib-hdr-200"},
    # Jean Zay: four Omni-Path 100 cards a node (its jz/hpc-specs.md). Run by DeepSpeed's pipeline;
    # torch 1.10 with CUDA 11 loads modules eagerly. Without CUDA_LAUNCH_BLOCKING=1 runs of this
    # size hung (its chronicles-prequel.md, "dealing with JZ hanging" and "Hanging Issue").
    "bloom": {**MEGATRON_DROPOUT, "training.framework": "megatron-deepspeed",
              "training.attention": "unfused", "memory.cuda_module_loading": "eager",
              "time.launch_blocking": True,
              "cluster.inter_link": "opa-100", "cluster.nics_per_node": 4},
    # Its recipes run with model.ub_tp_comm_overlap=True (NVIDIA/dgxc-benchmarking v25.02.02,
    # llama3.1/llama3.1_70b.yaml and nemotron/configure.sh) and NCCL_NVLS_ENABLE=0 (configure.sh).
    "dgxc": {"training.framework": "megatron-lm", "cluster.inter_link": "ib-ndr-400",
             "parallelism.tp_comm_overlap": True, "cluster.nvls": False,
             # NeMo's data set makes no mask; its release is of February 2025.
             "training.attention_mask_in_dataloader": False, "training.megatron_core": "0.11",
             # DistributedDataParallelConfig's default, which NeMo leaves.
             "training.check_for_nan_in_loss_and_grad": False},
    # Its sample configurations: overlap_sync_grad, no overlap_sync_param, reduce_bucket_size. The
    # table is of its first commit (2023-07-06), whose image has flash-attn 1.0.5 (doc/install.md).
    "internevo": {"training.framework": "internevo", "training.attention": "flash1",
                  "cluster.inter_link": "roce-100", "cluster.nics_per_node": 4,
                  "parallelism.overlap_grad_reduce": True,
                  "parallelism.bucket_elements": 512 << 20},
    # What all of Megatron-Bridge's performance recipes have in common (NVIDIA-NeMo/Megatron-Bridge
    # v0.5.0): gradients in bf16 (set_llama3_common_configs and set_llama31_common_configs in
    # scripts/performance/configs/llama), TransformerEngine's cross-entropy and no search for NaN
    # (_set_common_perf_overrides in scripts/performance/utils/overrides.py), user buffers where
    # there are tensor ranks, buckets of 128 Mi elements and overlapped collectives of the
    # distributed optimizer (src/megatron/bridge/training/comm_overlap.py), NVLS off (executors.py
    # beside overrides.py), no mask (src/megatron/bridge/recipes/llama/llama3.py).
    "bridge": {"training.framework": "megatron-lm", "model.add_bias_linear": False,
               "training.attention": "fused", "training.cross_entropy_fusion": "te",
               "training.grad_reduce_in_bf16": True,
               "training.check_for_nan_in_loss_and_grad": False,
               "training.attention_mask_in_dataloader": False, "cluster.nvls": False,
               "parallelism.zero_stage": 1, "parallelism.overlap_grad_reduce": True,
               "parallelism.overlap_param_gather": True, "parallelism.tp_comm_overlap": True,
               "parallelism.bucket_elements": 128 << 20},
    "nanotron": {"training.framework": "nanotron", "model.add_bias_linear": False,
                 "cluster.inter_link": "efa-v2-p5",
                 "cluster.nics_per_node": 32},
    "torchtune": {"training.framework": "plain"},
    # Its tables do not say what the allocator was told; multinode_trainer.slurm of 9dec370 tells it
    # nothing, run_llama_train.sh expandable segments.
    # norm_type is rmsnorm (train_configs/llama3_8b.toml of 9dec370), which models/norms.py there
    # makes of PyTorch's operators. Attention was flash ("SDPA flash"): models/attention.py asks for
    # cuDNN's kernel since May 2025 (#1196).
    "torchtitan": {"training.framework": "torchtitan", "model.add_bias_linear": False,
                   "training.rms_norm_fusion": False, "training.attention": "flash"},
    # llm-foundry: each block is a unit of FSDP; eight 200 Gb/s RoCE cards a node. Its benchmarks
    # run attn_impl triton, flash_attn_triton.py of flash-attn 1 (submit_benchmarks.py). Rows say
    # "no bias", but their n_params are those of every bias and 50,368 words: 125m at 512 tokens has
    # 124,131,840, of which 25 x 2 x 768 are norms and 12 x 9 x 768 biases of layers.
    "mpt": {"training.framework": "plain", "training.attention": "flash1",
            "cluster.inter_link": "roce-200", "cluster.nics_per_node": 8},
}


# run_pretrain_deepseekv2.sh, whose routers have as many groups as there are expert ranks.
SIMUMAX_DEEPSEEK = {"model.qk_layernorm": True, "model.moe_router_pre_softmax": True,
                    "model.moe_router_topk_scaling_factor": 16, "model.moe_router_group_topk": 3,
                    "model.moe_router_load_balancing_type": "seq_aux_loss",
                    "model.moe_aux_loss_coeff": 3e-3,
                    "training.moe_expert_capacity_factor": 1,
                    "training.moe_pad_expert_input_to_capacity": True}

# grok1/grok1_314b.yaml, whose tokenizer is that of Llama 3.
GROK = {"model.normalization": "RMSNorm", "model.activation": "geglu",
        "model.add_bias_linear": False, "model.vocab_size": 128256,
        "model.moe_aux_loss_coeff": 1e-2, "training.moe_grouped_gemm": False,
        "training.moe_expert_capacity_factor": 1, "training.moe_pad_expert_input_to_capacity": True,
        "training.attention": "flash", "training.grad_reduce_in_bf16": True}

# What the rows whose ids start so really did, where their source contradicts itself.
CORRECTIONS = {
    # Which Megatron-LM a container of NeMo has (docs/releases/software-versions.md).
    "bridge-25.11": {"training.megatron_core": "0.15"},
    "bridge-26.02": {"training.megatron_core": "0.16"},
    "bridge-26.04": {"training.megatron_core": "0.17"},
    "bridge-26.06": {"training.megatron_core": "0.18"},
    "simumax-b200-deepseek": SIMUMAX_DEEPSEEK,
    "simumax-b200-deepseekv2_tp1_ep4": {"model.moe_router_num_groups": 4},
    "simumax-b200-deepseekv2_tp1_ep8": {"model.moe_router_num_groups": 8},
    "simumax-b200-deepseekv3_l4_tp1_ep4": {"model.moe_router_num_groups": 4},
    # NVTE_FUSED_ATTN in llama3.1/configure.sh, nemotron/configure.sh and grok1/configure.sh.
    "dgxc-v25.02.02-llama3.1-70b": {"training.attention": "fused"},
    "dgxc-v25.02.02-nemotron4-15b": {"training.attention": "fused"},
    "dgxc-v25.02.02-nemotron4-340b": {"training.attention": "flash"},
    "dgxc-v25.02.02-grok1-314b": GROK,
    # NeMo v2.3.0: nemo/collections/llm/recipes/nemotron4_340b.py, scripts/performance/utils.py and
    # recommended_model_configs/model_configs_h100.csv there.
    "dgxc-v25.05.05-nemotron4-340b": {"training.attention": "fused", "training.megatron_core": "0.12",
                                      "training.cross_entropy_fusion": "te",
                                      "training.grad_reduce_in_bf16": True},
    # nemotron/configure.sh sets CP=2 for bf16; the README's table does not say it. Without, a rank
    # would need 89 GiB of 80.
    "dgxc-v25.02.02-nemotron4-340b-bf16": {"parallelism.context": 2},
}


def matching(table, word, what, place="has no word in a plan"):
    """The value of the first entry of `table` that `word` starts with; else throws LeftOut."""
    for start, value in table:
        if str(word).startswith(start):
            return value
    raise LeftOut(f"{what} {word!r} {place}")


# bf16_with_fp8_mixed() in nemo/collections/llm/recipes/precision/mixed_precision.py.
NEMO_IN_EIGHT_BITS = {"dtype": "bf16", "fp8_format": "hybrid", "fp8_recipe": "delayed",
                      "fp8_param_gather": True}


# `precision` of a recipe of Megatron-Bridge: get_precision_config() in
# scripts/performance/utils/precision.py, and src/megatron/bridge/training/mixed_precision.py, which
# it calls. Runs in bf16 alone also get set_post_overrides() of utils/overrides.py.
BRIDGE_PRECISIONS = {
    "bf16": {"dtype": "bf16", "use_precision_aware_optimizer": True},
    "fp8_cs": {"dtype": "bf16", "fp8_format": "hybrid", "fp8_recipe": "tensorwise",
               "fp8_param_gather": True},
    "fp8_mx": {"dtype": "bf16", "fp8_format": "e4m3", "fp8_recipe": "mxfp8",
               "fp8_param_gather": True},
    "nvfp4": {"dtype": "bf16", "fp4_format": "e2m1", "fp4_recipe": "nvfp4",
              "fp4_param_gather": True},
}

# What a recipe does that no plan says: the key of a row -> what it is.
RECIPE_TECHNIQUES = {
    "megatron_fsdp": "Megatron-FSDP is not built",
    "offloaded_layers": "activations that are copied to the host are not modelled",
}


def _expert_overlap(config):
    """Recipes that overlap experts' communication delay weights' gradients, too (set_moe_a2a_overlap_overrides in
    scripts/performance of Megatron-Bridge, v0.2.0 to v0.5.0; perf_recipes since then)."""
    if not config.get("expert_overlap"):
        return {}
    if config.get("cuda_graphs") == "full_iteration":
        raise LeftOut("of experts in a graph of the whole iteration the row does not say the whole recipe")
    return {"overlap_moe_expert_parallel_comm": True, "delay_wgrad_compute": True}


def _recipe_training(config):
    """What the plan's training says of graphs and experts, which recipes of Megatron-Bridge route by fused kernels
    (moe_router_fusion in scripts/performance/configs, v0.2.0 to v0.5.0)."""
    training = {}
    if config.get("cuda_graphs"):  # "transformer_engine: attn, moe_router"; NeMo's "full" is its own graph of each layer
        impl, _, modules = config["cuda_graphs"].partition(": ")
        training["cuda_graph_impl"] = "local" if impl == "full" else impl
        training["cuda_graph_modules"] = modules.split(", ") if modules else []
    if config.get("dispatcher"):
        training["moe_token_dispatcher_type"] = "flex"
        training["moe_flex_dispatcher_backend"] = config["dispatcher"]
    if config.get("recipe") and config["arch"].get("experts"):
        training["moe_router_fusion"] = True
    for key in ("lora_rank", "lora_target_modules"):
        if key in config:
            training[key] = config[key]
    return training


def _precision(config):
    """What the plan's training says of types."""
    if "precision" in config:
        if config["precision"] not in BRIDGE_PRECISIONS:
            raise LeftOut(f"precision {config['precision']!r} has no word in a plan")
        return BRIDGE_PRECISIONS[config["precision"]]
    words = str(config["dtype"]).lower().removeprefix("amp_")
    if words == "fp8" and str(config.get("framework")).startswith("NeMo"):
        return NEMO_IN_EIGHT_BITS
    if "fp8" in words or "float8" in words:
        raise LeftOut("products in 8 bits are built for Megatron-LM's dense models alone")
    return {"dtype": _dtype(words)}


def _dtype(words):
    for name in ("bf16", "fp16", "fp32"):
        if words.startswith(name):
            return name
    raise LeftOut(f"dtype {words!r} has no word in a plan")


def _require(row, *keys):
    for key in keys:
        if row.config.get(key) is None:
            raise LeftOut(f"the row does not say {key}")


# --- Readers -------------------------------------------------------------------------------------

def _set(plan, path, value):
    section, key = path.split(".")
    plan.setdefault(section, {})[key] = value


def _whole_number(value):
    """A number, or the first one of several digits in words: "~250k (250112/250880 padded)"."""
    if isinstance(value, int):
        return value
    found = re.search(r"\d{4,}", str(value))
    return int(found.group()) if found else None


def _model_of_arch(arch):
    arch = {**arch, "vocab": _whole_number(arch.get("vocab"))}
    for key in ("layers", "hidden", "heads", "vocab"):
        if not isinstance(arch.get(key), int):
            raise LeftOut(f"the row does not say {key} of the model")
    model = {"num_layers": arch["layers"], "hidden_size": arch["hidden"],
             "num_attention_heads": arch["heads"], "vocab_size": arch["vocab"],
             "num_query_groups": arch.get("kv_heads") or arch["heads"],
             "tie_embeddings": arch.get("tied", False),
             "normalization": matching(NORMS.items(), arch.get("norm", "layernorm"), "norm"),
             "activation": "swiglu" if arch.get("glu") else ACTIVATIONS[arch.get("act", "gelu")],
             "position_embedding": matching(POSITIONS.items(), arch.get("pos", "learned"),
                                             "position embedding")}
    if arch.get("ffn") or arch.get("ffn_dense"):
        model["ffn_hidden_size"] = arch.get("ffn") or arch["ffn_dense"]
    if arch.get("head_dim"):
        model["kv_channels"] = arch["head_dim"]
    if arch.get("qk_norm"):
        model["qk_layernorm"] = True
    return {**model, **_experts(arch), **_latent_attention(arch),
            "hidden_dropout": 0, "attention_dropout": 0}


def _experts(arch):
    if not arch.get("experts"):
        return {}
    dense = arch.get("dense_layers", 0)
    return {"num_experts": arch["experts"], "moe_router_topk": arch["topk"],
            "moe_ffn_hidden_size": arch.get("moe_ffn") or arch["ffn"],
            "moe_shared_expert_intermediate_size": arch.get("shared_expert_ffn", 0),
            "moe_aux_loss_coeff": arch.get("aux_loss", 0),
            "moe_layer_freq": [0] * dense + [1] * (arch["layers"] - dense)}


def _latent_attention(arch):
    """Of "MLA q_lora1536 kv_lora512 qk128 rope64 v128"."""
    if "attn" not in arch:
        return {}
    widths = dict(re.findall(r"([a-z_]+?)_?(\d+)", arch["attn"]))
    if not arch["attn"].startswith("MLA") or not {"kv_lora", "qk", "rope", "v"} <= widths.keys():
        raise LeftOut(f"attention {arch['attn']!r} has no word in a plan")
    return {"multi_latent_attention": True, "q_lora_rank": int(widths.get("q_lora", 0)),
            "kv_lora_rank": int(widths["kv_lora"]), "qk_head_dim": int(widths["qk"]),
            "qk_pos_emb_head_dim": int(widths["rope"]), "v_head_dim": int(widths["v"])}


def _sequence_parallel(config):
    return bool(config.get("sequence_parallel")) or (
        str(config.get("tp_mode")).startswith("REDUCE_SCATTER") and config.get("tp", 1) > 1)


def _stages(config):
    """Where the embedding and the head each count as a layer, the outer pieces have one less: of
    the stages, or of their chunks."""
    layers = config["arch"]["layers"]
    pieces = (config.get("pp") or 1) * (config.get("vpp") or 1)
    if layers % pieces == 0 or (layers + 2) % pieces != 0:
        return {}
    inner = (layers + 2) // pieces
    return {"layers_per_stage": [inner - 1, *[inner] * (pieces - 2), inner - 1]}


def _plan_of_arch(row):
    config = row.config
    _require(row, "arch", "gpu", "gpus", "seq", "micro_batch", "global_batch", "dtype")
    optimizer = str(config.get("optimizer"))
    zero = config.get("zero")
    if zero is None:
        zero = 1 if "ZeRO-1" in optimizer or "zero1_group" in config else 0
    if config.get("fsdp"):
        zero = 3
    if config.get("zero1_group", config.get("dp")) != config.get("dp"):
        raise LeftOut("an optimizer sharded over a part of the data ranks has no word in a plan")
    for technique, reason in RECIPE_TECHNIQUES.items():
        if config.get(technique):
            raise LeftOut(reason)
    for technique in ("compile", "technique"):
        if config.get(technique) not in (None, False, "+packed"):
            raise LeftOut(f"{config[technique] if technique == 'technique' else 'torch.compile'}"
                          " is not built")
    overlaps = "overlap grad" in optimizer and "no overlap" not in optimizer
    plan = {"model": {**_model_of_arch(config["arch"]), "max_position_embeddings": config["seq"]},
            "parallelism": {"tensor": config.get("tp") or 1, "pipeline": config.get("pp") or 1,
                            "context": config.get("cp") or 1, "expert": config.get("ep") or 1,
                            "context_comm": config.get("cp_comm") or "p2p",
                            "virtual_stages": config.get("vpp") or 1, "zero_stage": zero,
                            "sequence_parallel": _sequence_parallel(config), **_expert_overlap(config),
                            "overlap_grad_reduce": overlaps, "overlap_param_gather": overlaps,
                            # nanotron cuts by cost, as Onerank does for its framework.
                            **({} if row.source == "nanotron" else _stages(config))},
            "training": {"micro_batch_size": config["micro_batch"],
                         "global_batch_size": config["global_batch"],
                         "sequence_length": config["seq"], **_precision(config), **_recipe_training(config),
                         "recompute": matching(RECOMPUTE, config.get("recompute", "none"),
                                                "recompute"),
                         "attention": "flash" if config.get("flash_attention", True) else "unfused"}}
    return plan


# Megatron-LM's arguments that are no flags of Onerank because they change no tensor that a rank holds.
NEUTRAL_ARGUMENTS = {
    "vocab-file", "tokenizer-type", "tokenizer-model",
    "attention-softmax-in-fp32",  # the fused softmax kernel computes in fp32 either way
    "moe-router-load-balancing-type",  # mock routers are balanced
}
# What a model with such an argument is, and Onerank's shard is not; or why its rows cannot be judged.
FOREIGN_ARGUMENTS = {
    "encoder-num-layers": "encoder-decoder models (T5) are not built",
    "spec": "state-space layers (Mamba) are not built",
    "mtp-num-layers": "the row lacks arguments of its file (--no-rope-fusion, groups of the router)",
}
GPT2_VOCABULARY = 50257  # of the BPE files that the functional tests use


def _plan_of_megatron_arguments(row):
    """The arguments are flags of Onerank, too: it reads them itself."""
    arguments = row.config["megatron_args"]
    for argument, reason in FOREIGN_ARGUMENTS.items():
        if argument in arguments:
            raise LeftOut(reason)
    flags = []
    if "num-experts" in arguments and "moe-grouped-gemm" not in arguments:
        flags.append("--no-moe-grouped-gemm")
    for argument, value in arguments.items():
        if argument not in NEUTRAL_ARGUMENTS:
            flags += [f"--{argument}"] + ([] if str(value).lower() == "true" else [str(value)])
    if "vocab-size" not in arguments:
        flags += ["--vocab-size", str(GPT2_VOCABULARY)]
    if "deterministic-mode" in arguments:
        # Recorded before Megatron-LM turned it off (pull request 7093, September 2026).
        flags.append("--fill-uninitialized-memory")
    return {"flags": flags}


# --- Rows ----------------------------------------------------------------------------------------

def _cluster(row):
    gpus = row.config.get("gpus")
    if not isinstance(gpus, int):
        raise LeftOut("the row does not say the number of GPUs")
    per_node = math.gcd(gpus, row.config.get("gpus_per_node") or 8)
    return {"gpu": matching(GPUS, row.config.get("gpu"), "GPU"),
            "nodes": gpus // per_node, "gpus_per_node": per_node}


def _file_or_flags(row):
    """Rows whose configuration is flags of `onerank estimate`, alone or over a file of Megatron-LM's
    functional tests (YAML, of which JSON is a part)."""
    if "megatron_test" not in row.config:
        return {"flags": row.config["flags"]}
    parts = [f"{key}: {json.dumps(value)}" for key, value in row.config["megatron_test"].items()]
    return {"file": "\n".join(parts), "flags": row.config["flags"]}


def plan_of(row):
    """The plan of a row, as JSON, with "flags" over it; or flags, with the text of the "file" that
    they are over. Throws LeftOut where there is none."""
    if not row.complete:
        raise LeftOut("incomplete: " + (row.missing[0] if row.missing else "not said what"))
    if "flags" in row.config:
        return _file_or_flags(row)
    if "plan" in row.config:  # as `onerank import` reads the row's recipe
        return row.config["plan"]
    reader = _plan_of_megatron_arguments if "megatron_args" in row.config else _plan_of_arch
    plan = reader(row)
    corrections = [told for start, told in CORRECTIONS.items() if row.id.startswith(start)]
    for said in [SOURCES.get(row.source, {}), *corrections]:
        for path, value in said.items():
            _set(plan, path, value)
            if "flags" in plan and said in corrections:  # which win over the file
                plan["flags"] += ["--set", f"{path}={json.dumps(value)}"]
    return {**plan, "cluster": {**_cluster(row), **plan.get("cluster", {})}}
