"""Random trainings that Onerank's shard and transformers' Trainer both take."""
import dataclasses
import json

from against.draw import Draw
from against.report import Judge
from against_transformers.layers import draw_config

# How ranks and types are shared out: DistributedDataParallel under autocast, or with a model that
# was loaded in bf16; FSDP2 that keeps parameters from forward to backward, or gathers them again;
# DeepSpeed's ZeRO stages.
LLAMA_FAMILIES = ("ddp-autocast", "ddp-bf16", "fsdp-2", "fsdp-3", "deepspeed-1", "deepspeed-2",
                  "deepspeed-3")
# DistributedDataParallel of other models than Llama, one after the other (layers.py). Onerank reads
# their config.json.
LAYER_FAMILIES = ("layers-autocast", "layers-bf16")
# Adapters of peft beside a model that was loaded in bf16.
ADAPTER_FAMILIES = ("lora-autocast", "lora-bf16", "lora-fsdp-2", "lora-fsdp-3")
FAMILIES = LLAMA_FAMILIES + LAYER_FAMILIES + ADAPTER_FAMILIES
PURE_FAMILIES = ("ddp-bf16", "layers-bf16", "lora-bf16")

JUDGE = Judge(program="transformers", kind="against_transformers", bound=0.005, close=0.001,
              close_share={})

CONFIG = "config.json"
HOPPER, AMPERE = "h100-sxm", "a100-sxm-80"

# A field of LlamaConfig, and the flag of a plan that says the same.
MODEL_FLAGS = {"num_hidden_layers": "--num-layers", "hidden_size": "--hidden-size",
               "num_attention_heads": "--num-attention-heads",
               "num_key_value_heads": "--num-query-groups", "head_dim": "--kv-channels",
               "intermediate_size": "--ffn-hidden-size", "vocab_size": "--vocab-size",
               "max_position_embeddings": "--max-position-embeddings"}

# What every model here is.
LLAMA = ["--group-query-attention", "--swiglu", "--normalization", "RMSNorm",
         "--position-embedding-type", "rope", "--disable-bias-linear", "--hidden-dropout", "0",
         "--attention-dropout", "0"]


@dataclasses.dataclass(frozen=True)
class Configuration:
    """One training, seen from rank 0. `words` are the flags of the plan."""
    name: str
    family: str
    world_size: int
    words: tuple
    program: str  # the argument of train.py, JSON
    gpu: str = HOPPER
    rank: int = 0
    config: str = ""  # the config.json that the plan names, if its words do not say the model

    def onerank_arguments(self):
        return list(self.words)


def _model(draw):
    width, heads = draw.one_of(64, 96, 128), draw.between(4, 24)
    return {"num_hidden_layers": draw.between(1, 5),
            "hidden_size": draw.between(512, 4096, 128) if draw.chance(0.5) else heads * width,
            "num_attention_heads": heads,
            "num_key_value_heads": draw.one_of(*[g for g in range(1, heads + 1) if heads % g == 0]),
            "head_dim": width, "intermediate_size": draw.between(1024, 12288, 64),
            "vocab_size": draw.between(8000, 60000, 8),
            "tie_word_embeddings": draw.chance(0.4)}


def _model_words(model):
    words = [str(word) for field, flag in MODEL_FLAGS.items() for word in (flag, model[field])]
    tied = [] if model["tie_word_embeddings"] else ["--untie-embeddings-and-output-weights"]
    return words + LLAMA + tied


def _words_of(model, in_file):
    return ["--model", CONFIG] if in_file else _model_words(model)


def _family_words(family):
    if family in PURE_FAMILIES:
        return ["--no-mixed-precision"]
    return [] if family.endswith("autocast") else ["--zero-stage", family[-1]]


def _deepspeed(family):
    """A configuration as people give it to the Trainer, which fills in what is "auto"."""
    if not family.startswith("deepspeed"):
        return {}
    buckets = ("reduce_bucket_size", "stage3_prefetch_bucket_size",
               "stage3_param_persistence_threshold")
    filled_in = ("train_batch_size", "train_micro_batch_size_per_gpu",
                 "gradient_accumulation_steps", "gradient_clipping")
    return {"deepspeed": {"bf16": {"enabled": "auto"}, **{key: "auto" for key in filled_in},
                          "zero_optimization": {"stage": int(family[-1]),
                                                **{key: "auto" for key in buckets}}}}


def _loaded_dtype(family):
    return "bfloat16" if family in PURE_FAMILIES + ADAPTER_FAMILIES else "float32"


def _draw_adapters(draw, family):
    """LoraConfig of peft, or nothing, and the flags of a plan that say the same."""
    if family not in ADAPTER_FAMILIES:
        return {}, []
    rank, dropout = draw.one_of(8, 16, 64), draw.one_of(0, 0, 0.1)
    modules = draw.one_of(("all-linear",), ("q_proj", "v_proj"),
                          ("q_proj", "k_proj", "v_proj", "o_proj"), ("gate_proj", "down_proj"))
    said = modules[0] if modules == ("all-linear",) else list(modules)
    return ({"lora": {"r": rank, "lora_dropout": dropout, "target_modules": said}},
            ["--lora-rank", str(rank), "--lora-dropout", str(dropout),
             "--lora-target-modules", ",".join(modules)])


def draw_configuration(seed, number, family):
    draw = Draw(f"{seed}/{family}", number)
    of_layers = family in LAYER_FAMILIES
    model = draw_config(draw, number) if of_layers else _model(draw)
    sequence = draw.between(512, 4096, 64)
    model["max_position_embeddings"] = sequence
    ranks, micro_batch = draw.one_of(2, 4, 8, 16, 64), draw.between(1, 4)
    micro_batches, recompute = draw.one_of(1, 1, 2, 4), draw.chance(0.4)
    words = [*_family_words(family), "--bf16", "--seq-length", str(sequence),
             "--micro-batch-size", str(micro_batch),
             "--global-batch-size", str(micro_batch * micro_batches * ranks)]
    if recompute:
        words += ["--recompute-granularity", "full"]
    adapters, adapter_words = _draw_adapters(draw, family)
    words += adapter_words
    # The Trainer would look for unused parameters beside checkpoints, where that fails.
    finds = {"ddp_find_unused_parameters": False} if adapters and recompute else {}
    program = {"model": model, "sequence_length": sequence, "dtype": _loaded_dtype(family),
               **adapters,
               "training": {"bf16": family not in PURE_FAMILIES,
                            "per_device_train_batch_size": micro_batch,
                            "gradient_accumulation_steps": micro_batches,
                            "gradient_checkpointing": recompute, **finds, **_deepspeed(family)}}
    return Configuration(name=f"{family}-{number}", family=family, world_size=ranks,
                         words=tuple(_words_of(model, of_layers) + words),
                         program=json.dumps(program), gpu=draw.one_of(HOPPER, HOPPER, AMPERE),
                         config=json.dumps(model) if of_layers else "")


def draw_configurations(seed, count, families):
    """`count` of each family."""
    return [draw_configuration(seed, number, family)
            for family in families for number in range(count)]
