#!/usr/bin/env python3
"""The Python module, with the program that was built.

    onerank_module_test.py ONERANK [TEST...]
"""
import dataclasses
import json
import os
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).parents[3]
sys.path.insert(0, str(ROOT / "sim" / "python"))
os.environ["ONERANK_PROGRAM"] = sys.argv[1]

import onerank  # noqa: E402
from onerank import setup_torch  # noqa: E402

SMALL = {"model": "gpt2", "num_layers": 2, "gpu": "h100", "nodes": 1, "gpus_per_node": 2, "tp": 2}


class Module(unittest.TestCase):
    def test_EstimatesByFlags(self):
        estimate = onerank.estimate(**SMALL)
        self.assertTrue(estimate.verdict.fits)
        self.assertEqual(type(estimate).__name__, "ClusterEstimate")
        self.assertEqual(estimate.plan.parallelism.tensor, 2)
        self.assertEqual(sum(ranks.count for ranks in estimate.rank_classes), 2)

    def test_EstimatesFilesAndDictionariesWithChanges(self):
        plan = {"model": {"preset": "gpt2", "num_layers": 2}, "cluster": {"gpu": "h100", "nodes": 1, "gpus_per_node": 2},
                "parallelism": {"tensor": 2}}
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(plan, file)
            file.flush()
            for given in (plan, file.name, pathlib.Path(file.name)):
                changed = onerank.estimate(given, sharp=True, nvls=None, **{"training.seed": 7})
                self.assertTrue(changed.plan.cluster.sharp)
                self.assertEqual(changed.plan.training.seed, 7)
                self.assertEqual(changed.plan.parallelism.tensor, 2)
        self.assertFalse(onerank.estimate(plan, sharp=False).plan.cluster.sharp)

    def test_ListsAreJoined(self):
        estimate = onerank.estimate(**{**SMALL, "tp": 1}, pp=2, num_layers_per_stage=[1, 1])
        self.assertEqual(estimate.plan.parallelism.layers_per_stage, (1, 1))

    def test_ChecksAlsoWhatDoesNotFit(self):
        verdict = onerank.check(model="llama3-8b", gpu="h100-sxm", nodes=1, gpus_per_node=1, micro_batch_size=1)
        self.assertFalse(verdict.fits)

    def test_RunsOneRank(self):
        profile = onerank.run(**SMALL, rank=1, device="virtual")
        self.assertEqual(type(profile).__name__, "RankProfile")
        self.assertGreater(profile.allocator.requested_peak_bytes, 0)

    def test_DocumentsAreFrozen(self):
        verdict = onerank.check(**SMALL)
        with self.assertRaises(dataclasses.FrozenInstanceError):
            verdict.fits = False

    def test_RefusalsAreInTheProgramsWords(self):
        with self.assertRaises(onerank.OnerankError) as caught:
            onerank.estimate(**SMALL, tensr=3)
        self.assertEqual(caught.exception.exit_code, 2)
        self.assertTrue(str(caught.exception).startswith("unknown flag\n"), caught.exception)

    def test_AMissingProgramIsTold(self):
        with mock.patch.dict(os.environ, {"PATH": "", "ONERANK_PROGRAM": ""}):
            with self.assertRaisesRegex(onerank.OnerankError, "ONERANK_PROGRAM"):
                onerank.check(**SMALL)

    def test_ExecutesAProgram(self):
        command = ["python", ROOT / "train.py"]
        seen = []
        with mock.patch.object(onerank, "_document", lambda arguments: seen.extend(arguments)):
            onerank.exec(command, gpu="h100-sxm", world_size=64, ranks=[0, 63])
        self.assertEqual(seen, ["exec", "--json", "--gpu=h100-sxm", "--world-size=64", "--ranks=0,63", "--", *command])

    def test_ACommandMayBeOneString(self):
        seen = []
        with mock.patch.object(onerank, "_document", lambda arguments: seen.extend(arguments)):
            onerank.exec("python 'my train.py' --steps 2")
        self.assertEqual(seen, ["exec", "--json", "--", "python", "my train.py", "--steps", "2"])

    def test_TablesAreOfRecords(self):
        class FakePandas:
            json_normalize = staticmethod(lambda records: records)

        with mock.patch.dict(sys.modules, {"pandas": FakePandas}):
            verdict = onerank.check(**SMALL)
            self.assertEqual(onerank.to_pandas([verdict]), [dataclasses.asdict(verdict)])
            self.assertEqual(onerank.to_pandas(verdict), [dataclasses.asdict(verdict)])


class Setup(unittest.TestCase):
    """`onerank-setup`, with a pip that only says what it was asked for."""

    def asked(self, installed):
        wanted = ["filelock", "sympy>=1.13.3", 'cuda-toolkit[cublas]==13.0.2; platform_system == "Linux"',
                  'nvidia-nccl-cu13==2.28.9; platform_system == "Linux"', "triton==3.6.0", 'pyyaml; extra == "pyyaml"']
        calls = []
        with mock.patch.object(onerank, "built_for_torch", lambda: "2.11.0"), \
                mock.patch.object(setup_torch, "installed_version", lambda: installed), \
                mock.patch.object(setup_torch, "pip_install", lambda *arguments: calls.append(arguments)), \
                mock.patch.object(setup_torch.importlib.metadata, "requires", lambda name: wanted), \
                mock.patch.object(sys, "argv", ["onerank-setup"]), mock.patch("builtins.print"):
            self.assertEqual(setup_torch.main(), 0)
        return calls

    def test_GetsTorchWithoutWhatOnlyAGpuNeeds(self):
        calls = [("--no-deps", "torch==2.11.0"), ("filelock", "sympy>=1.13.3")]
        self.assertEqual(self.asked(None), calls)
        self.assertEqual(self.asked("2.9.0"), calls)

    def test_DoesNothingWhereTheTorchIsThere(self):
        self.assertEqual(self.asked("2.11.0"), [])

    def test_KnowsTheTorchThatOnerankWasBuiltFor(self):
        self.assertRegex(onerank.built_for_torch(), r"^\d+\.\d+\.\d+$")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
