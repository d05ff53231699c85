#!/usr/bin/python3
"""Tests of scripts/against-torchtitan: what it draws, and that both sides are told the same."""
import json
import pathlib
import sys
import unittest

sys.dont_write_bytecode = True
SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "scripts"
sys.path.insert(0, str(SCRIPTS / "lib"))

from against_torchtitan.configurations import (  # noqa: E402
    FAMILIES, draw_configuration, draw_configurations)

DRAWN = [draw_configuration("test", number, family) for family in FAMILIES for number in range(50)]


class Draws(unittest.TestCase):
    def test_are_the_same_for_a_seed_however_many_are_drawn(self):
        few = draw_configurations("7", 3, ["llama4"])
        self.assertEqual(few, draw_configurations("7", 9, ["llama4", "qwen3"])[:3])
        self.assertNotEqual(few, draw_configurations("8", 3, ["llama4"]))

    def test_give_plan_and_program_the_same_model(self):
        flags = {"dim": "--hidden-size", "n_layers": "--num-layers", "vocab_size": "--vocab-size",
                 "n_kv_heads": "--num-query-groups"}
        for configuration in DRAWN:
            fields, words = json.loads(configuration.model)["fields"], configuration.words
            for field, flag in flags.items():
                self.assertEqual(words[words.index(flag) + 1], str(fields[field]), configuration.name)

    def test_run_one_rank_of_each_stage_with_the_rank(self):
        for configuration in DRAWN:
            column = list(configuration.column())
            self.assertIn(configuration.rank, column)
            self.assertEqual(len(column), configuration.stages)


if __name__ == "__main__":
    unittest.main()
