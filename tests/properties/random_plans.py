"""Random plans of small models, of which most are valid. What the rules refuse is refused by onerank."""


def maybe(rng, probability):
    return rng.random() < probability


def random_model(rng, kind, layers):
    heads = rng.choice([4, 8, 16])
    hidden = heads * rng.choice([16, 32, 64])
    model = {"num_layers": layers, "hidden_size": hidden, "num_attention_heads": heads,
             "vocab_size": rng.choice([1000, 4096, 5003, 32000]), "max_position_embeddings": 4096,
             "hidden_dropout": rng.choice([0.0, 0.0, 0.1]), "attention_dropout": rng.choice([0.0, 0.0, 0.1])}
    if kind == "gpt":
        model |= {"normalization": "LayerNorm", "activation": rng.choice(["gelu", "relu"]),
                  "position_embedding": rng.choice(["learned_absolute", "rope", "none"]),
                  "add_bias_linear": maybe(rng, .7), "tie_embeddings": maybe(rng, .7)}
        return model
    model |= {"normalization": "RMSNorm", "activation": rng.choice(["swiglu", "geglu"]),
              "position_embedding": "rope", "add_bias_linear": False, "tie_embeddings": maybe(rng, .3),
              "ffn_hidden_size": hidden * rng.choice([2, 3, 4])}
    if "latent" in kind:
        key = rng.choice([32, 64])
        model |= {"multi_latent_attention": True, "q_lora_rank": rng.choice([0, 64, 96]),
                  "kv_lora_rank": rng.choice([64, 128]), "qk_head_dim": key, "v_head_dim": key,
                  "qk_pos_emb_head_dim": rng.choice([16, 32]), "qk_layernorm": maybe(rng, .5)}
    else:
        model["num_query_groups"] = rng.choice([heads, heads // 2, heads // 4, 1])
    if "experts" in kind:
        model |= random_experts(rng, layers)
    return model


def random_experts(rng, layers):
    experts = {"num_experts": rng.choice([4, 8, 16]), "moe_router_topk": rng.choice([1, 2, 4]),
               "moe_ffn_hidden_size": rng.choice([128, 256]), "moe_aux_loss_coeff": rng.choice([0, 0.01]),
               "moe_router_load_balancing_type": rng.choice(["aux_loss", "seq_aux_loss", "none"]),
               "moe_router_score_function": rng.choice(["softmax", "sigmoid"]),
               "moe_router_pre_softmax": maybe(rng, .5)}
    if maybe(rng, .5):
        experts["moe_shared_expert_intermediate_size"] = rng.choice([128, 256])
    if maybe(rng, .4):
        experts["moe_layer_freq"] = rng.choice([[2], [0] + [1] * (layers - 1), [1]])
    return experts


def random_framework(rng, kind, context, zero_stage):
    if context > 1:
        return "megatron-lm"
    if zero_stage >= 2:
        return rng.choice(["torchtitan", "plain"])
    if kind in ("gpt", "llama"):
        return rng.choice(["megatron-lm"] * 4 + ["plain", "torchtitan", "nanotron", "megatron-deepspeed", "internevo"])
    return rng.choice(["megatron-lm", "megatron-lm", "plain"])


def random_parallelism(rng, kind, layers):
    zero_stage = rng.choice([0, 1, 1, 1, 2, 3]) if kind in ("gpt", "llama") else rng.choice([0, 1])
    tensor = rng.choice([1, 1, 2, 4])
    pipeline = 1 if zero_stage >= 2 else rng.choice([size for size in (1, 1, 2, 4) if layers % size == 0])
    context = rng.choice([1, 1, 1, 2]) if kind == "llama" and zero_stage < 2 else 1
    sequence = tensor > 1 and (kind not in ("gpt", "llama") or maybe(rng, .6))
    parallelism = {"tensor": tensor, "pipeline": pipeline, "context": context, "data": rng.choice([1, 2, 2, 4, 8]),
                   "zero_stage": zero_stage, "sequence_parallel": sequence,
                   "overlap_grad_reduce": maybe(rng, .4), "overlap_param_gather": zero_stage == 1 and maybe(rng, .3)}
    if parallelism["overlap_param_gather"]:
        parallelism["overlap_grad_reduce"] = True
    if context > 1:
        parallelism["context_comm"] = rng.choice(["p2p", "a2a"])
    if "experts" in kind:
        parallelism |= {"expert": rng.choice([1, 2, 4]), "expert_tensor": rng.choice([1, tensor])}
    if pipeline > 1:
        parallelism |= random_stages(rng, layers, pipeline)
    return parallelism


def random_stages(rng, layers, pipeline):
    ways = [{}, {"pipeline_schedule": "gpipe"}]
    if layers % (2 * pipeline) == 0:
        ways += [{"virtual_stages": 2}] * 2
    if layers > pipeline:
        each = layers // pipeline
        ways.append({"layers_per_stage": [each - 1] + [each] * (pipeline - 2) + [each + 1]})
    return rng.choice(ways)


def random_training(rng, kind, parallelism):
    framework = random_framework(rng, kind, parallelism["context"], parallelism["zero_stage"])
    micro_batch = rng.choice([1, 1, 2, 4])
    count = rng.choice([1, 2, 4, 8])
    if parallelism.get("virtual_stages", 1) > 1:
        count = parallelism["pipeline"] * rng.choice([1, 2, 3])
    dtype = rng.choice(["bf16", "bf16", "fp16", "fp32"])
    if parallelism["context"] > 1 or parallelism["zero_stage"] >= 2:
        dtype = "bf16"
    training = {"micro_batch_size": micro_batch, "global_batch_size": micro_batch * parallelism["data"] * count,
                "sequence_length": rng.choice([128, 256, 512, 1024]), "dtype": dtype, "framework": framework,
                "optimizer": rng.choice(["adamw", "adamw", "sgd"]),
                "recompute": rng.choice(["none", "selective", "full"]), "deterministic_mode": maybe(rng, .1)}
    if dtype == "fp32":
        training["attention"] = "unfused"
    elif parallelism["context"] > 1:
        training["attention"] = "flash"
    elif "latent" not in kind and maybe(rng, .6):
        training["attention"] = rng.choice(["flash", "unfused", "fused"])
    if framework == "torchtitan" and training["recompute"] == "selective":
        training["selective_ac_option"] = rng.choice(["op", "op", "2"])
    if framework == "megatron-lm" and maybe(rng, .3):
        training["cross_entropy_fusion"] = rng.choice(["native", "te", "none"])
    if maybe(rng, .3):
        training["steps"] = rng.choice([10, 1000, 100000])
    return training


def random_plan(rng):
    kind = rng.choice(["gpt", "llama", "llama", "experts", "experts", "latent", "latent experts"])
    layers = rng.choice([2, 4, 4, 6, 8])
    parallelism = random_parallelism(rng, kind, layers)
    world = parallelism["tensor"] * parallelism["pipeline"] * parallelism["context"] * parallelism["data"]
    gpus_per_node = min(8, world)
    return {"name": "random", "model": random_model(rng, kind, layers), "parallelism": parallelism,
            "cluster": {"gpu": rng.choice(["h100-sxm", "h100-sxm", "a100", "b200", "h200"]),
                        "nodes": world // gpus_per_node, "gpus_per_node": gpus_per_node},
            "training": random_training(rng, kind, parallelism)}
