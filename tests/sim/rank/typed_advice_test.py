"""Advice is what the user gets: its flags, typed over the plan's, give its bytes and seconds.

usage: typed_advice_test.py ONERANK CASE
Real ranks on the virtual GPU, through the command line.
"""

import json
import subprocess
import sys

CASES = {
    # What follows from "auto" (the experts' tensor ranks, the global batch) has to follow again.
    "Experts": "--model mixtral-8x7b --num-layers 4 --gpu t4 --fp16 --attention-backend unfused "
               "--nodes 1 --sp --ep 2 --tp 2 --use-distributed-optimizer --seq-length 1024",
    "MicroBatch": "--model llama3-8b --num-layers 4 --gpu rtx4090 --nodes 1 --tp 4 --dp 2 "
                  "--mbs 16 --gbs 32 --seq-length 2048 --attention-backend unfused",
    "Stages": "--model llama3-8b --num-layers 8 --gpu rtx4090 --nodes 1 --pp 2 --mbs 2 --gbs 16 "
              "--seq-length 4096 --num-layers-per-stage 5,3",
}
SWITCHES = {"--sp", "--use-distributed-optimizer", "--fp16", "--bf16"}


def estimate(onerank: str, arguments: list[str]) -> dict:
    program = subprocess.run([onerank, "estimate", "--json", "--exit-zero", *arguments],
                             stdout=subprocess.PIPE, check=True)
    return json.loads(program.stdout)


def parsed(arguments: list[str]) -> dict[str, list[str]]:
    """Each flag with its value."""
    flags: dict[str, list[str]] = {}
    words = iter(arguments)
    for flag in words:
        flags[flag] = [] if flag in SWITCHES or flag.startswith("--o") else [next(words)]
    return flags


def typed(arguments: list[str], flags: str) -> list[str]:
    """The flags in the place of those that say the same."""
    together = parsed(arguments) | parsed(flags.split())
    return [word for flag, value in together.items() for word in [flag, *value]]


def differences(onerank: str, arguments: list[str]) -> list[str]:
    before = estimate(onerank, arguments)
    assert not before["verdict"]["fits"], "the plan fits: no advice is to be seen"
    found = []
    compared = 0
    for advice in before["advice"]:
        if "gain_seconds" not in advice:
            continue  # one rank was run, not all
        after = estimate(onerank, ["--no-advice", *typed(arguments, advice["flags"])])
        gain_bytes = before["verdict"]["peak_bytes"] - after["verdict"]["peak_bytes"]
        seconds = [it["time"]["iteration_seconds"] for it in (before, after)]
        compared += 1
        if gain_bytes != advice["gain_bytes"] or seconds[0] - seconds[1] != advice["gain_seconds"]:
            found.append(f"{advice} but typed: {gain_bytes} bytes, {seconds[0] - seconds[1]} s")
    assert compared > 0, f"nothing to compare in {before['advice']}"
    return found


def main() -> int:
    onerank, case = sys.argv[1:]
    found = differences(onerank, CASES[case].split())
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
