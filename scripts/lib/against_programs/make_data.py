"""What programs read and cannot download: usage: make_data.py FOLDER

  tokens/       train.bin and val.bin of nanoGPT
  text.txt      sentences, a line each
  sentences/    the same as train.jsonl, for datasets
  sentences.model  a tokenizer of SentencePiece for them
  chats/        the same as questions and answers
  llama/        a Llama of 33 M parameters in the form of transformers: settings, tokenizer, zeros for weights
  texts/        the sentences as files, for litgpt
  images/       train and val, of two classes
  picotron.json settings of picotron with this Llama
  deepspeed-N.json  settings of ZeRO stage N for transformers' Trainer
"""
import io
import json
import pathlib
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


def sentences():
    generator = random.Random(1)
    return [" ".join(generator.choices(WORDS, k=200)) for _ in range(2000)]


def llama_weights():
    width, inner, rows = LLAMA["hidden_size"], LLAMA["intermediate_size"], LLAMA["vocab_size"]
    shapes = {"model.embed_tokens": (rows, width), "lm_head": (rows, width), "model.norm": (width,)}
    for layer in range(LLAMA["num_hidden_layers"]):
        inside = f"model.layers.{layer}."
        shapes.update({inside + f"self_attn.{name}_proj": (width, width) for name in "qkvo"})
        shapes.update({inside + "mlp.gate_proj": (inner, width), inside + "mlp.up_proj": (inner, width),
                       inside + "mlp.down_proj": (width, inner), inside + "input_layernorm": (width,),
                       inside + "post_attention_layernorm": (width,)})
    return {name + ".weight": numpy.zeros(shape, numpy.float32) for name, shape in shapes.items()}


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
    save_file(llama_weights(), folder / "model.safetensors", {"format": "pt"})


def write_images(folder):
    memory = io.BytesIO()
    Image.new("RGB", (64, 64)).save(memory, "JPEG")
    for part, count in (("train", 1024), ("val", 64)):
        for name in ("one", "two"):
            (folder / part / name).mkdir(parents=True)
            for number in range(count):
                (folder / part / name / f"{number}.jpg").write_bytes(memory.getvalue())


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
    (folder / "sentences").mkdir()
    (folder / "sentences" / "train.jsonl").write_text(
        "\n".join(json.dumps({"text": line}) for line in lines))
    sentencepiece.SentencePieceTrainer.train(
        input=str(folder / "text.txt"), model_prefix=str(folder / "sentences"), vocab_size=60,
        hard_vocab_limit=False, minloglevel=2)
    (folder / "chats").mkdir()
    (folder / "chats" / "train.jsonl").write_text("\n".join(
        json.dumps({"prompt": line[:400], "completion": line[400:]}) for line in lines))
    (folder / "texts").mkdir()
    for part in range(4):
        (folder / "texts" / f"{part}.txt").write_text("\n".join(lines[part::4]))
    write_images(folder / "images")
    write_llama(folder / "llama", lines)
    (folder / "picotron.json").write_text(json.dumps(picotron_settings(folder)))
    for stage in (2, 3):
        (folder / f"deepspeed-{stage}.json").write_text(json.dumps({
            "bf16": {"enabled": True}, "zero_optimization": {"stage": stage},
            "train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto",
            "gradient_clipping": 1.0}))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
