#!/usr/bin/python3
"""Tests of scripts/accuracy: what it reads, what it asks of onerank (a fake here), what it reports."""
import dataclasses
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "scripts"
sys.path.insert(0, str(SCRIPTS / "lib"))

from accuracy import comm, errors, gate, memory, plans, time  # noqa: E402
from accuracy.onerank import Onerank, OnerankFailed  # noqa: E402
from accuracy.rows import LeftOut, Row, read_rows  # noqa: E402

ARCH = {"layers": 2, "hidden": 256, "heads": 4, "kv_heads": 2, "ffn": 512, "vocab": 1000,
        "glu": True, "norm": "rmsnorm", "pos": "rope"}
CONFIG = {"arch": ARCH, "gpu": "H100 80GB", "gpus": 4, "seq": 128, "tp": 2, "dp": 2,
          "micro_batch": 1, "global_batch": 8, "dtype": "bf16 params", "recompute": "none",
          "optimizer": "Adam (ZeRO-1)", "sequence_parallel": True}
ESTIMATE = {"rank_classes": [
    {"allocated_peak_bytes": 3 << 30, "reserved_peak_bytes": 4 << 30, "total_bytes": 5 << 30},
    {"allocated_peak_bytes": 2 << 30, "reserved_peak_bytes": 6 << 30, "total_bytes": 7 << 30}]}


def row(config=None, measured=None, complete=True, **change):
    return Row(id="r", source="s", category="dense", config={**CONFIG, **(config or {}), **change},
               measured=measured or {}, complete=complete, missing=("vocab",), flags=())


class FakeOnerank:
    """A program that writes down its plan and answers with the files of a folder."""

    def __init__(self, test, answer="", exit_code=0, complaint=""):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        test.addCleanup(subprocess.run, ["rm", "-rf", self.folder], check=True)
        (self.folder / "answer").write_text(answer)
        (self.folder / "complaint").write_text(complaint)
        program = self.folder / "onerank"
        program.write_text(f"#!/bin/sh\ncat >> '{self.folder}/plans'; echo >> '{self.folder}/plans'\n"
                           f"cat '{self.folder}/answer'; cat '{self.folder}/complaint' >&2\n"
                           f"exit {exit_code}\n")
        program.chmod(0o755)

    def plans(self):
        return [json.loads(line) for line in (self.folder / "plans").read_text().splitlines()]


class Errors(unittest.TestCase):
    def test_mean_worst_and_bias_are_of_the_measured_value(self):
        readings = [errors.Reading("a", "s", "q", 110, 100), errors.Reading("b", "s", "q", 95, 100)]
        result = errors.summary(readings)
        self.assertEqual(result["rows"], 2)
        self.assertAlmostEqual(result["mean_absolute_error"], 0.075)
        self.assertAlmostEqual(result["worst_absolute_error"], 0.10)
        self.assertAlmostEqual(result["bias"], 0.025)

    def test_overall_is_of_the_first_quantity_alone(self):
        readings = [errors.Reading("a", "s", "allocated", 101, 100),
                    errors.Reading("a", "s", "reserved", 200, 100)]
        document = errors.document(readings, [("b", "why")])
        self.assertEqual(document["overall"]["quantity"], "allocated")
        self.assertAlmostEqual(document["overall"]["worst_absolute_error"], 0.01)
        self.assertEqual(document["left_out"], [{"id": "b", "reason": "why"}])

    def test_without_readings_there_is_no_error_rather_than_none(self):
        self.assertIsNone(errors.document([], [])["overall"]["mean_absolute_error"])


class RankCorrelation(unittest.TestCase):
    # Spearman's by hand: ranks 1 2 3 4 5 against 2 1 3 4 5: 1 - 6 x 2 / (5 x 24) = 0.9.
    def test_is_spearmans_where_all_pairs_count(self):
        value, pairs = errors.rank_correlation([20, 10, 30, 40, 50], [1, 2, 3, 4, 5])
        self.assertAlmostEqual(value, 0.9)
        self.assertEqual(pairs, 10)

    # Ranks 2 1 3 against 1 2 3; pairs (1, 3) and (2, 3): (-1 x -2 + -2 x -1) / sqrt(5 x 5) = 0.8,
    # where all three pairs give 0.5.
    def test_leaves_out_pairs_measured_within_3_percent(self):
        value, pairs = errors.rank_correlation([2, 1, 3], [100, 102, 200])
        self.assertEqual(pairs, 2)
        self.assertAlmostEqual(value, 0.8)
        self.assertAlmostEqual(errors.rank_correlation([2, 1, 3], [100, 110, 200])[0], 0.5)
        self.assertEqual(errors.rank_correlation([2, 1], [100, 102]), (None, 0))

    def test_of_an_estimate_that_is_always_the_same_is_0(self):
        self.assertEqual(errors.rank_correlation([7, 7, 7], [1, 2, 3])[0], 0)

    def test_is_taken_within_sweeps_of_five_rows_and_more(self):
        readings = [errors.Reading(str(i), "s", "q", i, i, sweep="five", work=1)
                    for i in range(1, 6)]
        readings += [errors.Reading("x", "s", "q", 1, 1, sweep="small", work=1)]
        document = errors.document(readings, [])
        self.assertEqual([s["sweep"] for s in document["sweeps"]], ["five"])
        self.assertAlmostEqual(document["mean_spearman"], 1)


class Gate(unittest.TestCase):
    BEFORE = {"s, q": {"rows": 2, "mean": 0.05}}

    def complaints(self, *predicted):
        readings = [errors.Reading(str(i), "s", "q", value, 100) for i, value in enumerate(predicted)]
        return gate.worse(errors.mean_errors(readings), self.BEFORE)

    def test_a_mean_may_move_by_the_slack(self):
        self.assertEqual(self.complaints(105.2, 94.7), [])
        self.assertEqual(self.complaints(100, 100), [])

    def test_a_mean_that_is_worse_and_rows_that_are_lost_are_told(self):
        self.assertEqual(self.complaints(110, 100.7),
                         ["s, q: mean error 5.35%, 5.00% in the baseline"])
        self.assertEqual(self.complaints(100), ["s, q: 1 rows, 2 in the baseline"])
        self.assertEqual(self.complaints(), ["s, q: 0 rows, 2 in the baseline"])

    def test_a_part_of_the_rows_is_a_part_of_each_source(self):
        fake = FakeOnerank(self, json.dumps(ESTIMATE))
        rows = [dataclasses.replace(row(measured={"peak_allocated_mib": 1}), id=str(i), source=source)
                for source in "ab" for i in range(5)]
        readings, _ = memory.compare(rows, Onerank(fake.folder, jobs=1), every=2)
        self.assertEqual([(r.source, r.row) for r in readings],
                         [(source, i) for source in "ab" for i in "024"])


class Plans(unittest.TestCase):
    def test_an_arch_becomes_a_plan(self):
        plan = plans.plan_of(row())
        self.assertEqual(plan["cluster"], {"gpu": "h100-sxm", "nodes": 1, "gpus_per_node": 4})
        self.assertEqual(plan["model"]["activation"], "swiglu")
        self.assertEqual(plan["model"]["num_query_groups"], 2)
        self.assertEqual(plan["parallelism"]["tensor"], 2)
        self.assertEqual(plan["parallelism"]["zero_stage"], 1)
        self.assertEqual(plan["training"]["dtype"], "bf16")

    def test_arguments_of_megatron_become_flags(self):
        arguments = {"num-layers": "8", "hidden-size": "512", "num-attention-heads": "8",
                     "pipeline-model-parallel-size": "2", "micro-batch-size": "4",
                     "num-layers-per-virtual-pipeline-stage": "2", "use-distributed-optimizer": "true",
                     "untie-embeddings-and-output-weights": "true", "bf16": "true"}
        plan = plans.plan_of(row(megatron_args={**arguments, "tokenizer-type": "GPT2BPETokenizer"}))
        flags = [f"--{name}" if value == "true" else f"--{name} {value}"
                 for name, value in arguments.items()]
        self.assertEqual(" ".join(plan["flags"]), " ".join([*flags, "--vocab-size 50257"]))

    def test_flags_are_taken_as_they_are(self):
        flags = ["--model", "llama3-8b", "--gpus", "8"]
        self.assertEqual(plans.plan_of(row(flags=flags)), {"flags": flags})

    def test_a_functional_test_of_megatron_is_a_file_under_its_flags(self):
        arguments = {"--num-layers": "12", "--bf16": "true"}
        plan = plans.plan_of(row(flags=["--gpus", "8"], megatron_test={"MODEL_ARGS": arguments}))
        self.assertEqual(plan["flags"], ["--gpus", "8"])
        self.assertEqual(plan["file"], f"MODEL_ARGS: {json.dumps(arguments)}")

    def test_rows_that_nobody_looked_at_say_their_source(self):
        for entry in read_rows(SCRIPTS / "data" / "unseen-rows.json"):
            self.assertTrue(entry.config["flags"], entry.id)
            self.assertIn("flags", plans.plan_of(entry), entry.id)
        document = json.loads((SCRIPTS / "data" / "unseen-rows.json").read_text(encoding="utf-8"))
        judged = {entry.id for entry in read_rows(SCRIPTS / "data" / "ground-truth.json")}
        for entry in document["rows"]:
            self.assertTrue(entry["source"]["repo"] and entry["source"]["path"], entry["id"])
            self.assertNotIn(entry["id"], judged)

    def test_corrections_win_over_the_arguments_of_megatron(self):
        corrected = dataclasses.replace(row(megatron_args={"context-parallel-size": "1"}),
                                        id="dgxc-v25.02.02-nemotron4-340b-bf16-128")
        self.assertEqual(plans.plan_of(corrected)["flags"][-2:], ["--set", "parallelism.context=2"])

    def assert_left_out(self, reason, one_row):
        with self.assertRaisesRegex(LeftOut, reason):
            plans.plan_of(one_row)

    def test_latent_attention_is_read_from_its_words(self):
        words = "MLA q_lora1536 kv_lora512 qk128 rope64 v128"
        model = plans.plan_of(row(arch={**ARCH, "kv_heads": None, "attn": words}))["model"]
        self.assertEqual({key: model[key] for key in (
            "multi_latent_attention", "q_lora_rank", "kv_lora_rank", "qk_head_dim",
            "qk_pos_emb_head_dim", "v_head_dim", "num_query_groups")},
            {"multi_latent_attention": True, "q_lora_rank": 1536, "kv_lora_rank": 512,
             "qk_head_dim": 128, "qk_pos_emb_head_dim": 64, "v_head_dim": 128,
             "num_query_groups": 4})
        with self.assertRaisesRegex(LeftOut, "sliding-window"):
            plans.plan_of(row(arch={**ARCH, "attn": "alternating sliding-window 128/full"}))

    def test_a_row_that_is_no_plan_says_why(self):
        self.assert_left_out("incomplete: vocab", row(complete=False))
        self.assert_left_out("does not say gpus", row(gpus=None))
        self.assert_left_out("does not say vocab", row(arch={**ARCH, "vocab": "~250k"}))
        self.assert_left_out("recompute 'every other layer' has no word", row(recompute="every other layer"))

    def test_experts_become_keys(self):
        experts = {**ARCH, "layers": 3, "experts": 8, "topk": 2, "moe_ffn": 64, "dense_layers": 1,
                   "shared_expert_ffn": 32}
        model = plans.plan_of(row(arch=experts))["model"]
        self.assertEqual((model["num_experts"], model["moe_layer_freq"]), (8, [0, 1, 1]))
        self.assertEqual((model["moe_ffn_hidden_size"],
                          model["moe_shared_expert_intermediate_size"]), (64, 32))
        self.assertEqual(model["moe_aux_loss_coeff"], 0)
        self.assertNotIn("qk_layernorm", model)
        qwen = plans.plan_of(row(arch={**experts, "qk_norm": True, "aux_loss": 1e-3}))["model"]
        self.assertEqual((qwen["qk_layernorm"], qwen["moe_aux_loss_coeff"]), (True, 1e-3))

    def test_mixtures_of_experts_are_counted_apart(self):
        self.assertEqual(row().label, "s")
        self.assertEqual(dataclasses.replace(row(), category="moe").label, "s-experts")
        self.assertEqual(dataclasses.replace(row(), category="peft").label, "s-adapters")

    def test_numbers_in_words_are_read(self):
        words = {**ARCH, "vocab": "~250k (250112/250880 padded)"}
        self.assertEqual(plans.plan_of(row(arch=words))["model"]["vocab_size"], 250112)

    def test_stages_that_count_embedding_and_head_as_layers_are_spelled_out(self):
        plan = plans.plan_of(row(arch={**ARCH, "layers": 70}, pp=12))
        self.assertEqual(plan["parallelism"]["layers_per_stage"], [5, *[6] * 10, 5])
        self.assertNotIn("layers_per_stage", plans.plan_of(row(pp=2))["parallelism"])

    def test_facts_of_a_source_stand_beside_those_of_the_row(self):
        source = dataclasses.replace(row(), source="bloom")
        self.assertEqual(plans.plan_of(source)["cluster"],
                         {"gpu": "h100-sxm", "nodes": 1, "gpus_per_node": 4,
                          "inter_link": "opa-100", "nics_per_node": 4})

    def test_what_a_row_did_otherwise_than_it_says_is_corrected(self):
        said = row(cp=1)
        other = dataclasses.replace(said, id="dgxc-v25.02.02-nemotron4-340b-bf16-128")
        self.assertEqual(plans.plan_of(said)["parallelism"]["context"], 1)
        self.assertEqual(plans.plan_of(other)["parallelism"]["context"], 2)

    def test_overlap_is_read_from_the_optimizers_words(self):
        def overlap(words):
            return plans.plan_of(row(optimizer=words))["parallelism"]["overlap_grad_reduce"]
        self.assertTrue(overlap("distributed Adam (ZeRO-1), overlap grad/param sync"))
        self.assertFalse(overlap("Adam (ZeRO-1), no overlap-grad-reduce/param-gather"))

    def test_what_is_not_built_is_left_out_by_name(self):
        self.assert_left_out("torch.compile is not built", row(compile=True))
        self.assert_left_out("a part of the data ranks", row(zero1_group=1))

    def test_a_recipe_of_megatron_bridge_says_the_types(self):
        said = plans.plan_of(row(precision="fp8_cs", dtype="FP8"))["training"]
        self.assertEqual((said["dtype"], said["fp8_recipe"], said["fp8_param_gather"]),
                         ("bf16", "tensorwise", True))
        said = plans.plan_of(row(precision="nvfp4"))["training"]
        self.assertEqual((said["dtype"], said["fp4_recipe"], said["fp4_param_gather"]), ("bf16", "nvfp4", True))
        self.assert_left_out("precision 'fp6' has no word", row(precision="fp6"))

    def test_what_a_recipe_of_megatron_bridge_does_and_no_plan_says_is_the_reason(self):
        for said, reason in (({"megatron_fsdp": True}, "Megatron-FSDP"),
                             ({"offloaded_layers": 10}, "copied to the host"),
                             ({"expert_overlap": True, "cuda_graphs": "full_iteration"}, "the whole recipe")):
            self.assert_left_out(reason, row(precision="fp8_cs", **said))
        self.assertIn("model", plans.plan_of(row(precision="fp8_cs", cuda_graphs=None)))

    def test_a_row_may_have_the_plan_of_its_recipe(self):
        plan = {"model": {"preset": "any"}, "cluster": {"gpu": "gb200", "nodes": 2, "gpus_per_node": 4}}
        self.assertEqual(plans.plan_of(row(plan=plan)), plan)

    def test_a_recipe_that_overlaps_experts_delays_the_gradients_of_weights(self):
        said = plans.plan_of(row(precision="bf16", expert_overlap=True))["parallelism"]
        self.assertTrue(said["overlap_moe_expert_parallel_comm"] and said["delay_wgrad_compute"])
        self.assertNotIn("delay_wgrad_compute", plans.plan_of(row(precision="bf16"))["parallelism"])

    def test_a_recipe_of_megatron_bridge_says_its_graphs_and_how_its_experts_run(self):
        arch = {**row().config["arch"], "experts": 8, "topk": 2, "moe_ffn": 64}
        said = plans.plan_of(row(precision="bf16", arch=arch, recipe={"name": "any"}, dispatcher="hybridep",
                                 cuda_graphs="transformer_engine: attn, moe_router"))["training"]
        self.assertEqual(said["cuda_graph_impl"], "transformer_engine")
        self.assertEqual(said["cuda_graph_modules"], ["attn", "moe_router"])
        self.assertEqual((said["moe_token_dispatcher_type"], said["moe_flex_dispatcher_backend"]), ("flex", "hybridep"))
        self.assertTrue(said["moe_router_fusion"])
        whole = plans.plan_of(row(precision="bf16", cuda_graphs="local: full_iteration"))["training"]
        self.assertEqual((whole["cuda_graph_impl"], whole["cuda_graph_modules"]), ("local", ["full_iteration"]))
        self.assertNotIn("moe_router_fusion", whole)

    def test_a_recipe_of_megatron_bridge_says_its_adapters(self):
        said = plans.plan_of(row(precision="bf16", lora_rank=16, lora_target_modules=["linear_qkv"]))["training"]
        self.assertEqual((said["lora_rank"], said["lora_target_modules"]), (16, ["linear_qkv"]))
        self.assertNotIn("lora_rank", plans.plan_of(row(precision="bf16"))["training"])
        tuned = [r for r in read_rows(SCRIPTS / "data" / "ground-truth.json")
                 if r.source == "bridge" and r.config.get("task") == "LoRA"]
        self.assertTrue(tuned)
        for each in tuned:
            self.assertIn("lora_rank", each.config, each.id)

    def test_each_complete_row_of_megatron_bridge_names_its_recipe(self):
        rows = [r for r in read_rows(SCRIPTS / "data" / "ground-truth.json")
                if r.source == "bridge" and r.complete]
        self.assertGreater(len(rows), 60)
        for each in rows:
            self.assertEqual(set(each.config["recipe"]), {"path", "commit", "name"}, each.id)
            self.assertIn(each.config["precision"], plans.BRIDGE_PRECISIONS, each.id)

    # 126 layers, the embedding and the head: 128 in 8 stages of 2 chunks.
    def test_chunks_count_the_embedding_and_the_head_as_layers(self):
        arch = {**row().config["arch"], "layers": 126}
        stages = plans.plan_of(row(arch=arch, pp=8, vpp=2))["parallelism"]["layers_per_stage"]
        self.assertEqual(stages, [7, *[8] * 14, 7])

    def test_context_ranks_exchange_as_the_row_says_or_in_a_ring(self):
        said = plans.plan_of(row(cp=4, cp_comm="a2a"))["parallelism"]
        self.assertEqual((said["context"], said["context_comm"]), (4, "a2a"))
        self.assertEqual(plans.plan_of(row(cp=4))["parallelism"]["context_comm"], "p2p")

    def test_selective_recompute_by_operator_is_torchtitans(self):
        said = plans.plan_of(dataclasses.replace(row(recompute="selective op (SAC)"),
                                                 source="torchtitan"))["training"]
        self.assertEqual((said["framework"], said["recompute"]), ("torchtitan", "selective"))

    def test_fsdp_is_zero_stage_3(self):
        self.assertEqual(plans.plan_of(row(fsdp=4))["parallelism"]["zero_stage"], 3)

    # Words (tied), positions, layers of four products, and a weight and a bias of each norm.
    def test_plans_of_llm_foundry_have_the_published_parameters(self):
        rows = [r for r in read_rows(SCRIPTS / "data" / "ground-truth.json")
                if r.source == "mpt" and r.complete and not r.config["dtype"].startswith("amp_fp8")]
        self.assertGreater(len(rows), 90)
        for each in rows:
            model = plans.plan_of(each)["model"]
            h, layers = model["hidden_size"], model["num_layers"]
            biases = 9 if model.get("add_bias_linear", True) else 0
            count = (h * (model["vocab_size"] + model["max_position_embeddings"] + 2) +
                     layers * (12 * h * h + (biases + 4) * h))
            self.assertEqual(count, each.config["n_params"], each.id)


class Memory(unittest.TestCase):
    def compare(self, fake, *rows):
        return memory.compare(list(rows), Onerank(fake.folder, jobs=1))

    def test_the_largest_rank_is_compared_and_allocated_comes_first(self):
        fake = FakeOnerank(self, json.dumps(ESTIMATE))
        readings, _ = self.compare(fake, row(measured={"peak_reserved_gib_max_rank": 6,
                                                       "peak_allocated_gib_max_rank": 2}))
        self.assertEqual([(r.quantity, r.error) for r in readings],
                         [("allocated peak", 0.5), ("reserved peak", 0.0)])

    def test_the_rank_is_compared_that_the_source_measured(self):
        fake = FakeOnerank(self, json.dumps(ESTIMATE), exit_code=1)
        readings, _ = self.compare(fake, row(measured={"mem_max_allocated_bytes_last_step": 1 << 30}),
                                   row(measured={"peak_allocated_gib_rank_0": 1}))
        self.assertEqual([r.predicted for r in readings], [2 << 30, 3 << 30])

    def test_what_onerank_refuses_is_left_out_with_its_words(self):
        fake = FakeOnerank(self, exit_code=2, complaint="error: that is not built yet\n"
                           "  /dev/stdin: parallelism.that = 2\n  help: wait\n")
        _, left_out = self.compare(fake, row(measured={"peak_allocated_mib": 1}))
        self.assertEqual(left_out, [("r", "that is not built yet")])

    def test_an_argument_of_megatron_that_onerank_does_not_know_is_a_reason(self):
        fake = FakeOnerank(self, exit_code=2, complaint="error: unknown flag\n  --fancy\n")
        _, left_out = self.compare(fake, row(measured={"peak_allocated_mib": 1},
                                             megatron_args={"fancy": "true"}))
        self.assertEqual(left_out, [("r", "unknown flag: --fancy")])

    def test_a_file_that_onerank_refuses_is_left_out_with_its_place(self):
        fake = FakeOnerank(self, exit_code=2, complaint="error: not modelled\n  file:3: --fancy\n")
        _, left_out = self.compare(fake, row(measured={"peak_allocated_mib": 1}, flags=["--gpus", "8"],
                                             megatron_test={"MODEL_ARGS": {"--fancy": "1"}}))
        self.assertEqual(left_out, [("r", "not modelled: file:3: --fancy")])

    def test_a_mistake_of_the_script_is_not_a_reason(self):
        fake = FakeOnerank(self, exit_code=2, complaint="error: unknown flag\n  --bogus\n")
        with self.assertRaises(OnerankFailed):
            self.compare(fake, row(measured={"peak_allocated_mib": 1}))

    def test_equal_plans_run_once(self):
        fake = FakeOnerank(self, json.dumps(ESTIMATE))
        rows = [row(measured={"peak_allocated_mib": 1}), row(measured={"peak_allocated_mib": 2})]
        self.compare(fake, *rows)
        self.assertEqual(len(fake.plans()), 1)

    def test_a_gpu_by_the_name_that_its_source_has(self):
        fake = FakeOnerank(self, json.dumps(ESTIMATE))
        readings, _ = self.compare(fake, row(gpu="H100 96GB HBM2e 500W",
                                             measured={"peak_memory_gib": 6}))
        self.assertEqual([(r.quantity, r.error) for r in readings], [("reserved peak", 0.0)])
        self.assertEqual(fake.plans()[0]["cluster"]["gpu"], "h100-sxm-96")

    def test_rows_without_a_memory_figure_are_no_concern_of_it(self):
        self.assertEqual(self.compare(FakeOnerank(self), row(measured={"iteration_ms": 3})), ([], []))


class Time(unittest.TestCase):
    def measured(self, source="s", **figures):
        resolved = {"cluster": {"nodes": 1, "gpus_per_node": 4},
                    "training": {"global_batch_size": 8, "sequence_length": 128}}
        fake = FakeOnerank(self, json.dumps({"plan": resolved, "time": {"iteration_seconds": 2.0}}))
        one = dataclasses.replace(row(measured=figures), source=source)
        return time.compare([one], Onerank(fake.folder, jobs=1))

    # 8 samples of 128 tokens on 4 GPUs.
    def test_every_figure_becomes_seconds_of_an_iteration(self):
        for figures in ({"iteration_ms": 500}, {"iteration_s": 0.5}, {"tokens_per_s": 2048},
                        {"tokens_per_s_per_gpu": 512}):
            readings, _ = self.measured(**figures)
            self.assertAlmostEqual(readings[0].measured, 0.5, msg=str(figures))
            self.assertAlmostEqual(readings[0].error, 3.0)

    def test_a_row_that_was_measured_for_its_memory_is_left_out(self):
        one = dataclasses.replace(row(measured={"iteration_s": 4}), kinds=("memory",),
                                  flags=("too small to time",))
        fake = FakeOnerank(self, json.dumps({"time": {"iteration_seconds": 2.0}}))
        self.assertEqual(time.compare([one], Onerank(fake.folder, jobs=1)),
                         ([], [("r", "too small to time")]))

    def test_a_measured_time_counts_before_what_is_derived_from_it(self):
        readings, _ = self.measured(tokens_per_s=1, iteration_s=4)
        self.assertAlmostEqual(readings[0].measured, 4)

    # 96 x 1024 tokens x 2 x 256^2 x (1 + 128 / 1536 + 1000 / 8192) over 4 x 1 TFLOP/s.
    def test_tflops_are_converted_by_the_formula_of_their_paper(self):
        readings, _ = self.measured("sc21", tflops_per_gpu=1)
        self.assertAlmostEqual(readings[0].measured, 1.28849e10 * 1.205404 / 4e12, places=6)
        _, left_out = self.measured("other", tflops_per_gpu=1)
        self.assertIn("formula", left_out[0][1])

    def test_rows_of_other_models_and_figures_are_no_concern_of_it(self):
        self.assertEqual(self.measured(peak_allocated_mib=1), ([], []))


def curve(interconnect="NVLink4/NVSwitch", name="r", config=None, **point):
    return Row(id=name, source="comm", category="comm", complete=True, missing=(), flags=(),
               config={"collective": "all_reduce", "gpu": "H100", "gpus": 16, "nodes": 2,
                       "interconnect": interconnect, **(config or {})},
               measured={"series": [point]})


class Communication(unittest.TestCase):
    def compare(self, *rows, seconds=1e-3):
        fake = FakeOnerank(self, json.dumps({"points": [{"seconds": seconds}]}))
        return comm.compare(list(rows), Onerank(fake.folder, jobs=1))

    def test_times_are_compared_by_band_and_role(self):
        readings, left_out = self.compare(
            curve(bytes=128 << 20, time_us=2000),
            curve(bytes=1 << 20, time_us=500, name="comm-allreduce-p5x16-aws"))
        self.assertEqual(left_out, [])
        self.assertEqual([(r.quantity, round(r.error, 9)) for r in readings],
                         [("held out, above 64 MiB", -0.5), ("fitted, 256 KiB to 64 MiB", 1.0)])

    def test_a_bus_bandwidth_is_a_time(self):
        # 16 ranks move 2 x 15/16 of 1 GB at 100 GB/s.
        readings, _ = self.compare(curve(bytes=10 ** 9, busbw=100.0))
        self.assertAlmostEqual(readings[0].measured, 0.01875)

    def test_a_bus_bandwidth_of_few_digits_says_nothing(self):
        self.assertEqual(self.compare(curve(bytes=1024, busbw=0.06)), ([], []))

    def test_what_the_host_of_a_row_adds_is_added(self):
        def predicted(seconds, **config):
            readings, _ = self.compare(curve(config=config, bytes=1 << 20, time_us=1), seconds=seconds)
            return readings[0].predicted
        launches = 8 * comm.LAUNCH_SECONDS
        self.assertAlmostEqual(predicted(1e-6), comm.LAUNCH_SECONDS)
        self.assertAlmostEqual(predicted(1e-6, gpus_per_thread=8), launches)
        self.assertAlmostEqual(predicted(1e-3, gpus_per_thread=8), 1e-3)
        self.assertAlmostEqual(predicted(1e-3, waits_for_each_call=True), 1.025e-3)

    def test_what_a_row_forced_is_asked_for(self):
        row = curve(config={"nvls": False, "algorithm": "ring"}, bytes=1, time_us=1)
        self.assertEqual(comm._flags(row)[-3:], ["--algorithm", "ring", "--no-nvls"])

    def test_an_unknown_network_is_a_reason(self):
        _, left_out = self.compare(curve("OmniPath", bytes=1, time_us=1))
        self.assertIn("OmniPath", left_out[0][1])

    def test_goals_name_the_curves_that_miss_them(self):
        readings, _ = self.compare(curve(bytes=128 << 20, time_us=1100),
                                   curve(bytes=128 << 20, time_us=2000, name="far"))
        goal = comm.goals(readings)[0]
        self.assertEqual((goal["share_of_points"], goal["curves_beyond"]), (0.5, ["far"]))

    def test_all_rows_that_are_fitted_exist(self):
        names = {row.id for name in comm.DATA for row in read_rows(SCRIPTS / "data" / name)}
        self.assertLessEqual(comm.FITTED, names)


class Program(unittest.TestCase):
    def run_program(self, *arguments):
        return subprocess.run([SCRIPTS / "accuracy", *map(str, arguments)], capture_output=True,
                              text=True, check=False)

    def test_rows_of_the_repository_are_read(self):
        self.assertEqual(len(read_rows(SCRIPTS / "data" / "ground-truth.json")), 614)

    def test_a_damaged_file_exits_with_2_and_says_where(self):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            file.write('{"rows": [{"id": "x", "config": {}, "measured": {}}, {"id": "y"}]}')
            file.flush()
            done = self.run_program("memory", "--rows", file.name)
        self.assertEqual(done.returncode, 2)
        self.assertIn('rows[1]: a row needs "config"', done.stderr)

    def test_an_unknown_subject_exits_with_2(self):
        self.assertEqual(self.run_program("taste").returncode, 2)

    def test_without_a_build_it_exits_with_3_and_says_what_to_do(self):
        done = self.run_program("memory", "--build", "/nonexistent")
        self.assertEqual(done.returncode, 3)
        self.assertIn("scripts/quickstart", done.stderr)

    def test_a_failure_of_onerank_is_not_a_reason_to_leave_a_row_out(self):
        fake = FakeOnerank(self, exit_code=70, complaint="error: a bug\n")
        done = self.run_program("memory", "--build", fake.folder)
        self.assertEqual(done.returncode, 70)
        self.assertIn("error: a bug", done.stderr)


if __name__ == "__main__":
    unittest.main()
