#!/usr/bin/env python3
"""What `cmake --install` makes: moved to another folder it must do what the build folder does, and know neither
that folder nor the sources.

    install_test.py CMAKE BUILD_DIR SOURCE_DIR TORCH_DIR [TEST...]
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

CMAKE, BUILD, SOURCES, TORCH = sys.argv[1], *map(pathlib.Path, sys.argv[2:5])
PLAN = ["--model", "gpt2", "--num-layers", "2", "--gpu", "h100", "--nodes", "1", "--gpus-per-node", "2", "--tp", "2"]
PROGRAM = """
import torch
model = torch.nn.Linear(512, 512).cuda()
optimizer = torch.optim.AdamW(model.parameters())
model(torch.randn(32, 512, device="cuda")).sum().backward()
optimizer.step()
"""


def is_binary(file):
    return file.is_file() and file.read_bytes()[:4] == b"\x7fELF"


class Installation(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        first, cls.prefix = (pathlib.Path(cls.folder.name, name) for name in ("first", "moved here"))
        subprocess.run([CMAKE, "--install", BUILD, "--prefix", first], check=True, capture_output=True)
        first.rename(cls.prefix)
        # No source tree, and a Python that has no torch.
        cls.tools = pathlib.Path(cls.folder.name, "tools")
        cls.tools.mkdir()
        (cls.tools / "python3").symlink_to("/bin/false")
        cls.environment = {"PATH": str(cls.tools), "HOME": cls.folder.name}

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def run_it(self, *arguments, exit_code=0, **variables):
        result = subprocess.run([self.prefix / "bin" / "onerank", *arguments], capture_output=True, text=True,
                                cwd=self.prefix, env={**self.environment, **variables})
        self.assertEqual(result.returncode, exit_code, result.stderr)
        return result

    def told(self, **changes):
        """Writes changes into built_with.json until the test ends."""
        file = self.prefix / "lib" / "onerank" / "built_with.json"
        text = file.read_text()
        self.addCleanup(file.write_text, text)
        file.write_text(json.dumps({**json.loads(text), **changes}))

    def python_with(self, torch):
        """A Python that finds torch there."""
        python = self.tools / "python3"
        python.unlink()
        python.write_text(f"#!/bin/sh\necho {torch}/__init__.py\n")
        python.chmod(0o755)
        self.addCleanup(lambda: (python.unlink(), python.symlink_to("/bin/false")))

    def test_BinariesNameNeitherSourcesNorBuild(self):
        binaries = [file for file in self.prefix.rglob("*") if is_binary(file)]
        self.assertGreater(len(binaries), 1)
        for file in binaries:
            for folder in (BUILD, SOURCES, TORCH):
                self.assertNotIn(os.fsencode(folder), file.read_bytes(), file)

    def test_Lists(self):
        self.assertIn("h100-sxm", self.run_it("list", "gpus").stdout)

    def test_NamesItsOwnPlans(self):
        plans = self.prefix / "share" / "onerank" / "plans"
        error = self.run_it("check", "scripts/plans/gpt2-1xa100.json", exit_code=2).stderr
        self.assertIn(f"did you mean {plans}/gpt2-1xa100.json?", error)
        self.run_it("check", "gpt2-1xa100")
        self.assertIn(f"plans to start from are in {plans}\n", self.run_it("check", "mine.json", exit_code=2).stderr)

    def test_EstimatesAsTheBuildDoes(self):
        here = subprocess.run([BUILD / "onerank", "estimate", *PLAN, "--json"], check=True, capture_output=True, text=True)
        self.assertEqual(self.run_it("estimate", *PLAN, "--json").stdout, here.stdout)

    def test_RunsTheTorchThatAVariableNames(self):
        self.told(torch="/nowhere")
        self.run_it("run", *PLAN, "--device", "virtual", ONERANK_TORCH_DIR=str(TORCH))
        self.assertIn("ONERANK_TORCH_DIR=/nowhere", self.run_it("run", *PLAN, "--device", "virtual", exit_code=2,
                                                                ONERANK_TORCH_DIR="/nowhere").stderr)

    def test_RunsTheTorchOfTheActivePython(self):
        self.told(torch="/nowhere")
        self.python_with(TORCH)
        self.run_it("run", *PLAN, "--device", "virtual")

    def test_TellsWhereItLookedForTorch(self):
        self.told(torch="/nowhere")
        other = pathlib.Path(self.folder.name, "other")
        other.mkdir()
        (other / "version.py").write_text("__version__ = '1.0.0+cu90'\n")
        self.python_with(other)
        error = self.run_it("run", *PLAN, "--device", "virtual", exit_code=3).stderr
        self.assertIn(f"python3: 1.0.0+cu90 in {other}", error)
        self.assertIn("pip install torch==2.", error)
        self.assertNotIn("onerank-setup", error)

    def test_TellsOfOnePythonOnceAndOfTheSetUpThatIsThere(self):
        self.told(torch="/nowhere")
        other = pathlib.Path(self.folder.name, "old")
        other.mkdir()
        (other / "version.py").write_text("__version__ = '1.0.0+cu90'\n")
        self.python_with(other)
        for name in "python3", "onerank-setup":
            program = self.prefix / "bin" / name
            program.symlink_to(self.tools / "python3")
            self.addCleanup(program.unlink)
        error = self.run_it("run", *PLAN, "--device", "virtual", exit_code=3).stderr
        self.assertEqual(error.count(f" in {other}"), 1)
        self.assertIn("run onerank-setup", error)

    def test_ExecutesAProgram(self):
        program = pathlib.Path(self.folder.name, "program.py")
        program.write_text(PROGRAM)
        result = self.run_it("exec", "--json", "--", TORCH.parents[3] / "bin" / "python", program)
        self.assertGreater(json.loads(result.stdout)["allocator"]["requested_peak_bytes"], 0)

    def test_HoldsTheSourcesOfTheStubs(self):
        sources = self.prefix / "share" / "onerank" / "sources"
        for file in (file for pattern in ("*.h", "*.cpp", "*.py") for file in (sources / "sim").rglob(pattern)):
            self.assertEqual(file.read_bytes(), (SOURCES / file.relative_to(sources)).read_bytes())
        build = pathlib.Path(self.folder.name, "stubs")
        headers = json.loads((BUILD / "built_with.json").read_text())["cuda_headers"]
        subprocess.run([CMAKE, "-S", sources, "-B", build, "--preset", "release", "-DONERANK_STUBS_ONLY=ON",
                        f"-DONERANK_TORCH_DIR={TORCH}", f"-DONERANK_CUDA_INCLUDE_DIR={headers}"],
                       check=True, capture_output=True)
        compiled = re.findall(r'"file": "(.*)"', (build / "compile_commands.json").read_text())
        self.assertTrue(any(file.endswith("/entry.cpp") or "onerank_exec_recorder" in file for file in compiled))
        used = {name for folder in ("sim/exec", "sim/virtual_gpu", "sim/tracking", "comm_stub", "estimator")
                for file in (sources / folder).rglob("*") if file.suffix in (".h", ".cpp")
                for name in re.findall(r'^#include "(\w+/.*)"', file.read_text(), re.M)}
        self.assertEqual({name for name in used if not (sources / name).exists()}, set())

    def test_IsFoundByOtherProjects(self):
        build = pathlib.Path(self.folder.name, "consumer")
        subprocess.run([CMAKE, "-S", SOURCES / "tests" / "scripts" / "consumer", "-B", build,
                        f"-DCMAKE_PREFIX_PATH={self.prefix}"], check=True, capture_output=True)
        made = subprocess.run([CMAKE, "--build", build], capture_output=True, text=True)
        self.assertEqual(made.returncode, 0, made.stdout + made.stderr)
        result = subprocess.run([build / "consumer"], check=True, capture_output=True, text=True)
        self.assertEqual(result.stdout, "h100-sxm: 85029027840 bytes\n")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[5:]])
