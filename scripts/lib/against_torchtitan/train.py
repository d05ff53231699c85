"""TorchTitan v0.2.2 with a model of other sizes, random tokens and no metrics; its arguments are TorchTitan's.

ONERANK_MODEL, JSON: {"name": model, "flavor": whose arguments are changed, "fields": of these
arguments}."""
import dataclasses
import json
import os

import torch
import torchtitan.train
from torchtitan.components.metrics import MetricsProcessor
from torchtitan.protocols.train_spec import get_train_spec

asked = json.loads(os.environ["ONERANK_MODEL"])
spec = get_train_spec(asked["name"])
sizes = spec.model_args[asked["flavor"]]
for field, value in asked["fields"].items():
    if field == "moe_args":
        value = dataclasses.replace(sizes.moe_args, **value)
    setattr(sizes, field, value)


class RandomTokens:
    """In place of a data loader: no data set, no tokenizer."""

    def __init__(self, job_config, **_):
        self._shape = (job_config.training.local_batch_size, job_config.training.seq_len + 1)

    def __iter__(self):
        while True:
            tokens = torch.randint(sizes.vocab_size, self._shape)
            yield {"input": tokens[:, :-1].contiguous()}, tokens[:, 1:].contiguous()

    def state_dict(self):
        return {}

    def load_state_dict(self, _):
        pass


# By default every tenth step waits for its loss.
MetricsProcessor.should_log = lambda _, step: False
changed = dataclasses.replace(spec, build_tokenizer_fn=None, build_dataloader_fn=RandomTokens,
                              build_validator_fn=None)
torchtitan.train.train_spec_module.get_train_spec = lambda _: changed
torchtitan.train.main(torchtitan.train.Trainer)
