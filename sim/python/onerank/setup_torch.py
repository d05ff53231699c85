"""onerank-setup: gets the torch that ranks run with, without the 3 GB of NVIDIA's libraries that its wheel asks for.

They are for a GPU; Onerank plays one. Where the torch that Onerank was built for is there already, nothing is done.
"""
from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import re
import subprocess
import sys

import onerank

# What only a GPU needs, of what torch's wheel asks for.
FOR_A_GPU = re.compile(r"nvidia|cuda|triton")


def installed_version() -> str | None:
    try:
        return importlib.metadata.version("torch").partition("+")[0]
    except importlib.metadata.PackageNotFoundError:
        return None


def other_requirements() -> list[str]:
    """Of torch's wheel, for this Python; a requirement of an extra is none."""
    every = importlib.metadata.requires("torch") or []
    return [text for text in every if not FOR_A_GPU.match(text) and "extra ==" not in text]


def pip_install(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "pip", "install", *arguments], check=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="onerank-setup", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.parse_args()
    try:
        release = onerank.built_for_torch()
        if installed_version() == release:
            print(f"torch {release} is there already")
            return 0
        pip_install("--no-deps", f"torch=={release}")
        importlib.invalidate_caches()
        pip_install(*other_requirements())
        print(f"torch {release} is there; Onerank does not need what pip says that it lacks")
    except (onerank.OnerankError, subprocess.CalledProcessError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
