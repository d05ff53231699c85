"""Small models of the families of transformers whose layers are not Llama's."""

# Keys of a config.json by family, beside the sizes that all have: a number of heads for keys, the
# name of the MLP's width where it is another, and what else its models say. Sequences are longer
# than the windows.
FAMILY_KEYS = {
    "opt": {"mlp": "ffn_dim", "keys": {"dropout": 0.0}},
    "olmo": {"groups": True},
    "olmo2": {"groups": True},
    "olmo3": {"groups": True, "keys": {"sliding_window": 256, "pad_token_id": 0}},
    "exaone4": {"groups": True, "keys": {"sliding_window": 384}},
    "cohere2": {"groups": True, "keys": {"sliding_window": 256, "sliding_window_pattern": 2}},
    "mistral": {"groups": True, "keys": {"sliding_window": 256}},
    "phi3": {"groups": True, "keys": {"sliding_window": 200, "pad_token_id": 0}},
    "gemma": {"groups": True, "head": True},
    "gemma2": {"groups": True, "head": True, "keys": {"sliding_window": 256}},
    "gemma3_text": {"groups": True, "head": True,
                    "keys": {"sliding_window": 384, "sliding_window_pattern": 2}},
    "glm": {"groups": True, "head": True, "keys": {"pad_token_id": 0}},
    "glm4": {"groups": True, "head": True, "keys": {"pad_token_id": 0}},
    "starcoder2": {"groups": True},
    "stablelm": {"groups": True, "keys": {"use_qkv_bias": True, "tie_word_embeddings": False}},
    "smollm3": {"groups": True, "keys": {"pad_token_id": 0}},
    "granite": {"groups": True, "keys": {"logits_scaling": 8.0, "residual_multiplier": 0.22,
                                         "embedding_multiplier": 12.0}},
    "seed_oss": {"groups": True, "head": True, "keys": {"pad_token_id": 0}},
    "cohere": {"groups": True},
    "hunyuan_v1_dense": {"groups": True, "head": True, "keys": {"pad_token_id": 0}},
    "ernie4_5": {"groups": True, "head": True},
    "nemotron": {"groups": True, "head": True},
    "arcee": {"groups": True, "head": True},
    "phi": {"keys": {"tie_word_embeddings": False}},
    "llama": {"groups": True, "head": True, "keys": {"attention_bias": True, "mlp_bias": True}},
}


def draw_config(draw, number):
    """A config.json; `number` chooses the family."""
    family = list(FAMILY_KEYS)[number % len(FAMILY_KEYS)]
    said = FAMILY_KEYS[family]
    width, heads = draw.one_of(64, 128), 2 * draw.between(4, 12)
    config = {"model_type": family, "num_hidden_layers": draw.between(2, 5),
              "hidden_size": heads * width, "num_attention_heads": heads,
              said.get("mlp", "intermediate_size"): draw.between(1024, 8192, 64),
              "vocab_size": draw.between(8000, 60000, 8),
              "tie_word_embeddings": draw.chance(0.4)}
    if said.get("groups"):
        config["num_key_value_heads"] = draw.one_of(1, 2, heads // 2, heads)
    if said.get("head"):
        config["head_dim"] = width
    return {**config, **said.get("keys", {})}
