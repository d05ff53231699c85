"""Numbers that stand beside each other in a report of a real rank agree.

usage: estimate_text_test.py ONERANK
Real ranks on the virtual GPU, through the command line.
"""

import json
import subprocess
import sys
import unittest

ONERANK = sys.argv.pop()
GPT2 = "--model gpt2 --gpu a100 --mbs 4 --gbs 16"
LLAMA = "--model llama3.2-1b --gpu rtx3090"  # one of which the step's sums are rounded


def estimate(*arguments: str, plan: str = GPT2) -> str:
    program = subprocess.run([ONERANK, "estimate", "--gpus", "1", *plan.split(), "--no-advice",
                              "--exit-zero", *arguments],
                             stdout=subprocess.PIPE, text=True, check=True)
    return program.stdout


class EstimateText(unittest.TestCase):
    def test_rates_of_the_worst_rank_are_over_the_measured_step(self):
        step = json.loads(estimate("--json", "--measured-step", "4"))["worst_rank_step"]
        self.assertGreater(step["flops"], 0)
        self.assertAlmostEqual(step["flops_per_second"] * 4 / step["flops"], 1)
        self.assertAlmostEqual(step["moved_bytes_per_second"] * 4 / step["moved_bytes"], 1)

    def test_a_short_training_has_a_cost(self):
        text = estimate("--train-iters", "1000", "--price", "2")
        self.assertNotIn(" 0 GPU hours", text)
        self.assertNotIn(" 0 US dollars", text)
        self.assertRegex(text, r"0\.\d+ GPU hours")

    def test_the_share_of_the_peak_names_its_type(self):
        self.assertIn("of the dense bf16 peak", estimate())

    def test_one_gpu_has_no_communication(self):
        self.assertNotIn("communication", estimate(plan=LLAMA).split("One iteration")[1])


if __name__ == "__main__":
    unittest.main()
