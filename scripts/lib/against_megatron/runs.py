"""Runs one rank of a configuration twice: Onerank's shard, and Megatron-LM under `onerank exec`."""
import dataclasses
import json
import os
import pathlib
import shlex
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
STAND_INS = HERE / "stand_ins"
DONE, DOES_NOT_FIT = 0, 1


class RunFailed(Exception):
    """A run ended without a profile."""


@dataclasses.dataclass(frozen=True)
class Run:
    profile: dict
    peak: list  # what was allocated at the peak; see `onerank run --help`, --peak-snapshot


@dataclasses.dataclass(frozen=True)
class Machine:
    """The programs that the runs need."""
    onerank: pathlib.Path
    megatron: pathlib.Path  # a checkout of Megatron-LM
    python: pathlib.Path  # has torch, TransformerEngine and what Megatron-LM imports
    fused_attention: pathlib.Path  # library of stand_ins/fused_attention.cpp
    seconds: int

    def missing(self):
        """What is not there, and the way out; empty where all is."""
        needed = [(self.onerank, "run scripts/quickstart, or give --build"),
                  (self.megatron / "pretrain_gpt.py",
                   "git clone https://github.com/NVIDIA/Megatron-LM, and give --megatron"),
                  (self.python, "give --python")]
        return [(path, help_line) for path, help_line in needed if not path.exists()]

    def shard(self, configuration, folder):
        """What `onerank run` says of the rank."""
        profile, peak = folder / "shard.json", folder / "shard.peak.jsonl"
        command = [self.onerank, "run", "--world-size", configuration.world_size, "--rank",
                   configuration.rank, "--gpu", configuration.gpu, "--framework", "megatron-lm", "--device",
                   "virtual", "--all-micro-batches", "--output", profile, "--peak-snapshot", peak,
                   *configuration.onerank_arguments()]
        _run(command, folder / "shard.log", {}, folder)
        return _read(profile, peak, folder / "shard.log")

    def program(self, configuration, folder):
        """What pretrain_gpt.py does under `onerank exec`, as the same rank."""
        peak, log = folder / "program.peak.jsonl", folder / "program.log"
        profiles = _profiles(folder)
        command = [self.onerank, "exec", "--gpu", configuration.gpu, "--world-size", configuration.world_size,
                   "--rank", configuration.rank, "--timeout", self.seconds, "--output", profiles,
                   "--peak-snapshot", peak]
        if "--num-experts" in configuration.words:
            command += ["--expert-balance", "balanced"]
        command += ["--", self.python, self.megatron / "pretrain_gpt.py",
                    *configuration.megatron_arguments()]
        _run(command, log, self._environment(configuration), folder)
        return _read(profiles / f"rank-{configuration.rank:05d}.json", peak, log)

    def step_seconds(self, configuration, folder):
        """The plan's step and the program's, after both ran. None where one rank's run does not tell
        the program's: it waits for messages of other stages, or its attention is a stand-in, which
        takes no time."""
        if configuration.has_pipeline() or "fused_attention" in configuration.needs:
            return None
        plan = self._estimate(["--world-size", configuration.world_size, "--gpu", configuration.gpu,
                               "--framework", "megatron-lm", "--advice", "never",
                               *configuration.onerank_arguments()])
        program = self._estimate(["--profiles", _profiles(folder)])
        if not plan.get("time") or not program.get("time"):
            return None
        return plan["time"]["iteration_seconds"], program["time"]["iteration_seconds"]

    def _estimate(self, arguments):
        command = [str(word) for word in [self.onerank, "estimate", *arguments, "--json"]]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode not in (DONE, DOES_NOT_FIT):
            raise RunFailed(f"exit code {done.returncode} of {shlex.join(command)}: "
                            f"{done.stderr.strip().splitlines()[-1:]}")
        return json.loads(done.stdout)

    def _environment(self, configuration):
        environment = {
            # Megatron-LM asks for it; the host has few cores, and compiles in this process.
            "CUDA_DEVICE_MAX_CONNECTIONS": "1", "OMP_NUM_THREADS": "1",
            "TORCHINDUCTOR_COMPILE_THREADS": "1",
            "PYTHONPATH": os.pathsep.join([str(STAND_INS), str(self.megatron)]),
            "ONERANK_STAND_INS": ",".join(sorted(configuration.needs))}
        if "masked_select" in configuration.needs:
            environment["ONERANK_EXPERT_SHARE"] = configuration.expert_share()
        if "fused_attention" in configuration.needs:
            environment["ONERANK_FUSED_ATTENTION"] = str(self.fused_attention)
        return environment


def _profiles(folder):
    return folder / "program"


def _run(command, log, environment, folder):
    command = [str(word) for word in command]
    with log.open("w") as output:
        assignments = [f"{name}={value}" for name, value in environment.items()]
        print(shlex.join([*assignments, *command]), file=output, flush=True)
        done = subprocess.run(command, cwd=folder, env={**os.environ, **environment},
                              stdout=output, stderr=subprocess.STDOUT, check=False)
    if done.returncode not in (DONE, DOES_NOT_FIT):
        raise RunFailed(f"exit code {done.returncode}: {_last_error(log)}\n  see {log}")


def _last_error(log):
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines()]
    errors = [line for line in lines if "rror" in line.split(":")[0]]
    return (errors or lines)[-1]


def _read(profile, peak, log):
    if not profile.exists():
        raise RunFailed(f"no profile was written\n  see {log}")
    lines = peak.read_text().splitlines() if peak.exists() else []
    return Run(json.loads(profile.read_text()), [json.loads(line) for line in lines])
