#!/usr/bin/env python3
"""The Python module, with the program that was built.

    onerank_module_test.py ONERANK [TEST...]
"""
import dataclasses
import json
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).parents[3]
sys.path.insert(0, str(ROOT / "sim" / "python"))
os.environ["ONERANK_PROGRAM"] = sys.argv[1]

import onerank  # noqa: E402
from onerank import records, setup_torch  # noqa: E402

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
        with mock.patch.object(onerank, "_document", lambda arguments, **_: seen.extend(arguments)):
            onerank.exec(command, gpu="h100-sxm", world_size=64, ranks=[0, 63])
        self.assertEqual(seen, ["exec", "--json", "--gpu=h100-sxm", "--world-size=64", "--ranks=0,63", "--", *command])

    def test_ACommandMayBeOneString(self):
        seen = []
        with mock.patch.object(onerank, "_document", lambda arguments, **_: seen.extend(arguments)):
            onerank.exec("python 'my train.py' --steps 2")
        self.assertEqual(seen, ["exec", "--json", "--", "python", "my train.py", "--steps", "2"])

    def test_AnErrorHasTheEndOfTheProgramsOutput(self):
        with tempfile.TemporaryDirectory() as folder:
            script = pathlib.Path(folder, "train.py")
            script.write_text("print('error: of the program', flush=True)\nraise ValueError('my own mistake')\n")
            with self.assertRaises(onerank.OnerankError) as caught:
                onerank.exec([sys.executable, script], gpu="h100")
        lines = str(caught.exception).splitlines()
        self.assertIn("error: of the program", str(caught.exception))
        self.assertLess(lines.index("ValueError: my own mistake"),
                        lines.index("error: the program ended with exit code 1"))

    def test_ARefusedFlagOfExecIsInTheProgramsWords(self):
        with self.assertRaises(onerank.OnerankError) as caught:
            onerank.exec("python train.py", wrld_size=2)
        self.assertTrue(str(caught.exception).startswith("unknown flag\n"), caught.exception)

    def test_OfALongOutputTheErrorHasTheEnd(self):
        lines = [f"line {line}" for line in range(1000)] + ["error: the program ended with exit code 1"]
        told = onerank._end_of_output("\n".join(lines)).splitlines()
        self.assertLess(len(told), 100)
        self.assertEqual(told[-2:], lines[-2:])

    def test_TablesAreOfRecords(self):
        class FakePandas:
            json_normalize = staticmethod(lambda records: records)

        with mock.patch.dict(sys.modules, {"pandas": FakePandas}):
            verdict = onerank.check(**SMALL)
            self.assertEqual(onerank.to_pandas([verdict]), [dataclasses.asdict(verdict)])
            self.assertEqual(onerank.to_pandas(verdict), [dataclasses.asdict(verdict)])


class Records(unittest.TestCase):
    """Documents, without the program."""

    def setUp(self):
        self.document = records.record("ClusterEstimate", {
            "kind": "cluster_estimate", "verdict": {"fits": True}, "stages": [1, 2], "links": {"2": 0.5},
            "rank_classes": [{"rank": 0, "note": "<b>"}, {"rank": 1024, "free_bytes": 5_000_000}]})

    def test_CanBePickled(self):
        again = pickle.loads(pickle.dumps(self.document))
        self.assertEqual(again, self.document)
        self.assertIs(type(again.verdict), type(self.document.verdict))
        self.assertIs(type(again.rank_classes), type(self.document.rank_classes))

    def test_SoCanErrors(self):
        error = pickle.loads(pickle.dumps(onerank.OnerankError("unknown flag", 2)))
        self.assertEqual((str(error), error.exit_code), ("unknown flag", 2))

    def test_CanBePickledByAProcessThatHasReadNoDocument(self):
        text = "import pickle, sys; print(pickle.load(sys.stdin.buffer).verdict.fits)"
        done = subprocess.run([sys.executable, "-c", text], input=pickle.dumps(self.document), capture_output=True,
                              env={**os.environ, "PYTHONPATH": str(ROOT / "sim" / "python")}, check=True)
        self.assertEqual(done.stdout, b"True\n")

    def test_PrintTheirOwnValues(self):
        self.assertEqual(repr(self.document),
                         "ClusterEstimate(kind='cluster_estimate', verdict=Verdict(...), stages=(1, 2), "
                         "links={'2': 0.5}, rank_classes=(2 x RankClasses))")
        self.assertEqual(repr(self.document.verdict), "Verdict(fits=True)")
        self.assertEqual(repr(records.record("Notes", {"assumptions": ["a sentence"] * 9})), "Notes(assumptions=(9 x str))")

    def test_AreTablesInNotebooks(self):
        self.assertIn("<tr><td style='text-align: left'>verdict</td><td style='text-align: left'>Verdict(...)</td></tr>",
                      self.document._repr_html_())

    def test_OfAListAreRowsOfOneTable(self):
        table = self.document.rank_classes._repr_html_()
        self.assertIn("<thead><tr><th>rank</th><th>note</th><th>free_bytes</th></tr></thead>", table)
        self.assertIn("<td style='text-align: left'>&lt;b&gt;</td><td></td></tr>", table)
        self.assertIn("<td style='text-align: right'>5,000,000</td>", table)
        self.assertEqual(table.count("<tr>"), 3)

    def test_AsDictionariesAreNoTable(self):
        rows = dataclasses.asdict(self.document)["rank_classes"]
        self.assertEqual(rows[0], {"rank": 0, "note": "<b>"})
        self.assertIsNone(rows._repr_html_())


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
