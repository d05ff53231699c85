"""A training of transformers' Trainer as people write it: a random model, random tokens, two steps.

One argument, JSON: {"model": fields of a config.json (without model_type a Llama's), "training": fields of TrainingArguments,
"dtype": type in which the model is loaded, "sequence_length": tokens of a sample; "lora": fields of
peft's LoraConfig, if adapters are trained}."""
import json
import sys
import tempfile

import torch
from transformers import AutoConfig, AutoModelForCausalLM, Trainer, TrainingArguments
from transformers.modeling_utils import no_init_weights

asked = json.loads(sys.argv[1])
config = AutoConfig.for_model(**{"model_type": "llama", **asked["model"]})
config.use_cache = False
tokens = torch.randint(config.vocab_size, (asked["sequence_length"],))
# Without a mask of ones, as tokenizers give it, 4.57 takes samples for packed, and attends by a mask.
mask = torch.ones_like(tokens)
samples = [{"input_ids": tokens, "labels": tokens, "attention_mask": mask}] * 65536
with tempfile.TemporaryDirectory() as folder:
    # DeepSpeed's stage 3 divides a model that is made after its arguments.
    arguments = TrainingArguments(output_dir=folder, max_steps=2, save_strategy="no", report_to=[],
                                  logging_strategy="no", **asked["training"])
    with no_init_weights():  # no value matters on a virtual GPU, and the host has little memory
        model = AutoModelForCausalLM.from_config(config, dtype=getattr(torch, asked["dtype"]))
    model.tie_weights()
    if "lora" in asked:
        from peft import LoraConfig, get_peft_model
        model = get_peft_model(model, LoraConfig(task_type="CAUSAL_LM", **asked["lora"]))
        if arguments.gradient_checkpointing:  # else nothing in a checkpoint has a gradient
            model.enable_input_require_grads()
    Trainer(model=model, args=arguments, train_dataset=samples).train()
