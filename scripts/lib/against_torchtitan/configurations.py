"""Random jobs that Onerank's shard and TorchTitan v0.2.2 both take."""
import dataclasses
import json

from against.draw import Draw
from against.report import Judge

FAMILIES = ("llama3", "llama3-stages", "qwen3", "qwen3-moe", "llama4", "llama4-stages")

JUDGE = Judge(program="TorchTitan", kind="against_torchtitan", bound=0.01, close=0.003,
              close_share={"llama3": 0.9, "llama3-stages": 0.9})

HOPPER = "h100-sxm"
SCHEDULES = {"1F1B": 1, "GPipe": 1, "Interleaved1F1B": 2}  # chunks of a stage


@dataclasses.dataclass(frozen=True)
class Configuration:
    """One job, seen from one rank of it. `words` are the sizes of the model as a plan's flags; the rest
    of the plan is the job itself."""
    name: str
    family: str
    world_size: int
    rank: int
    words: tuple
    job: str  # TOML
    model: str  # the argument of train.py, JSON
    stages: int
    gpu: str = HOPPER

    def has_experts(self):
        return "--num-experts" in self.words

    def column(self):
        """The ranks of all stages that have the rank's place in theirs."""
        in_stage = self.world_size // self.stages
        return range(self.rank % in_stage, self.world_size, in_stage)

    def onerank_arguments(self):
        return ["job.toml", *self.words]


@dataclasses.dataclass(frozen=True)
class Layout:
    """How the ranks share the work."""
    stages: int
    schedule: str
    tensor: int
    replicas: int
    shards: int
    expert: int

    @property
    def world_size(self):
        return self.stages * self.tensor * self.replicas * self.shards

    def keys(self):
        keys = {"pipeline_parallel_degree": self.stages, "tensor_parallel_degree": self.tensor,
                "data_parallel_replicate_degree": self.replicas,
                "data_parallel_shard_degree": self.shards, "expert_parallel_degree": self.expert}
        return keys | ({"pipeline_parallel_schedule": self.schedule} if self.stages > 1 else {})


def _layout(draw, family):
    stages = draw.one_of(2, 2, 4) if family.endswith("stages") else 1
    schedule = draw.one_of(*SCHEDULES)
    has_experts = family.startswith(("llama4", "qwen3-moe"))
    tensor = 1 if has_experts else draw.one_of(1, 1, 2)
    replicas, shards = draw.one_of(1, 1, 2), draw.one_of(2, 4)
    expert = draw.one_of(1, 2, shards) if has_experts else 1
    return Layout(stages, schedule, tensor, replicas, shards, expert)


def _rounded_up(number, multiple):
    return -(-number // multiple) * multiple


def _sizes(draw, layout):
    """What all models have: fields of TorchTitan's model arguments, and flags of a plan."""
    width = draw.one_of(64, 128)
    heads = draw.one_of(4, 8, 16, 32)
    groups = max(layout.tensor, heads // draw.one_of(1, 2, 4))
    pieces = layout.stages * SCHEDULES[layout.schedule]
    fields = {"dim": width * heads, "n_layers": max(pieces, draw.between(2, 8)), "n_heads": heads,
              "n_kv_heads": groups, "vocab_size": draw.between(2048, 60000, 8)}
    flags = {"--hidden-size": fields["dim"], "--num-layers": fields["n_layers"],
             "--num-attention-heads": heads, "--num-query-groups": groups,
             "--kv-channels": width, "--vocab-size": fields["vocab_size"]}
    return fields, flags


def _llama3(fields, flags):
    flags["--ffn-hidden-size"] = _rounded_up(int(8 * fields["dim"] / 3), 256)


def _qwen3(draw, fields, flags):
    fields |= {"head_dim": flags["--kv-channels"], "hidden_dim": draw.between(512, 12288, 128),
               "enable_weight_tying": draw.chance(0.5)}
    flags["--ffn-hidden-size"] = fields["hidden_dim"]


def _qwen3_moe(draw, layout, fields, flags):
    experts = {"num_experts": layout.expert * draw.one_of(4, 8), "top_k": draw.one_of(2, 4)}
    fields |= {"head_dim": flags["--kv-channels"], "moe_inter_dim": draw.between(128, 1024, 128),
               "moe_args": experts}
    flags |= {"--num-experts": experts["num_experts"], "--moe-router-topk": experts["top_k"],
              "--moe-ffn-hidden-size": fields["moe_inter_dim"]}


def _llama4(draw, layout, fields, flags):
    experts = {"num_experts": layout.expert * draw.one_of(2, 4), "top_k": draw.one_of(1, 2)}
    step = draw.one_of(1, 2)
    fields |= {"moe_args": experts, "interleave_moe_layer_step": step}
    _llama3(fields, flags)
    # One shared expert; all that a token goes through is as wide as a dense layer
    # (TransformerBlock of models/llama4/model/model.py).
    width = _rounded_up(int(int(8 * fields["dim"] / 3) / (experts["top_k"] + 1)), 256)
    has_experts = [int((layer + 1) % step == 0) for layer in range(fields["n_layers"])]
    flags |= {"--num-experts": experts["num_experts"], "--moe-router-topk": experts["top_k"],
              "--moe-ffn-hidden-size": width, "--moe-shared-expert-intermediate-size": width,
              "--moe-layer-freq": json.dumps(has_experts)}


def _model(draw, layout, family):
    """What train.py gets, and the flags that say the same."""
    fields, flags = _sizes(draw, layout)
    name, flavor, more = family.removesuffix("-stages"), "debugmodel", []
    if name == "llama3":
        _llama3(fields, flags)
    elif name == "llama4":
        _llama4(draw, layout, fields, flags)
    elif name == "qwen3":
        _qwen3(draw, fields, flags)
        more = [] if fields["enable_weight_tying"] else ["--untie-embeddings-and-output-weights"]
    else:
        name, flavor = "qwen3", "debugmodel_moe"
        _qwen3_moe(draw, layout, fields, flags)
    words = [str(word) for pair in flags.items() for word in pair] + more
    return {"name": name, "flavor": flavor, "fields": fields}, words


def _training(draw, layout):
    micro_batch = draw.one_of(1, 1, 2)
    rounds = layout.stages * draw.between(1, 3) if layout.stages > 1 else 1
    training = {"local_batch_size": micro_batch * rounds, "steps": 3,
                "seq_len": draw.between(512, 8192, 256)}
    if layout.stages == 1 and draw.chance(0.3):
        training["global_batch_size"] = 2 * micro_batch * layout.replicas * layout.shards
    return training, micro_batch


def _toml(sections):
    return "".join(f"[{name}]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in keys.items())
                   for name, keys in sections.items())


def draw_configuration(seed, number, family):
    draw = Draw(f"{seed}/{family}", number)
    layout = _layout(draw, family)
    model, words = _model(draw, layout, family)
    training, micro_batch = _training(draw, layout)
    parallelism = layout.keys() | {
        "fsdp_reshard_after_forward": draw.one_of("default", "default", "always", "never")}
    if layout.stages > 1:
        parallelism["pipeline_parallel_microbatch_size"] = micro_batch
    job = {"model": {"name": model["name"], "flavor": model["flavor"]}, "training": training,
           "parallelism": parallelism,
           "activation_checkpoint": {"mode": draw.one_of("none", "full", "selective", "selective"),
                                     "selective_ac_option": draw.one_of("op", "1", "2")},
           "debug": {"moe_force_load_balance": True}}
    stage = draw.between(0, layout.stages - 1)
    return Configuration(name=f"{family}-{number}", family=family, world_size=layout.world_size,
                         rank=stage * (layout.world_size // layout.stages), words=tuple(words),
                         job=_toml(job), model=json.dumps(model), stages=layout.stages)


def draw_configurations(seed, count, families):
    """`count` of each family."""
    return [draw_configuration(seed, number, family)
            for family in families for number in range(count)]
