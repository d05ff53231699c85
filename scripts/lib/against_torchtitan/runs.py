"""A checkout of TorchTitan, as one rank."""
import dataclasses
import pathlib

from against import runs

TRAIN = pathlib.Path(__file__).resolve().parent / "train.py"


@dataclasses.dataclass(frozen=True)
class Machine(runs.Machine):
    torchtitan: pathlib.Path  # a checkout of v0.2.2

    def framework(self, _configuration):
        return "torchtitan"

    def needed(self):
        return [(self.torchtitan / "torchtitan" / "train.py",
                 "git clone --branch v0.2.2 https://github.com/pytorch/torchtitan, and give --torchtitan")]

    def shard(self, configuration, folder):
        (folder / "job.toml").write_text(configuration.job)
        return super().shard(configuration, folder)

    def rank_words(self, configuration):
        """The stages of a pipeline tell each other the shapes of their messages."""
        return ["--ranks", ",".join(map(str, configuration.column()))]

    def exec_words(self, configuration):
        words = ["--steps", "2", "--no-memory-limit"]
        return words + (["--expert-balance", "balanced"] if configuration.has_experts() else [])

    def command(self, _configuration):
        return [self.python, TRAIN, "--job.config_file", "job.toml", "--job.dump_folder", "dump"]

    def environment(self, configuration):
        return {"ONERANK_MODEL": configuration.model, "PYTHONPATH": str(self.torchtitan),
                "OMP_NUM_THREADS": "1"}

    def has_step(self, configuration):
        """A stage waits for messages of others."""
        return not configuration.family.endswith("stages")
