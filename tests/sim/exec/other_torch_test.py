#!/usr/bin/env python3
"""`onerank exec` with a torch of PyPI's that Onerank was not built for.

usage: other_torch_test.py ONERANK VERSION

Installs the wheel in a folder of its own in the user's folder for caches (1.7 GB, which are kept for the
next time), without NVIDIA's packages except the headers, has `onerank exec` make the stubs, and runs
programs. Exit code 77, with the reason, if the wheel cannot be had.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import venv

PROGRAMS = pathlib.Path(__file__).resolve().parent / "programs"
CACHES = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache"))
# What torch and the programs import, and CUDA's headers, which `pip install torch` brings with
# NVIDIA's libraries.
BESIDE_TORCH = ["filelock", "fsspec", "jinja2", "markupsafe", "mpmath<1.4", "networkx", "numpy", "setuptools<82",
                "sympy", "typing-extensions"]
HEADERS = {"2.6": ["nvidia-cuda-runtime-cu12==12.4.127"], "2.7": ["nvidia-cuda-runtime-cu12==12.6.77"],
           "2.8": ["nvidia-cuda-runtime-cu12==12.8.90"], "2.9": ["nvidia-cuda-runtime-cu12==12.8.90"]}
SKIPPED = 77
ONERANK = ""
PYTHON = ""


def release_of(version):
    return ".".join(version.split(".")[:2])


def python_with(version):
    """The Python of a virtual environment with this torch, or None, with the reason printed."""
    folder = CACHES / "onerank" / "tests" / f"torch-{version}"
    python, whole = folder / "bin" / "python", folder / "whole"
    if not whole.exists():
        venv.create(folder, with_pip=True, clear=True)
        wheels = [f"torch=={version}", *BESIDE_TORCH, *HEADERS.get(release_of(version), [])]
        result = subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-deps", *wheels],
                                text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if result.returncode != 0:
            print(f"skipped: no torch {version} from PyPI: {result.stdout[-500:]}")
            return None
        whole.touch()
    return str(python)


def profiles_of(program, ranks, world_size=16):
    """What a program did as these ranks, and those that they asked for."""
    with tempfile.TemporaryDirectory() as folder:
        command = [ONERANK, "exec", "--gpu", "h100-sxm", "--world-size", str(world_size), "--ranks", ranks,
                   "--steps", "2", "--output", folder, "--", PYTHON, str(PROGRAMS / program)]
        result = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if result.returncode != 0:
            raise AssertionError(result.stdout[-4000:])
        paths = sorted(pathlib.Path(folder).glob("rank-*.json"))
        return [json.loads(path.read_text()) for path in paths]


class OtherTorch(unittest.TestCase):
    """The model of both programs has 64 x 256 + 256 and 256 x 64 + 64 numbers of 4 bytes; the allocator
    rounds each tensor to 512 bytes: 65,536 + 1,024 + 65,536 + 512."""

    BYTES = 132_608

    def test_is_found_fit(self):
        result = subprocess.run([ONERANK, "list", "torch", "--check", PYTHON], text=True, capture_output=True)
        self.assertEqual(result.returncode, 0, result.stdout)

    def test_trains_with_distributed_data_parallel(self):
        [profile] = profiles_of("ddp.py", "9")
        self.assertEqual(profile["program"]["optimizer_steps"], 2)
        categories = profile["peak"]["categories"]
        self.assertEqual(categories["parameter"], self.BYTES)
        self.assertEqual(categories["optimizer_state"], 2 * self.BYTES)

    def test_trains_fully_sharded(self):
        """A 16th of each tensor, twice: 4,096, 64 (512), 4,096 and 16 (512) bytes."""
        [profile] = profiles_of("fsdp2.py", "9")
        self.assertEqual(profile["program"]["optimizer_steps"], 2)
        self.assertEqual(profile["peak"]["categories"]["optimizer_state"], 2 * 2 * (4096 + 512))

    def test_shards_tensors(self):
        """Its groups are split off the world's, of which no call tells how many ranks they have."""
        [profile] = profiles_of("tensor_parallel.py", "9")
        sizes = {communicator["size"] for communicator in profile["program"]["communicators"]}
        self.assertLessEqual({2, 8}, sizes)

    def test_brings_what_other_ranks_say(self):
        """Each rank checks what it gets; 1 and 2 are in the pipeline before 3."""
        self.assertEqual(len(profiles_of("messages.py", "0,3", world_size=4)), 4)


def main(arguments):
    global ONERANK, PYTHON
    ONERANK, version = arguments
    PYTHON = python_with(version)
    if PYTHON is None:
        return SKIPPED
    result = unittest.main(argv=[sys.argv[0]], exit=False).result
    return 0 if result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
