#!/usr/bin/python3
"""Tests of the fuzz targets' driver and of scripts/fuzz: do they see a reader's faults?

    driver_test.py FUZZ_FAULTS [unittest's arguments]

fuzz_faults is a target that does what its input says.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "fuzz"
LITTLE_TIME = ["--input-seconds", "0.2"]
LITTLE_MEMORY = ["--input-bytes", str(200 << 20)]


class Faults(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(subprocess.run, ["rm", "-rf", self.folder], check=True)
        self.corpus = self.folder / "corpus"
        (self.corpus / "refused").mkdir(parents=True)

    def drive(self, *arguments):
        command = [FAULTS, self.corpus, "--findings", self.folder / "findings", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def kept_inputs(self):
        folder = self.folder / "findings"
        return sorted(file.read_text() for file in folder.iterdir()) if folder.exists() else []

    def expect_finding(self, fault, what, reason="", limits=()):
        (self.corpus / "a").write_text("sound")
        (self.corpus / "b").write_text(fault)
        (self.corpus / "c").write_text("sound")
        result = self.drive("--count", "0", *limits)
        self.assertRegex(result.stdout, f"finding: {what}")
        self.assertEqual(result.stdout.count("finding: "), 1)
        self.assertIn(reason, result.stderr)
        self.assertIn("3 inputs, 2 accepted, 1 findings", result.stdout)
        self.assertEqual(self.kept_inputs(), [fault])
        self.assertEqual(result.returncode, 1)

    def test_takes_sound_inputs_and_refusals(self):
        (self.corpus / "a").write_text("sound")
        (self.corpus / "refused" / "b").write_text("refuse")
        result = self.drive("--count", "0")
        self.assertIn("2 inputs, 1 accepted, 0 findings", result.stdout)
        self.assertEqual(result.returncode, 0)

    def test_sees_a_crash(self):
        self.expect_finding("crash", r"killed by signal|ended with exit code 1\b")

    def test_sees_undefined_behaviour(self):
        self.expect_finding("overflow", "ended with exit code 1", "signed integer overflow")

    def test_sees_a_reader_that_computes_for_ever(self):
        self.expect_finding("compute", "more than 0.2 s of processor time", limits=LITTLE_TIME)

    def test_sees_a_reader_that_waits_for_ever(self):
        self.expect_finding("wait", "more than 4 s", limits=LITTLE_TIME)

    def test_sees_memory_that_grows(self):
        self.expect_finding("grow", "more than 200 MiB", limits=LITTLE_MEMORY)

    def test_sees_memory_that_is_given_back_at_once(self):
        self.expect_finding("peak", "more than 200 MiB|killed by signal 6", limits=LITTLE_MEMORY)

    def test_sees_what_would_be_an_internal_error(self):
        self.expect_finding("bug", "killed by signal 6", "a broken promise")

    def test_sees_what_no_catch_takes(self):
        self.expect_finding("odd throw", "killed by signal 6")

    def test_sees_a_reader_that_ends_the_process(self):
        self.expect_finding("leave", "ended with exit code 0")

    def test_sees_a_leak(self):
        (self.corpus / "a").write_text("leak")
        result = self.drive("--count", "0")
        self.assertIn("detected memory leaks", result.stderr)
        self.assertEqual(result.returncode, 1)

    def test_wants_the_corpus_taken_as_it_is_meant(self):
        (self.corpus / "a").write_text("sound")
        (self.corpus / "b").write_text("refuse")
        (self.corpus / "refused" / "c").write_text("sound")
        result = self.drive("--count", "0")
        self.assertRegex(result.stderr, "corpus/b of the corpus is refused: error: no")
        self.assertRegex(result.stderr, "corpus/refused/c of the corpus is accepted")
        self.assertIn("2 findings", result.stdout)

    def test_wants_inputs_that_are_accepted(self):
        (self.corpus / "refused" / "a").write_text("refuse")
        result = self.drive("--count", "1", "--seed", "1")
        self.assertIn("no input was accepted", result.stdout)
        self.assertEqual(result.returncode, 1)

    def test_runs_a_kept_input_again(self):
        self.expect_finding("bug", "killed by signal 6")
        (file,) = (self.folder / "findings").iterdir()
        again = subprocess.run([FAULTS, "--count", "0", file, "--findings", self.folder / "again"],
                               capture_output=True, text=True, check=False)
        self.assertIn("1 findings", again.stdout)

    def test_makes_the_same_inputs_of_a_seed(self):
        (self.corpus / "a").write_text("crash, or nearly so")
        words = self.folder / "words.dict"
        words.write_text('"bug"\n')
        (self.corpus / "b").write_text("bug,")
        runs = []
        for _ in "one", "other":
            result = self.drive("--count", "3000", "--seed", "7", "--dictionary", words)
            runs.append(sorted(re.findall(r"input \d+ of", result.stdout)))
        self.assertTrue(runs[0])
        self.assertEqual(*runs)

    def run_script(self, *arguments):
        build = self.folder / "build"
        build.mkdir()
        (build / "fuzz_faults").symlink_to(FAULTS)
        (build / "fuzz_targets").write_text(f"faults\t10\t{self.corpus}\n")
        (self.folder / "cmake").symlink_to("/bin/true")
        return subprocess.run(
            [SCRIPT, "--build", build, *arguments], capture_output=True, text=True, check=False,
            env={**os.environ, "PATH": f"{self.folder}:{os.environ['PATH']}"})

    def test_script_counts_inputs(self):
        (self.corpus / "a").write_text("sound")
        result = self.run_script("--count", "50", "--seed", "3")
        self.assertRegex(result.stdout, r"51 inputs over 1 readers, \d+ accepted, 0 findings, .* --seed 3")
        self.assertEqual(result.returncode, 0)

    def test_script_counts_findings(self):
        (self.corpus / "a").write_text("bug")
        (self.corpus / "b").write_text("sound")
        result = self.run_script("--count", "0")
        self.assertRegex(result.stdout, "2 inputs over 1 readers, 1 accepted, 1 findings")
        self.assertEqual(result.returncode, 1)

    def test_script_counts_a_target_that_cannot_run(self):
        self.corpus = self.folder / "missing"
        result = self.run_script("--count", "1")
        self.assertRegex(result.stdout, "0 inputs over 1 readers, 0 accepted, 1 findings")
        self.assertEqual(result.returncode, 1)


if __name__ == "__main__":
    FAULTS = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()
