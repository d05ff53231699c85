"""transformers.Trainer (and accelerate below it) with a small Llama; FSDP2 when told `fsdp`."""

import os
import sys
import tempfile

import torch
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments

config = LlamaConfig(hidden_size=128, intermediate_size=256, num_hidden_layers=2, vocab_size=512,
                     num_attention_heads=4, num_key_value_heads=2)
dataset = [{"input_ids": torch.arange(64), "labels": torch.arange(64)}] * 1024
fsdp = {"fsdp": "full_shard auto_wrap",
        "fsdp_config": {"version": 2, "transformer_layer_cls_to_wrap": ["LlamaDecoderLayer"]}}
arguments = TrainingArguments(
    output_dir=os.path.join(tempfile.gettempdir(), "trainer"), max_steps=2, bf16=True,
    per_device_train_batch_size=2, gradient_accumulation_steps=2, save_strategy="no",
    report_to=[], logging_steps=1, **(fsdp if "fsdp" in sys.argv else {}))
Trainer(model=LlamaForCausalLM(config), args=arguments, train_dataset=dataset).train()
