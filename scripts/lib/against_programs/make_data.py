"""What programs read and cannot download: usage: make_data.py FOLDER

  tokens/       train.bin and val.bin of nanoGPT
  text.txt      sentences, a line each
  sentences/    the same as train.jsonl, for datasets
  sentences.model  a tokenizer of SentencePiece for them
  chats/        the same as questions and answers
  llama/        a Llama of 33 M parameters in the form of transformers: settings, tokenizer, zeros for weights
  texts/        the sentences as files, for litgpt
  images/       train and val, of two classes
  llama3.tiktoken  as many ranks as the tokenizer of Llama 3 has
  llama-3.2-3b/ weights of Llama 3.2 3B for torchtune, zeros that take no room on the disk
  preferences/  the sentences as prompts with a chosen and a rejected answer
  judged/       the same as prompts with an answer that is good or bad
  instructions/ the sentences as instructions and outputs
  picotron.json settings of picotron with this Llama
  deepspeed-N.json  settings of ZeRO stage N for transformers' Trainer
"""
import base64
import io
import itertools
import json
import math
import pathlib
import struct
import random
import sys

import numpy
import sentencepiece
from PIL import Image
from safetensors.numpy import save_file
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

WORDS = ("rank tensor kernel stream peak stage shard group step layer token expert head batch "
         "gradient weight moment bucket cache event").split()
LLAMA = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 512,
         "intermediate_size": 1536, "num_hidden_layers": 8, "num_attention_heads": 8,
         "num_key_value_heads": 8, "vocab_size": 2048, "max_position_embeddings": 1024,
         "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 1, "tie_word_embeddings": False,
         "rms_norm_eps": 1e-5, "hidden_act": "silu", "torch_dtype": "float32"}


LLAMA_3B = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 3072,
            "intermediate_size": 8192, "num_hidden_layers": 28, "num_attention_heads": 24,
            "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 128256, "tie_word_embeddings": True}


def sentences():
    generator = random.Random(1)
    return [" ".join(generator.choices(WORDS, k=200)) for _ in range(2000)]


def llama_shapes(llama):
    width, inner, rows = llama["hidden_size"], llama["intermediate_size"], llama["vocab_size"]
    grouped = width // llama["num_attention_heads"] * llama["num_key_value_heads"]
    shapes = {"model.embed_tokens": (rows, width), "model.norm": (width,)}
    if not llama["tie_word_embeddings"]:
        shapes["lm_head"] = (rows, width)
    for layer in range(llama["num_hidden_layers"]):
        inside = f"model.layers.{layer}."
        shapes.update({inside + f"self_attn.{name}_proj": (width, width) for name in "qo"})
        shapes.update({inside + f"self_attn.{name}_proj": (grouped, width) for name in "kv"})
        shapes.update({inside + "mlp.gate_proj": (inner, width), inside + "mlp.up_proj": (inner, width),
                       inside + "mlp.down_proj": (width, inner), inside + "input_layernorm": (width,),
                       inside + "post_attention_layernorm": (width,)})
    return {name + ".weight": shape for name, shape in shapes.items()}


def write_hollow_weights(path, shapes):
    """A file of safetensors in bfloat16 whose data is a hole in the file."""
    header, end = {"__metadata__": {"format": "pt"}}, 0
    for name, shape in shapes.items():
        start, end = end, end + 2 * math.prod(shape)
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [start, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + end)


def write_llama_3b(folder):
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(LLAMA_3B))
    write_hollow_weights(folder / "model.safetensors", llama_shapes(LLAMA_3B))


def write_llama3_ranks(path):
    """All bytes, all pairs of them, and words of four letters: 128,000."""
    singles = [bytes([value]) for value in range(256)]
    pairs = [first + second for first in singles for second in singles]
    words = ("".join(letters).encode() for letters in itertools.product("abcdefghijklmnopqrstuvwxyz", repeat=4))
    ranks = singles + pairs + list(itertools.islice(words, 128000 - len(singles) - len(pairs)))
    path.write_bytes(b"".join(base64.b64encode(word) + b" %d\n" % rank for rank, word in enumerate(ranks)))


def write_llama(folder, lines):
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(LLAMA))
    tokenizer = Tokenizer(models.WordLevel(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    special = ["<s>", "</s>", "<unk>"]
    tokenizer.train_from_iterator(lines, trainers.WordLevelTrainer(special_tokens=special))
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({
        "tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>", "eos_token": "</s>",
        "pad_token": "</s>", "unk_token": "<unk>", "model_max_length": 1024}))
    weights = {name: numpy.zeros(shape, numpy.float32) for name, shape in llama_shapes(LLAMA).items()}
    save_file(weights, folder / "model.safetensors", {"format": "pt"})


def write_images(folder):
    memory = io.BytesIO()
    Image.new("RGB", (64, 64)).save(memory, "JPEG")
    for part, count in (("train", 1024), ("val", 64)):
        for name in ("one", "two"):
            (folder / part / name).mkdir(parents=True)
            for number in range(count):
                (folder / part / name / f"{number}.jpg").write_bytes(memory.getvalue())


def write_rows(folder, rows):
    folder.mkdir()
    (folder / "train.jsonl").write_text("\n".join(map(json.dumps, rows)))


def picotron_settings(folder):
    return {"distributed": {"tp_size": 2, "cp_size": 1, "pp_size": 2, "dp_size": 4, "pp_engine": "1f1b",
                            "backend": "nccl", "use_cpu": False},
            "model": {"name": str(folder / "llama"), "num_hidden_layers": LLAMA["num_hidden_layers"],
                      "num_attention_heads": LLAMA["num_attention_heads"],
                      "num_key_value_heads": LLAMA["num_key_value_heads"], "dtype": "bfloat16",
                      "use_flash_attention": False, "use_fused_adam": True},
            "training": {"seed": 42, "learning_rate": 3e-4, "total_train_steps": 4, "seq_length": 512,
                         "micro_batch_size": 4, "gradient_accumulation_steps": 4, "num_samples": 2000,
                         "max_tokens": None},
            "dataset": {"name": str(folder / "sentences"), "subset_name": None, "num_workers": 0, "num_proc": 1},
            "checkpoint": {"save_dir": str(folder / "out"), "save_frequency": 300, "load_path": ""},
            "logging": {"use_wandb": False, "project_name": "picotron", "run_name": None},
            "environment": {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", "FLASH_ATTEN": "0",
                            "HF_TOKEN": None}}


def main(folder):
    folder.mkdir(parents=True)
    lines = sentences()
    (folder / "text.txt").write_text("\n".join(lines))
    (folder / "tokens").mkdir()
    for part in ("train", "val"):
        tokens = numpy.random.default_rng(1).integers(50257, size=1 << 18).astype(numpy.uint16)
        tokens.tofile(folder / "tokens" / f"{part}.bin")
    write_rows(folder / "sentences", [{"text": line} for line in lines])
    sentencepiece.SentencePieceTrainer.train(
        input=str(folder / "text.txt"), model_prefix=str(folder / "sentences"), vocab_size=60,
        hard_vocab_limit=False, minloglevel=2)
    write_rows(folder / "chats", [{"prompt": line[:400], "completion": line[400:]} for line in lines])
    (folder / "texts").mkdir()
    for part in range(4):
        (folder / "texts" / f"{part}.txt").write_text("\n".join(lines[part::4]))
    write_images(folder / "images")
    write_llama(folder / "llama", lines)
    write_llama3_ranks(folder / "llama3.tiktoken")
    write_llama_3b(folder / "llama-3.2-3b")
    write_rows(folder / "instructions",
               [{"instruction": line[:400], "input": "", "output": line[400:]} for line in lines])
    write_rows(folder / "preferences",
               [{"prompt": line[:100], "chosen": line[100:300], "rejected": line[300:500]} for line in lines])
    write_rows(folder / "judged", [{"prompt": line[:100], "completion": line[100:300], "label": number % 2 == 0}
                                   for number, line in enumerate(lines)])
    (folder / "picotron.json").write_text(json.dumps(picotron_settings(folder)))
    for stage in (2, 3):
        (folder / f"deepspeed-{stage}.json").write_text(json.dumps({
            "bf16": {"enabled": True}, "zero_optimization": {"stage": stage},
            "train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto",
            "gradient_clipping": 1.0}))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
