#!/usr/bin/env python3
"""The gates of scripts/ci, with programs in place of onerank and sbatch.

    ci_test.py [TEST...]
"""
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]

FAKE_ONERANK = """#!/usr/bin/env bash
echo "$@" >> "$FOLDER/onerank"
case "$*" in
  *--json*) cat "$FOLDER/answer" ;;
  import*) [[ -e $FOLDER/has-plan ]]; exit ;;
  *) echo "fits: or not" ;;
esac
exit "$(cat "$FOLDER/code")"
"""
HEALTHY = {"level": "healthy", "thresholds": "balanced", "used_share": 0.5, "target_share": 0.9}
FITS = {"kind": "verdict", "outcome": "fits", "reason": "rank 0 needs 1 GiB", "health": HEALTHY, "exit_code": 0}
FULL = {"level": "critical", "thresholds": "conservative", "used_share": 0.9587, "target_share": 0.8}
ERROR = {"what": "unknown model", "where": "b.json: model = \"x|y\"", "way_out": ""}


class Gates(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)
        self.program("onerank.sh", FAKE_ONERANK)
        self.program("sbatch", '#!/usr/bin/env bash\necho "$@" > "$FOLDER/submitted"\n')

    def program(self, name, text):
        path = self.folder / name
        path.write_text(text)
        path.chmod(0o755)

    def ran(self, script, *arguments, code=0, answer=None):
        (self.folder / "code").write_text(str(code))
        (self.folder / "answer").write_text(json.dumps(answer) if answer else "")
        environment = dict(os.environ, FOLDER=str(self.folder), ONERANK=str(self.folder / "onerank.sh"),
                           PATH=f"{self.folder}:{os.environ['PATH']}",
                           GITHUB_STEP_SUMMARY=str(self.folder / "summary.md"))
        return subprocess.run([ROOT / "scripts/ci" / script, *arguments], env=environment, capture_output=True, text=True)

    def submitted(self):
        return (self.folder / "submitted").exists()

    def test_AJobThatFitsIsSubmitted(self):
        result = self.ran("sbatch-gate", "train.sbatch", "--gpu", "h100")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual((self.folder / "submitted").read_text(), "train.sbatch\n")
        self.assertEqual((self.folder / "onerank").read_text(), "check train.sbatch --gpu h100\n")

    def test_AJobThatDoesNotFitIsNot(self):
        result = self.ran("sbatch-gate", "train.sbatch", code=1)
        self.assertEqual(result.returncode, 1)
        self.assertIn("is not submitted", result.stderr)
        self.assertFalse(self.submitted())

    def test_AJobWithoutAVerdictIsSubmittedUnlessItIsStrict(self):
        self.assertEqual(self.ran("sbatch-gate", "--strict", "train.sbatch", code=2).returncode, 2)
        self.assertFalse(self.submitted())
        self.assertEqual(self.ran("sbatch-gate", "train.sbatch", code=2).returncode, 0)
        self.assertTrue(self.submitted())

    def test_AJobWhosePlanIsWrongIsNotSubmitted(self):
        (self.folder / "has-plan").touch()
        result = self.ran("sbatch-gate", "train.sbatch", code=2)
        self.assertEqual(result.returncode, 2)
        self.assertIn("is wrong", result.stderr)
        self.assertFalse(self.submitted())
        self.assertEqual(self.ran("sbatch-gate", "train.sbatch", code=3).returncode, 0)
        self.assertTrue(self.submitted())

    def checked(self, *plans, **how):
        return self.ran("check-plans", "--onerank", str(self.folder / "onerank.sh"), "--plans", " ".join(plans), **how)

    def test_PlansAreCheckedTogetherAndToldInTheSummary(self):
        answer = {"kind": "verdicts", "plans": [{"verdict": FITS, "health": HEALTHY, "exit_code": 0},
                                                 {"errors": [ERROR], "exit_code": 2}]}
        result = self.checked("a.json", "b.json", code=2, answer=answer)
        self.assertEqual(result.returncode, 2)
        self.assertEqual((self.folder / "onerank").read_text(), "check a.json b.json --json\n")
        self.assertIn("a.json: fits: rank 0 needs 1 GiB\nb.json: error: unknown model", result.stdout)
        self.assertIn('| b.json | error | unknown model: b.json: model = "x\\|y" |',
                      (self.folder / "summary.md").read_text())

    def test_APlanThatIsFullerThanHealthAllowsDoesNotJustFit(self):
        told = "above the health target: 95.9 % of 80 % (conservative)\n"
        full = {"verdict": FITS, "health": FULL, "exit_code": 1}
        fits = {"verdict": FITS, "health": HEALTHY, "exit_code": 0}
        result = self.checked("a.json", "b.json", code=1, answer={"kind": "verdicts", "plans": [full, fits]})
        self.assertEqual((result.returncode, result.stdout), (1, f"a.json: {told}b.json: fits: rank 0 needs 1 GiB\n"))
        result = self.checked("a.json", code=1, answer=dict(FITS, health=FULL, exit_code=1))
        self.assertEqual((result.returncode, result.stdout), (1, f"a.json: {told}"))

    def test_OnePlanIsEnough(self):
        (self.folder / "one.json").write_text("{}")
        result = self.checked(str(self.folder / "*.json"), answer=FITS)
        self.assertEqual((result.returncode, result.stdout), (0, f"{self.folder}/one.json: fits: rank 0 needs 1 GiB\n"))
        result = self.checked("a.json", code=2, answer={"kind": "error", "errors": [ERROR]})
        self.assertIn("a.json: error: unknown model", result.stdout)

    def test_WithoutOnerankItSaysWhatIsMissing(self):
        result = self.ran("check-plans", "--onerank", "no-such-program", "--plans", "a.json")
        self.assertEqual(result.returncode, 3)
        self.assertIn("error: cannot start no-such-program", result.stderr)
        self.assertNotIn("Traceback", result.stderr)

    def test_TheActionRunsTheScriptBesideItWithItsInputs(self):
        text = (ROOT / "scripts/ci/action.yml").read_text()
        self.assertIn('"$GITHUB_ACTION_PATH/check-plans"', text)
        inputs = re.findall(r"^  (\w+):\n    description", text, re.MULTILINE)
        self.assertEqual(inputs, re.findall(r"\$\{\{ inputs\.(\w+) \}\}", text))

    def test_TheHookTakesPlansAndNothingElse(self):
        text = (ROOT / ".pre-commit-hooks.yaml").read_text()
        self.assertIn("entry: onerank check\n", text)
        files = re.compile(re.search(r"files: (.*)", text)[1])
        for path in ("plans/a.json", "scripts/plans/llama3-8b-8xh100.json", "x/plans/b.yml"):
            self.assertTrue(files.search(path), path)
        for path in ("plans/a.md", "plans.json", "scripts/data/a.json"):
            self.assertFalse(files.search(path), path)


if __name__ == "__main__":
    unittest.main()
