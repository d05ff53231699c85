"""pretrain_gpt.py of a checkout of Megatron-LM, as one rank."""
import dataclasses
import json
import os
import pathlib

from against import runs

HERE = pathlib.Path(__file__).resolve().parent
STAND_INS = HERE / "stand_ins"


@dataclasses.dataclass(frozen=True)
class Machine(runs.Machine):
    megatron: pathlib.Path  # a checkout of Megatron-LM; the Python has TransformerEngine
    fused_attention: pathlib.Path  # library of stand_ins/fused_attention.cpp
    bridge: pathlib.Path | None = None  # a checkout of Megatron-Bridge, for adapters

    def framework(self, _configuration):
        return "megatron-lm"

    def needed(self):
        return [(self.megatron / "pretrain_gpt.py",
                 "git clone https://github.com/NVIDIA/Megatron-LM, and give --megatron")]

    def exec_words(self, configuration):
        has_experts = "--num-experts" in configuration.words
        return ["--expert-balance", "balanced"] if has_experts else []

    def command(self, configuration):
        program = self.megatron / "pretrain_gpt.py"
        programs = [program] if configuration.adapters() is None else [HERE / "with_adapters.py", program]
        return [self.python, *programs, *configuration.megatron_arguments()]

    def has_step(self, configuration):
        """A stage waits for messages of others, and attention that is a stand-in takes no time."""
        return not configuration.has_pipeline() and "fused_attention" not in configuration.needs

    def environment(self, configuration):
        environment = {
            # Megatron-LM asks for it; the host has few cores, and compiles in this process.
            "CUDA_DEVICE_MAX_CONNECTIONS": "1", "OMP_NUM_THREADS": "1",
            "TORCHINDUCTOR_COMPILE_THREADS": "1",
            "PYTHONPATH": os.pathsep.join([str(STAND_INS), str(self.megatron)]),
            "ONERANK_STAND_INS": ",".join(sorted(configuration.needs))}
        if configuration.adapters() is not None:
            environment["ONERANK_BRIDGE"] = str(self.bridge)
            environment["ONERANK_ADAPTERS"] = json.dumps(configuration.adapters())
        if "masked_select" in configuration.needs:
            environment["ONERANK_EXPERT_SHARE"] = configuration.expert_share()
        if "fused_attention" in configuration.needs:
            environment["ONERANK_FUSED_ATTENTION"] = str(self.fused_attention)
        return environment
