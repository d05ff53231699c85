"""Techniques that trainings of the field combine, beside those of `variations`: each way asks whether Megatron-LM takes
it with the words that are drawn, and returns these with its own. CUDA graphs of layers are not among them: what they
hold counts as allocated in the shard, and as reserved alone in PyTorch's statistics of a replay."""
from .variations import value


def whole_sequences(draw, words):
    """Tensor ranks without sequence parallelism; experts and MLA need it."""
    flag = "--sequence-parallel"
    if flag not in words or "--num-experts" in words or "--multi-latent-attention" in words or not draw.chance(0.2):
        return words
    return [word for word in words if word != flag]


def narrow_moments(draw, words):
    """Beside whole master weights: other recipes than these keep only what the weights lack of them."""
    whole = {"tensorwise", "mxfp8", "blockwise"} & set(words)
    if "--use-distributed-optimizer" not in words or not whole or not draw.chance(0.3):
        return words
    return [*words, "--use-precision-aware-optimizer", "--exp-avg-dtype", "bf16", "--exp-avg-sq-dtype", "bf16"]


def gathers_with_step(draw, words):
    flag = "--num-virtual-stages-per-pipeline-rank"
    if flag not in words or "--overlap-param-gather" not in words or not draw.chance(0.3):
        return words
    return [*words, "--overlap-param-gather-with-optimizer-step"]


def deferred_head(draw, words):
    """The gradients of the output layer's weight come last; it needs one of its own, and fused gradients."""
    is_free = "--untie-embeddings-and-output-weights" in words and "--mtp-num-layers" not in words
    fused = "--no-gradient-accumulation-fusion" not in words
    if value(words, "--pipeline-model-parallel-size") == 1 or not is_free or not fused or not draw.chance(0.3):
        return words
    return [*words, "--defer-embedding-wgrad-compute", *draw.one_of([], ["--wgrad-deferral-limit", "2"])]


def balance(draw, words):
    """Experts in groups; a loss of each sequence."""
    if "aux_loss" not in words or not draw.chance(0.3):
        return words
    return ["seq_aux_loss" if word == "aux_loss" else word for word in words]


def overlapped_experts(draw, words):
    """Forwards beside backwards (TransformerConfig.__post_init__)."""
    stages, chunks = (value(words, flag) for flag in ("--pipeline-model-parallel-size",
                                                      "--num-virtual-stages-per-pipeline-rank"))
    is_free = "alltoall" in words and value(words, "--expert-model-parallel-size") > 1 and (stages == 1) == (chunks == 1)
    again = {"full", "--recompute-modules", "--moe-layer-freq", "--moe-expert-capacity-factor"}
    if not is_free or again & set(words) or "--fp16" in words or not draw.chance(0.4):
        return words
    return [*words, "--overlap-moe-expert-parallel-comm", *draw.one_of([], ["--delay-wgrad-compute"])]


def released_memory(draw, words):
    return [*words, "--empty-unused-memory-level", str(draw.one_of(1, 2))] if draw.chance(0.1) else words


WAYS = (whole_sequences, narrow_moments, gathers_with_step, deferred_head, balance,
        overlapped_experts, released_memory)


def combine(draw_of, words):
    """`draw_of` gives the random numbers of a way by its name."""
    for way in WAYS:
        words = way(draw_of(way.__name__), list(words))
    return words
