"""Runs one rank of a configuration twice: as Onerank's shard, and as a program under `onerank exec`.

A configuration has a name, a family, world_size, rank, gpu and words, the arguments of
`onerank run` and `onerank estimate` for it."""
import dataclasses
import json
import os
import pathlib
import shlex
import subprocess

DONE, DOES_NOT_FIT = 0, 1


class RunFailed(Exception):
    """A run ended without a profile."""


@dataclasses.dataclass(frozen=True)
class Run:
    profile: dict
    peak: list  # what was allocated at the peak; see `onerank run --help`, --peak-snapshot


@dataclasses.dataclass(frozen=True)
class Machine:
    """The programs that the runs need. What a framework has of its own is in its module `runs`."""
    onerank: pathlib.Path
    python: pathlib.Path  # that runs the program
    seconds: int  # for one run of it

    def framework(self, _configuration):
        """As a plan names it."""
        raise NotImplementedError

    def command(self, configuration):
        """The program and its arguments."""
        raise NotImplementedError

    def rank_words(self, configuration):
        """Of `onerank exec`: the rank, and those without which it does not run."""
        return ["--rank", configuration.rank]

    def exec_words(self, _configuration):
        """Arguments of `onerank exec` for it."""
        return []

    def environment(self, _configuration):
        return {}

    def has_step(self, _configuration):
        """Whether one rank's run tells the program's step."""
        return True

    def needed(self):
        """Paths that must be there, each with the way out."""
        return []

    def missing(self):
        needed = [(self.onerank, "run scripts/quickstart, or give --build"), *self.needed(),
                  (self.python, "give --python")]
        return [(path, way_out) for path, way_out in needed if not path.exists()]

    def shard(self, configuration, folder):
        """What `onerank run` says of the rank."""
        profile, peak = folder / "shard.json", folder / "shard.peak.jsonl"
        command = [self.onerank, "run", "--world-size", configuration.world_size, "--rank",
                   configuration.rank, "--gpu", configuration.gpu, "--framework",
                   self.framework(configuration), "--device", "virtual", "--all-micro-batches",
                   "--output", profile, "--peak-snapshot", peak,
                   *configuration.onerank_arguments()]
        _run(command, folder / "shard.log", {}, folder)
        return _read(profile, peak, folder / "shard.log")

    def program(self, configuration, folder):
        """What the program does under `onerank exec`, as the same rank."""
        peak, log = folder / "program.peak.jsonl", folder / "program.log"
        profiles = _profiles(folder)
        command = [self.onerank, "exec", "--gpu", configuration.gpu, "--world-size",
                   configuration.world_size, *self.rank_words(configuration), "--timeout",
                   self.seconds, "--output", profiles, "--peak-snapshot", peak,
                   *self.exec_words(configuration), "--", *self.command(configuration)]
        _run(command, log, self.environment(configuration), folder)
        name = f"rank-{configuration.rank:05d}"
        of_rank = folder / f"program.peak-{name}.jsonl"  # where several ranks were run
        return _read(profiles / f"{name}.json", of_rank if of_rank.exists() else peak, log)

    def step_seconds(self, configuration, folder):
        """The plan's step and the program's, after both ran; none where the program's is unknown."""
        if not self.has_step(configuration):
            return None
        plan = self._estimate(["--world-size", configuration.world_size, "--gpu", configuration.gpu,
                               "--framework", self.framework(configuration), "--advice", "never",
                               *configuration.onerank_arguments()], folder)
        program = self._estimate(["--profiles", _profiles(folder)], folder)
        if not plan.get("time") or not program.get("time"):
            return None
        return plan["time"]["iteration_seconds"], program["time"]["iteration_seconds"]

    def _estimate(self, arguments, folder):
        command = [str(word) for word in [self.onerank, "estimate", *arguments, "--json"]]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode not in (DONE, DOES_NOT_FIT):
            raise RunFailed(f"exit code {done.returncode} of {shlex.join(command)}: "
                            f"{done.stderr.strip().splitlines()[-1:]}")
        return json.loads(done.stdout)


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
