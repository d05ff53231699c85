#!/usr/bin/python3
"""Random valid plans through `onerank`: what must hold in every estimate, whatever the plan.

    properties_test.py ONERANK [--seed S] [--count N] [--seconds T] [--first I]

Plan number I of a seed is the same in every run. A violation prints it with the command's words.
exit codes: 0 all held, 1 a violation
"""
import argparse
import json
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True

from invariants import RELATIONS, Violation, expect, expect_sound  # noqa: E402
from random_plans import random_plan  # noqa: E402

COMMAND_SECONDS = 500  # under a load of 40 an estimate of one second took 300
BAD_INPUT = 2


class Onerank:
    """The program, with a folder for its files."""

    def __init__(self, program, folder):
        self.program, self.folder = program, folder

    def run(self, command, plan, *options):
        path = self.folder / "plan.json"
        path.write_text(json.dumps(plan))
        words = [str(word) for word in (self.program, command, path, "--json", *options)]
        result = subprocess.run(words, capture_output=True, text=True, timeout=COMMAND_SECONDS, check=False)
        expect(result.returncode in (0, 1, BAD_INPUT), f"{' '.join(words[1:])}\n  exit code {result.returncode}\n{result.stderr}")
        return result

    def json(self, command, plan, *options):
        result = self.run(command, plan, *options)
        expect(result.returncode == 0, f"{command} {options}: exit code {result.returncode}\n{result.stderr}")
        return json.loads(result.stdout)

    def estimate(self, plan, *options):
        return self.json("estimate", plan, "--no-advice", "--exit-zero", *options)

    def estimate_if_valid(self, plan):
        """The estimate, or None where the plan is refused."""
        result = self.run("estimate", plan, "--no-advice", "--exit-zero")
        return None if result.returncode == BAD_INPUT else json.loads(result.stdout)

    def changed(self, plan, **sections):
        """The estimate of the plan with other keys in its sections, or None where that is refused."""
        return self.estimate_if_valid(plan | {name: plan[name] | keys for name, keys in sections.items()})

    def check(self, plan):
        result = self.run("check", plan)
        expect(result.returncode != BAD_INPUT, f"check refuses what estimate takes\n{result.stderr}")
        return json.loads(result.stdout), result.returncode


def test_plan(program, plan, relation):
    """Whether the plan is valid. Throws Violation."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="onerank-properties-"))
    try:
        onerank = Onerank(program, folder)
        estimate = onerank.estimate_if_valid(plan)
        if estimate is None:
            return False
        expect_sound(estimate)
        relation(onerank, plan, estimate)
        return True
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("onerank")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=1e9)
    options = parser.parse_args()
    began, valid, tried, violations = time.monotonic(), 0, 0, 0
    for number in range(options.first, options.first + options.count):
        if time.monotonic() - began > options.seconds:
            break
        plan = random_plan(random.Random(f"{options.seed} {number}"))
        relation = RELATIONS[number % len(RELATIONS)]
        tried += 1
        try:
            valid += test_plan(options.onerank, plan, relation)
        except (Violation, subprocess.TimeoutExpired) as violation:
            violations += 1
            print(f"violation: plan {number} of --seed {options.seed}, {relation.__name__}\n  {violation}\n"
                  f"  {json.dumps(plan)}", flush=True)
    print(f"{tried} plans, {valid} valid, {violations} violations, {time.monotonic() - began:.0f} s, --seed {options.seed}")
    return 1 if violations or not valid else 0


if __name__ == "__main__":
    sys.exit(main())
