"""Runs `onerank estimate` over plans, and `onerank comm` over sizes."""
import concurrent.futures
import json
import os
import subprocess

from .rows import LeftOut

PLAN = "/dev/stdin"
FITS, DOES_NOT_FIT, BAD_INPUT = 0, 1, 2


class OnerankFailed(Exception):
    """It ended with neither an answer nor a refusal."""

    def __init__(self, exit_code, message):
        super().__init__(message)
        self.exit_code = exit_code


class Onerank:
    """The built program. Equal plans run once; different ones run beside each other."""

    def __init__(self, build, jobs=None):
        self.program = build / "onerank"
        self.jobs = jobs or os.cpu_count() or 1

    def exists(self):
        return os.access(self.program, os.X_OK)

    def _estimate(self, text):
        plan = json.loads(text)
        flags = plan.pop("flags", [])
        is_all = not plan or "file" in plan  # no plan of the accuracy scripts' own making
        given = plan.get("file", json.dumps(plan))
        done = subprocess.run([self.program, "estimate", *(["--plan", PLAN] if plan else []),
                               "--json", "--no-advice", *flags],
                              input=given, capture_output=True, text=True, check=False)
        if done.returncode in (FITS, DOES_NOT_FIT):
            return json.loads(done.stdout)
        what, where = (done.stderr.splitlines() + ["", ""])[:2]
        if done.returncode == BAD_INPUT and is_all:
            return LeftOut(f"{what.removeprefix('error: ')}: {where.strip()}")
        if done.returncode == BAD_INPUT and where.startswith(f"  {PLAN}"):
            return LeftOut(what.removeprefix("error: "))
        if done.returncode == BAD_INPUT and where.split()[:1] and where.split()[0] in flags:
            return LeftOut(f"{what.removeprefix('error: ')}: {where.strip()}")
        raise OnerankFailed(done.returncode, f"{done.stderr}plan: {text}")

    def _comm(self, flags, size):
        arguments = ["comm", *flags, "-b", str(size), "-e", str(size), "--json"]
        done = subprocess.run([self.program, *arguments], capture_output=True, text=True,
                              check=False)
        if done.returncode != 0:
            raise OnerankFailed(done.returncode, f"{done.stderr}onerank {' '.join(arguments)}")
        return json.loads(done.stdout)["points"][0]["seconds"]

    def collective_seconds(self, flags, sizes):
        """What `onerank comm` says of each size."""
        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            return list(pool.map(lambda size: self._comm(flags, size), sizes))

    def estimates(self, plans):
        """For each plan its estimate as a dict, or the LeftOut that says what Onerank refuses."""
        texts = [json.dumps(plan, sort_keys=True) for plan in plans]
        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            futures = {text: pool.submit(self._estimate, text) for text in dict.fromkeys(texts)}
            try:
                return [futures[text].result() for text in texts]
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
