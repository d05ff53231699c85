#!/usr/bin/python3
"""Tests of scripts/against-transformers: what it draws, and that both sides are told the same.
Onerank is a fake here."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "scripts"
sys.path.insert(0, str(SCRIPTS / "lib"))

from against_transformers.configurations import (  # noqa: E402
    LAYER_FAMILIES, LLAMA_FAMILIES, MODEL_FLAGS, draw_configuration, draw_configurations)
from against_transformers.layers import FAMILY_KEYS  # noqa: E402
from against_transformers.runs import Machine  # noqa: E402

GIB = 1 << 30
DRAWN = [draw_configuration("test", number, family) for family in LLAMA_FAMILIES for number in range(100)]


def number_after(words, flag):
    return int(words[words.index(flag) + 1])


class Draws(unittest.TestCase):
    def test_are_the_same_for_a_seed_however_many_are_drawn(self):
        few = draw_configurations("7", 3, ["ddp-bf16"])
        self.assertEqual(few, draw_configurations("7", 9, ["ddp-bf16", "fsdp-3"])[:3])
        self.assertNotEqual(few, draw_configurations("8", 3, ["ddp-bf16"]))

    def test_give_plan_and_program_the_same_model(self):
        for configuration in DRAWN:
            model = json.loads(configuration.program)["model"]
            with self.subTest(words=" ".join(configuration.words)):
                for field, flag in MODEL_FLAGS.items():
                    self.assertEqual(number_after(configuration.words, flag), model[field])
                self.assertEqual("--untie-embeddings-and-output-weights" in configuration.words,
                                 not model["tie_word_embeddings"])
                self.assertEqual(model["num_attention_heads"] % model["num_key_value_heads"], 0)

    def test_of_other_layers_have_one_file_for_both(self):
        for family in LAYER_FAMILIES:
            types = set()
            for number in range(len(FAMILY_KEYS)):
                configuration = draw_configuration("test", number, family)
                model = json.loads(configuration.program)["model"]
                self.assertEqual(json.loads(configuration.config), model)
                self.assertEqual(configuration.words[:2], ("--model", "config.json"))
                types.add(model["model_type"])
            self.assertEqual(types, set(FAMILY_KEYS))

    def test_give_them_the_same_training(self):
        for configuration in DRAWN:
            words, program = configuration.words, json.loads(configuration.program)
            training = program["training"]
            with self.subTest(words=" ".join(words)):
                self.assertEqual(number_after(words, "--seq-length"), program["sequence_length"])
                self.assertEqual(number_after(words, "--global-batch-size"),
                                 configuration.world_size * training["per_device_train_batch_size"] *
                                 training["gradient_accumulation_steps"])
                self.assertEqual("--recompute-granularity" in words,
                                 training["gradient_checkpointing"])

    def test_of_a_family_have_its_types_and_its_sharding(self):
        for configuration in DRAWN:
            program = json.loads(configuration.program)
            is_pure = configuration.family == "ddp-bf16"
            self.assertEqual("--no-mixed-precision" in configuration.words, is_pure)
            self.assertEqual(program["dtype"], "bfloat16" if is_pure else "float32")
            self.assertEqual(program["training"].get("bf16", False), not is_pure)
            machine = Machine(None, None, 0)
            environment = machine.environment(configuration)
            stage = program["training"].get("deepspeed", {}).get("zero_optimization", {}).get("stage")
            self.assertEqual(machine.framework(configuration),
                             "deepspeed" if stage else "transformers")
            self.assertEqual("--zero-stage" in configuration.words, bool(environment or stage))
            if stage:
                self.assertEqual(number_after(configuration.words, "--zero-stage"), stage)
            elif environment:
                self.assertEqual(number_after(configuration.words, "--zero-stage") == 3,
                                 environment["FSDP_RESHARD_AFTER_FORWARD"] == "true")


FAKE_ONERANK = """#!/usr/bin/python3
import json, pathlib, sys
words = sys.argv[1:]
if words[0] == "estimate":
    print(json.dumps({{"time": {{"iteration_seconds": 0.5}}}}))
    sys.exit(0)
peak = {allocated}[words[0]]
if words[0] == "exec":
    assert words[-2].endswith("train.py"), words
    json.loads(words[-1])
profile = {{"peak": {{"allocated_bytes": peak, "reserved_bytes": peak}}, "phases": [],
           "collectives": [], "program": {{"communicators": []}}}}
place = pathlib.Path(words[words.index("--output") + 1])
if words[0] == "exec":
    place.mkdir(exist_ok=True)
    place = place / "rank-00000.json"
place.write_text(json.dumps(profile))
"""


class Program(unittest.TestCase):
    def run_with(self, shard, program):
        with tempfile.TemporaryDirectory() as folder:
            onerank = pathlib.Path(folder) / "onerank"
            onerank.write_text(FAKE_ONERANK.format(allocated={"run": shard, "exec": program}))
            onerank.chmod(0o755)
            return subprocess.run(
                [SCRIPTS / "against-transformers", "--build", folder, "--python", sys.executable,
                 "--output", f"{folder}/out", "--count", "1"],
                capture_output=True, text=True, check=False)

    def test_ends_with_4_where_a_difference_exceeds_the_bounds(self):
        done = self.run_with(994 * GIB // 1000, GIB)
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertIn("more than 0.5%", done.stdout)

    def test_ends_with_0_within_them(self):
        done = self.run_with(996 * GIB // 1000, GIB)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
