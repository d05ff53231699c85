"""train.py, a program of transformers' Trainer, as one rank."""
import pathlib

from against import runs
from against_transformers.configurations import CONFIG

TRAIN = pathlib.Path(__file__).resolve().parent / "train.py"


class Machine(runs.Machine):
    def framework(self, configuration):
        return "deepspeed" if configuration.family.startswith("deepspeed") else "transformers"

    def shard(self, configuration, folder):
        if configuration.config:
            (folder / CONFIG).write_text(configuration.config)
        return super().shard(configuration, folder)

    def has_step(self, configuration):
        return not configuration.config  # which is beside the run alone

    def environment(self, configuration):
        """What `accelerate launch` sets for a configuration of FSDP2 (accelerate/utils/launch.py)."""
        if "fsdp" not in configuration.family:
            return {}
        return {"ACCELERATE_USE_FSDP": "true", "FSDP_VERSION": "2",
                "FSDP_RESHARD_AFTER_FORWARD": str(configuration.family.endswith("3")).lower(),
                "FSDP_AUTO_WRAP_POLICY": "TRANSFORMER_BASED_WRAP",
                "FSDP_TRANSFORMER_CLS_TO_WRAP": "LlamaDecoderLayer",
                "FSDP_CPU_RAM_EFFICIENT_LOADING": "false"}

    def command(self, configuration):
        return [self.python, TRAIN, configuration.program]
