"""Random training configurations that Onerank's shard and Megatron-LM both take."""
import dataclasses
import re

from against.draw import Draw
from against.report import Judge

from .techniques import combine
from .variations import vary

FAMILIES = ("dense", "fp8", "fp8-blocks", "fp4", "experts", "fp8-experts", "fp8-blocks-experts", "fp4-experts",
            "gpt-oss", "mla", "mtp", "local")
# Of Megatron-Bridge, whose checkout they need.
ADAPTERS = ("lora", "fp8-lora")

DENSE = ("dense", "fp8", "fp8-blocks", "fp4", "mtp", "local", *ADAPTERS)
EXPERTS = ("experts", "fp8-experts", "fp8-blocks-experts", "fp4-experts", "gpt-oss")
EIGHT_BITS = ("fp8", "fp8-experts", "fp8-lora")
FOUR_BITS = ("fp4", "fp4-experts")
OF_BLOCKS = ("fp8-blocks", "fp8-blocks-experts")

JUDGE = Judge(program="Megatron-LM", kind="against_megatron", bound=0.003, close=0.001,
              close_share={"dense": 0.9, "experts": 0.0, "mla": 0.0})

HOPPER, BLACKWELL = "h100-sxm", "b200"

# A list of modules is one word for Onerank, and several for Megatron-LM.
MODULES = re.compile(r"[a-z_]+(,[a-z_]+)+")

# What every run needs beside its model: mock data, and steps that end.
REAL_WORDS = ["--tokenizer-type", "NullTokenizer", "--mock-data", "--split", "949,50,1",
              "--train-iters", "2", "--lr", "1e-4", "--min-lr", "1e-5", "--lr-decay-iters", "10",
              "--lr-decay-style", "cosine", "--weight-decay", "1e-2", "--clip-grad", "1.0",
              "--log-interval", "1", "--eval-interval", "1000", "--eval-iters", "0",
              "--distributed-backend", "nccl"]

# What a flag needs beside it: distributed checkpoints are the default.
BESIDE = {"--overlap-param-gather-with-optimizer-step": ["--ckpt-format", "torch"]}


@dataclasses.dataclass(frozen=True)
class Configuration:
    """One training, seen from one rank of it. `words` are the arguments that both sides take."""
    name: str
    family: str
    world_size: int
    rank: int
    vocabulary: int
    words: tuple
    megatron_words: tuple = ()
    onerank_words: tuple = ()
    needs: frozenset = frozenset()  # stand-ins for libraries: see stand_ins/
    gpu: str = HOPPER

    def has_pipeline(self):
        words = self.words
        flag = "--pipeline-model-parallel-size"
        return flag in words and words[words.index(flag) + 1] != "1"

    def expert_share(self):
        """Of all tokens, what one expert gets: "1/4"."""
        def value(flag):
            return self.words[self.words.index(flag) + 1]
        return f"{value('--moe-router-topk')}/{value('--num-experts')}"

    def adapters(self):
        """The arguments of Megatron-Bridge's LoRA; none without adapters."""
        words = dict(zip(self.onerank_words[::2], self.onerank_words[1::2]))
        if "--lora-rank" not in words:
            return None
        lora = {"dim": int(words["--lora-rank"]), "dropout": float(words.get("--lora-dropout", 0))}
        if "--lora-target-modules" in words:
            lora["target_modules"] = words["--lora-target-modules"].split(",")
        return lora

    def onerank_arguments(self):
        # With --fp16 alone Megatron-LM reduces gradients in fp16.
        halves = ["--grad-reduce-in-bf16"] if "--fp16" in self.words else []
        return [*self.words, *self.onerank_words, *halves, "--vocab-size", str(self.vocabulary)]

    def megatron_arguments(self):
        # Without a flag experts run one by one there.
        shared = [part for word in self.words if word != "--no-moe-grouped-gemm"
                  for part in (word.split(",") if MODULES.fullmatch(word) else [word])]
        beside = [word for flag, words in BESIDE.items() if flag in shared for word in words]
        words = [*shared, *self.megatron_words, "--vocab-size", str(self.vocabulary), *beside,
                 *REAL_WORDS]
        return words if "--transformer-impl" in words else [*words, "--transformer-impl",
                                                            "transformer_engine"]


@dataclasses.dataclass
class Layout:
    """How the ranks share the work."""
    tensor: int
    pipeline: int
    chunks: int
    context: int
    data: int
    expert: int = 1

    @property
    def world_size(self):
        return self.tensor * self.pipeline * self.context * self.data

    def rank_of_stage(self, stage):
        """Of the first tensor and data rank, and the last context rank, whose ring is longest."""
        in_stage = self.tensor * (self.context - 1)
        return stage * (self.world_size // self.pipeline) + in_stage

    def words(self):
        words = ["--tensor-model-parallel-size", self.tensor,
                 "--pipeline-model-parallel-size", self.pipeline,
                 "--context-parallel-size", self.context]
        if self.chunks > 1:
            words += ["--num-virtual-stages-per-pipeline-rank", self.chunks]
        if self.tensor > 1:
            words.append("--sequence-parallel")
        if self.expert > 1:
            words += ["--expert-model-parallel-size", self.expert]
        return [str(word) for word in words]


def _layout(draw, family):
    tensor = draw.one_of(1, 1, 2, 2, 4)
    pipeline = draw.one_of(1, 1, 2, 4)
    chunks = draw.one_of(1, 1, 2) if pipeline > 1 else 1
    context = draw.one_of(1, 1, 1, 2) if family in ("dense", "fp8", "fp8-blocks", "fp4", *ADAPTERS) else 1
    data = draw.one_of(1, 2, 4)
    expert = draw.one_of(*[e for e in (1, 2, 4) if e <= data * tensor]) \
        if family in EXPERTS else 1
    if family in EXPERTS:
        expert = min(expert, data)
    return Layout(tensor, pipeline, chunks, context, data, expert)


def _model(draw, layout, family):
    """The words of the model, and whether it has dropout."""
    width = draw.one_of(64, 96, 128) if family in DENSE else 64
    heads = layout.tensor * draw.between(4, 16)
    groups = draw.one_of(*[g for g in range(layout.tensor, heads + 1, layout.tensor)
                           if heads % g == 0]) if family != "mla" else heads
    hidden = draw.between(1024, 6144, 128) if draw.chance(0.5) else heads * width
    if family == "mla":  # Megatron-LM divides it by the heads, although their widths are given
        hidden = max(1, hidden // (8 * heads)) * 8 * heads
    layers = layout.pipeline * layout.chunks * draw.between(1, 4 if layout.pipeline == 1 else 2)
    ffn = 64 * layout.tensor * draw.between(16, 256 // layout.tensor)
    words = ["--num-layers", layers, "--hidden-size", hidden, "--num-attention-heads", heads,
             "--ffn-hidden-size", ffn]
    if family != "mla":
        words += ["--kv-channels", width]
    if groups < heads:
        words += ["--group-query-attention", "--num-query-groups", groups]
    if draw.chance(0.6):
        words.append("--swiglu")
    words += ["--normalization", draw.one_of("RMSNorm", "LayerNorm")]
    rope = family in ("mla", "mtp") or draw.chance(0.7)
    words += ["--position-embedding-type", "rope" if rope else "learned_absolute"]
    if family in EXPERTS or draw.chance(0.6):
        words.append("--disable-bias-linear")
    if draw.chance(0.6):
        words.append("--untie-embeddings-and-output-weights")
    dropout = draw.one_of("0.0", "0.0", "0.1")
    words += ["--hidden-dropout", dropout, "--attention-dropout", dropout]
    return [str(word) for word in words]


def _variants(draw, family, words):
    """Variants of the layers, and what Megatron-LM fuses unless it is told not to."""
    gated, rope = "--swiglu" in words, "rope" in words
    more = []
    if family in DENSE:
        more += draw.one_of([], [], ["--qk-layernorm"])
        more += draw.one_of([], [], ["--rotary-percent", "0.5"]) if rope else []
    if draw.chance(0.3) and not gated and family in DENSE:
        more += ["--squared-relu", "--no-bias-gelu-fusion"]
    elif draw.chance(0.3):
        more.append("--no-bias-swiglu-fusion" if gated else "--no-bias-gelu-fusion")
    if rope and draw.chance(0.3):
        more.append("--no-rope-fusion")
    if draw.chance(0.2):
        more.append("--no-bias-dropout-fusion")
    return more


def _stages_as_text(draw, layout, words):
    """The words, with a layout of the stages instead of their number where it is drawn. The last
    stage has a layer at least: the stand-in for Apex's product would bring TransformerEngine's
    workspace to a stage that has none of its layers."""
    if layout.pipeline == 1 or not draw.chance(0.3):
        return words
    pieces, layers = layout.pipeline * layout.chunks, int(words[words.index("--num-layers") + 1])
    inner = draw.one_of(*range(1, layers // pieces + 1)) if pieces > 2 else 0
    outer = layers - inner * (pieces - 2)
    first = draw.between(1, outer - 1)
    last = outer - first
    flag = "--mtp-num-layers"
    predictions = f"m*{words[words.index(flag) + 1]}" if flag in words else ""
    text = (f"Et*{first}|" + (f"(t*{inner}|)*{pieces - 2}" if pieces > 2 else "") +
            f"t*{last}{predictions}L")
    flag = "--num-virtual-stages-per-pipeline-rank"
    if flag in words:
        at = words.index(flag)
        words = words[:at] + words[at + 2:]
    return [*words, "--pipeline-model-parallel-layout", text]


def _predictions(draw):
    """Layers of multi-token prediction, on the last stage."""
    return ["--mtp-num-layers", str(draw.one_of(1, 1, 2))]


def _adapters(draw, layout):
    """Onerank's words; Megatron-LM has none for them."""
    words = ["--lora-rank", str(layout.tensor * draw.one_of(4, 8, 16))]
    layers = [name for name in ("linear_qkv", "linear_proj", "linear_fc1", "linear_fc2") if draw.chance(0.5)]
    if layers:
        words += ["--lora-target-modules", ",".join(layers)]
    return words + draw.one_of([], [], ["--lora-dropout", "0.1"])


def _latents(draw):
    return ["--multi-latent-attention", "--q-lora-rank", str(draw.between(128, 512, 64)),
            "--kv-lora-rank", str(draw.between(128, 512, 64)), "--qk-head-dim", "64",
            "--qk-pos-emb-head-dim", str(draw.one_of(32, 64)), "--v-head-dim", "64",
            "--qk-layernorm"]


def _experts(draw, layout):
    experts = layout.expert * draw.one_of(2, 4)
    choices = draw.one_of(1, 2)
    words = ["--num-experts", experts, "--moe-router-topk", choices,
             "--moe-ffn-hidden-size", draw.between(512, 4096, 64), "--moe-permute-fusion"]
    if draw.chance(0.4):
        words += ["--moe-shared-expert-intermediate-size", draw.between(512, 4096, 64)]
    return [str(word) for word in words]


def _routing(draw, words):
    """How experts run, and how tokens are sent to them."""
    more = draw.one_of(["--moe-grouped-gemm"], ["--moe-grouped-gemm"], ["--no-moe-grouped-gemm"])
    more += ["--moe-token-dispatcher-type", draw.one_of("alltoall", "alltoall", "allgather")]
    more += draw.one_of([], ["--moe-router-dtype", "fp32"])
    if draw.chance(0.3):
        return [*more, "--moe-router-load-balancing-type", "sinkhorn"]
    if words[words.index("--moe-router-topk") + 1] == "1":
        more.append("--moe-router-pre-softmax")  # Megatron-LM asks for it
    return [*more, "--moe-router-load-balancing-type", "aux_loss", "--moe-aux-loss-coeff", "1e-2"]


def _training(draw, layout, family):
    """Words of the training, those of each side alone, and what stands in for a library."""
    sequence = draw.between(1024, 4096, 64)
    micro_batch = draw.between(1, 2)
    micro_batches = layout.pipeline * draw.between(1, 3) if layout.chunks > 1 else draw.between(2, 8)
    words = ["--seq-length", sequence, "--max-position-embeddings", sequence,
             "--micro-batch-size", micro_batch,
             "--global-batch-size", micro_batch * micro_batches * layout.data, "--bf16"]
    if draw.chance(0.7):
        words.append("--use-distributed-optimizer")
        words += draw.one_of([], ["--overlap-grad-reduce"],
                             ["--overlap-grad-reduce", "--overlap-param-gather"])
    unfused = layout.context == 1 and draw.chance(0.4)
    words += ["--attention-backend", "unfused" if unfused else "fused"]
    needs = set() if unfused else {"fused_attention"}
    if draw.chance(0.5):
        needs.add("weight_gradient")
    else:
        words.append("--no-gradient-accumulation-fusion")
    if draw.chance(0.3):
        words += ["--cross-entropy-loss-fusion", "--cross-entropy-fusion-impl", "native"]
    recompute = draw.one_of("none", "none", "selective", "full")
    if recompute != "none":
        words += ["--recompute-granularity", recompute]
    if layout.context > 1:
        words += ["--cp-comm-type", draw.one_of("p2p", "a2a")]
    return [str(word) for word in words], needs


def _recomputed_layers(draw, family, words):
    """Which layers full recompute runs again, and how many of them as one."""
    if "full" not in words:
        return []
    several = ("uniform", 1 if family == "mtp" else 2)
    method, layers = draw.one_of(("uniform", 1), several, ("block", 1), ("block", 2))
    return ["--recompute-method", method, "--recompute-num-layers", str(layers)]


def _recomputed_modules(draw, family, words):
    """Which modules selective recompute runs again."""
    modules = {"dense": ["core_attn", "mlp", "layernorm"], "fp8": ["core_attn", "mlp"],
               "fp8-blocks": ["core_attn", "mlp"],
               "fp8-blocks-experts": ["core_attn", "moe", "shared_experts", "moe_act"],
               "mtp": ["core_attn", "mlp", "layernorm"], "local": ["core_attn", "mlp"],
               "lora": ["core_attn", "mlp", "layernorm"], "fp8-lora": ["core_attn", "mlp"],
               "mla": ["core_attn", "mlp", "layernorm", "mla_up_proj"],
               "experts": ["core_attn", "moe", "shared_experts", "layernorm", "moe_act"],
               "fp8-experts": ["core_attn", "moe", "shared_experts", "moe_act"],
               "gpt-oss": ["core_attn", "moe", "layernorm", "moe_act"],
               "fp4": ["core_attn", "mlp", "layernorm"],
               "fp4-experts": ["core_attn", "moe", "shared_experts", "layernorm", "moe_act"]}[family]
    fails = set()
    if "--no-moe-grouped-gemm" in words or "delayed" in words:
        fails.add("moe_act")
    if "--disable-bias-linear" not in words:
        fails.add("mlp")
    chosen = [module for module in modules if draw.chance(0.5) and module not in fails]
    if "selective" not in words or not chosen:
        return []
    return ["--recompute-modules", ",".join(chosen)]


def _divided_inputs(draw, family, words):
    """Whether tensor ranks divide the inputs of recomputed layers, instead of the sequence. Experts
    divide the sequence wherever there are tensor ranks; with predictions of more tokens Megatron-LM fails."""
    flag = "--sequence-parallel"
    if family in EXPERTS or "full" not in words or flag not in words or draw.chance(0.5) or family == "mtp":
        return words
    return [word if word != flag else "--distribute-saved-activations" for word in words]


def _of_own_layers(words):
    """The words for Megatron-LM's own layers without TransformerEngine, Apex and their kernels; its norms without
    Apex are for whole sequences alone (WrappedTorchNorm in megatron/core/transformer/torch_norm.py)."""
    dropped = ("--sequence-parallel", "--distribute-saved-activations", "--no-rope-fusion",
               "--no-gradient-accumulation-fusion")
    words = [word for word in words if word not in dropped]
    words[words.index("--attention-backend") + 1] = "unfused"
    return [*words, "--transformer-impl", "local", "--no-rope-fusion", "--no-gradient-accumulation-fusion",
            "--no-masked-softmax-fusion"]


def _without(words, flags):
    """The words without these flags and the one value of each that has one."""
    kept = []
    for at, word in enumerate(words):
        is_value = at > 0 and words[at - 1] in flags and not word.startswith("--")
        if word not in flags and not is_value:
            kept.append(word)
    return kept


def _of_gpt_oss(draw, words):
    """The words of its layers, and those of each side for a window. TransformerEngine's grouped layers have no
    bias over tensor ranks, and Megatron-LM's fused activation is for experts alone."""
    words = _without(words, ("--swiglu", "--disable-bias-linear", "--no-moe-grouped-gemm", "--moe-grouped-gemm",
                             "--no-bias-swiglu-fusion", "--no-bias-dropout-fusion", "--moe-layer-freq",
                             "--moe-shared-expert-intermediate-size", "--expert-tensor-parallel-size"))
    words[words.index("--attention-backend") + 1] = "fused"
    words[words.index("--attention-dropout") + 1] = "0.0"  # cuDNN's windows have none
    window = draw.between(64, 512, 64)
    words += ["--softmax-type", "learnable", "--window-attn-skip-freq", "2", "--quick-geglu",
              "--activation-func-clamp-value", "7.0", "--glu-linear-offset", "1.0", "--moe-grouped-gemm",
              "--no-bias-dropout-fusion", "--expert-tensor-parallel-size", "1"]
    return words, ["--window-size", f"{window - 1},0"], ["--sliding-window", str(window)]


def _of_whole_blocks(words):
    """The words with widths and sequences of whole blocks on each rank, which are gathered in 8 bits then."""
    def rounded(word, flag):
        tensor = int(words[words.index("--tensor-model-parallel-size") + 1])
        whole = {"--hidden-size": 128, "--seq-length": 128 * tensor, "--max-position-embeddings": 128 * tensor,
                 "--ffn-hidden-size": 128 * tensor, "--moe-ffn-hidden-size": 128 * tensor,
                 "--moe-shared-expert-intermediate-size": 128 * tensor}
        return str(-(-int(word) // whole[flag]) * whole[flag]) if flag in whole else word
    return [rounded(word, words[at - 1]) if at else word for at, word in enumerate(words)]


def _gpu_of_bits(draw, bits):
    """Products of Blackwell read one copy of a matrix with one scale, or have scales of blocks."""
    if draw.chance(0.5):
        return HOPPER, bits
    return BLACKWELL, bits[:-1] + ["mxfp8"] if draw.chance(0.7) else bits


def draw_configuration(seed, number, family):
    seed = f"{seed}/{family}"
    draw, more = Draw(seed, number), Draw(f"{seed}/more", number)
    layout = _layout(draw, family)
    words = layout.words() + _model(draw, layout, family)
    if family == "mtp":
        words += _predictions(Draw(f"{seed}/predictions", number))
    words = _stages_as_text(Draw(f"{seed}/stages", number), layout, words)
    megatron = []
    if family == "mla":
        words += _latents(draw)
    if family in EXPERTS:
        words += _experts(draw, layout)
        words += _routing(more, words)
        megatron.append("--moe-router-force-load-balancing")
    gpu = HOPPER
    if family in EIGHT_BITS:
        bits = ["--fp8-format", more.one_of("hybrid", "e4m3"),
                "--fp8-recipe", more.one_of("tensorwise", "delayed")]
        gpu, bits = _gpu_of_bits(Draw(f"{seed}/gpu", number), bits)
        words += bits
    if family in OF_BLOCKS:
        words += ["--fp8-format", more.one_of("hybrid", "e4m3"), "--fp8-recipe", "blockwise"]
    if family in FOUR_BITS:
        gpu = BLACKWELL
        words += ["--fp4-format", "e2m1", "--fp4-recipe", "nvfp4"]
    words += _variants(more, family, words)
    training, needs = _training(draw, layout, family)
    real = []
    if family in EIGHT_BITS and "--use-distributed-optimizer" in training and more.chance(0.6):
        training.append("--fp8-param-gather")
        if "mxfp8" in words:
            real.append("--reuse-grad-buf-for-mxfp8-param-ag")
    if family in FOUR_BITS and "--use-distributed-optimizer" in training and more.chance(0.6):
        training.append("--fp4-param-gather")
    if Draw(f"{seed}/gradients", number).chance(0.3):
        training.append("--grad-reduce-in-bf16")
    training += _recomputed_modules(Draw(f"{seed}/modules", number), family, words + training)
    training += _recomputed_layers(Draw(f"{seed}/layers", number), family, training)
    words = _divided_inputs(Draw(f"{seed}/inputs", number), family, words + training)
    onerank = _adapters(Draw(f"{seed}/adapters", number), layout) if family in ADAPTERS else []
    if family in OF_BLOCKS:
        words = _of_whole_blocks(words)
    if family == "local":
        words, needs = _of_own_layers(words), set()
        real.append("--no-persist-layer-norm")
        onerank.append("--no-attention-softmax-in-fp32")
    words = vary(Draw(f"{seed}/variations", number), words, layout.world_size)
    if family not in (*ADAPTERS, "gpt-oss", "local"):
        words = combine(lambda way: Draw(f"{seed}/{way}", number), words)
    if family == "gpt-oss":
        words, windows, own_windows = _of_gpt_oss(Draw(f"{seed}/windows", number), list(words))
        real += windows
        onerank += own_windows
        needs.add("fused_attention")
    if "allgather" in words:
        needs.add("masked_select")
    if "mxfp8" in words or "nvfp4" in words or "blockwise" in words:
        needs.add("coalescing")
    stage = draw.between(0, layout.pipeline - 1)
    if family == "mtp" and stage > 0:  # stages between the ends know nothing of predictions
        stage = layout.pipeline - 1
    return Configuration(name=f"{family}-{number}", family=family, world_size=layout.world_size,
                         rank=layout.rank_of_stage(stage), vocabulary=draw.between(20000, 60000),
                         words=tuple(words), megatron_words=tuple(megatron + real),
                         onerank_words=tuple(onerank), needs=frozenset(needs), gpu=gpu)


def draw_configurations(seed, count, families):
    """`count` of each family."""
    return [draw_configuration(seed, number, family)
            for family in families for number in range(count)]
