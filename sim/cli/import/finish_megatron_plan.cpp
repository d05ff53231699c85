#include "sim/cli/import/finish_megatron_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "estimator/base/database.h"
#include "estimator/base/errors.h"
#include "estimator/base/fields.h"
#include "estimator/base/glob.h"
#include "estimator/plan/model_config.h"
#include "estimator/resolve/plan_tree.h"
#include "estimator/resolve/sized_model.h"
#include "sim/cli/import/tree_entries.h"
#include "sim/cli/values/pipeline_layout.h"
#include "sim/cli/values/strict_number.h"

namespace onerank_data {
extern const std::string_view import_vocabularies_json;
}

namespace sim {

/// The size of a tokenizer's vocabulary.
struct VocabularyRow {
  std::string tokenizer;
  std::string model;
  int64_t vocab_size = 0;
  std::string source;
  bool assumed = false;
};
template <class Visitor>
void visit_fields(Visitor& visit, VocabularyRow& row) {
  visit("tokenizer", row.tokenizer, "--tokenizer-type");
  visit("model", row.model, "pattern of --tokenizer-model; empty: any");
  visit("vocab_size", row.vocab_size, "its tokens");
  visit("source", row.source, "where the number is from");
  visit("assumed", row.assumed, "the file that is named may have another size");
}

namespace {

using estimator::Json;
using estimator::UserError;

const SourceEntry* find_use(const ImportedPlan& plan, const std::string& key) {
  const SourceEntry* modelled = find_entry(plan.modelled, key);
  return modelled != nullptr ? modelled : find_entry(plan.without_effect, key);
}

std::string said(const ImportedPlan& plan, const std::string& key) {
  const SourceEntry* entry = find_use(plan, key);
  return entry == nullptr ? "" : entry->value();
}

/// "Qwen/Qwen3-8B" may be a model that is known.
std::optional<int64_t> vocabulary_of_model(const std::string& name) {
  const auto* preset = estimator::find_model_preset(name);
  return preset == nullptr ? std::nullopt : std::optional(preset->config.vocab_size);
}

/// The null tokenizer has as many tokens as --vocab-size says, since core 0.18
/// (megatron/core/tokenizers/text/libraries/null_tokenizer.py).
void tell_of_end_of_document(const Json& words, ImportedPlan& plan) {
  if (said(plan, "tokenizer-type") != "NullTokenizer" || !words.is_number_integer()) return;
  plan.notes.push_back(
      fmt::format("up to core 0.17 the null tokenizer has a token more than --vocab-size says; for "
                  "such a core add --vocab-size {}",
                  words.get<int64_t>() + 1));
}

void set_vocabulary(ImportedPlan& plan) {
  if (const SourceEntry* padded = find_use(plan, "padded-vocab-size")) {
    set_key(plan, "model.vocab_size", parse_whole_number(padded->value(), padded->place));
    set_key(plan, "training.make_vocab_size_divisible_by", 1);
    return;
  }
  if (const Json words = said_key(plan, "model.vocab_size"); !words.is_null()) {
    return tell_of_end_of_document(words, plan);
  }
  static const auto rows = estimator::read_database<VocabularyRow>(
      onerank_data::import_vocabularies_json, "vocabularies.json");
  std::string tokenizer = said(plan, "tokenizer-type");
  const std::string model = said(plan, "tokenizer-model");
  if (tokenizer.empty() && find_use(plan, "merge-file") != nullptr) tokenizer = "GPT2BPETokenizer";
  for (const VocabularyRow& row : rows) {
    if (row.tokenizer != tokenizer) continue;
    if (!row.model.empty() && !estimator::matches_glob(model, row.model)) continue;
    set_key(plan, "model.vocab_size", row.vocab_size);
    if (row.assumed) {
      plan.notes.push_back(
          fmt::format("the vocabulary of {} is taken to have {} tokens ({}); "
                      "--vocab-size says otherwise",
                      tokenizer,
                      row.vocab_size,
                      row.source));
    }
    return;
  }
  if (const auto size = vocabulary_of_model(model)) set_key(plan, "model.vocab_size", *size);
}

/// A dense model has no use for what is said of experts.
void drop_experts(Json& tree) {
  if (estimator::names_experts(tree)) return;
  for (const char* section : {"model", "training"}) {
    if (!tree.contains(section)) continue;
    std::vector<std::string> keys;
    for (const auto& [key, value] : tree[section].items()) {
      if (key.starts_with("moe_")) keys.push_back(key);
    }
    for (const std::string& key : keys) tree[section].erase(key);
  }
  if (tree.contains("parallelism")) tree["parallelism"].erase("expert_tensor");
}

/// Without products in 8 bits their recipe says nothing.
void drop_unused_recipe(Json& tree) {
  const bool has_format = !estimator::find_in_tree(tree, "training.fp8_format").is_null();
  if (!has_format && tree.contains("training")) tree["training"].erase("fp8_recipe");
}

/// The batch of a schedule's last step: "0:384 200B:768 400B:1152".
void set_scheduled_batch(ImportedPlan& plan) {
  const SourceEntry* schedule = find_use(plan, "step-batch-size-schedule");
  if (schedule == nullptr || schedule->is_unknown || schedule->values.empty()) return;
  const std::string& last = schedule->values.back();
  const std::string batch = last.substr(last.rfind(':') + 1);
  set_key(plan, "training.global_batch_size", parse_whole_number(batch, schedule->place));
}

/// What __post_init__ of TransformerConfig refuses beside an end that counts as a layer.
void refuse_other_division(const std::string& flag, const SourceEntry& end) {
  const bool is_layout = flag == kPipelineLayoutFlag;
  const bool is_stage =
      flag == "--decoder-first-pipeline-num-layers" || flag == "--decoder-last-pipeline-num-layers";
  if (!is_layout && !is_stage) return;
  throw UserError({.what = is_layout ? "a layout has the embedding and the loss in it"
                                     : "a stage has a number of layers of its own, and the "
                                       "embedding or the loss counts as a layer",
                   .where = end.place + ", " + flag,
                   .help = "keep one of the two"});
}

/// The embedding and the loss count as a layer each (get_num_layers_to_build in
/// megatron/core/transformer/transformer_block.py).
void divide_with_ends(ImportedPlan& plan) {
  const SourceEntry* embedding = find_use(plan, "account-for-embedding-in-pipeline-split");
  const SourceEntry* loss = find_use(plan, "account-for-loss-in-pipeline-split");
  const int64_t layers = estimator::number_of_model(
                             plan.tree.json(), "num_layers", &estimator::ModelConfig::num_layers)
                             .value_or(0);
  if ((embedding == nullptr && loss == nullptr) || layers == 0) return;
  const auto number_of = [&](const char* path) {
    const Json said = said_key(plan, path);
    return said.is_number_integer() ? std::max<int64_t>(1, said.get<int64_t>()) : 1;
  };
  const int64_t stages = number_of("parallelism.pipeline");
  int64_t chunks = number_of("parallelism.virtual_stages");
  const int64_t all = layers + (embedding != nullptr) + (loss != nullptr);
  for (const auto& [flag, value] : plan.stage_flags) {
    refuse_other_division(flag, embedding != nullptr ? *embedding : *loss);
    if (flag != "--num-layers-per-virtual-pipeline-stage") continue;
    const int64_t of_chunk = parse_whole_number(value, flag);
    if (of_chunk >= 1) chunks = std::max<int64_t>(1, all / stages / of_chunk);
  }
  const int64_t pieces = stages * chunks;
  if (all % pieces != 0) {
    const SourceEntry& use = embedding != nullptr ? *embedding : *loss;
    throw UserError(
        {.what = "the layers, with the embedding and the loss, do not divide among the stages",
         .where = fmt::format("{}: {} of {} stages x {} chunks", use.place, all, stages, chunks),
         .help = fmt::format("use a number of layers that makes it a multiple of {}", pieces)});
  }
  std::vector<int64_t> of_piece(static_cast<std::size_t>(pieces), all / pieces);
  if (embedding != nullptr) --of_piece.front();
  if (loss != nullptr) --of_piece.back();
  plan.stage_flags.clear();
  set_key(plan, "parallelism.layers_per_stage", of_piece);
  if (chunks > 1) set_key(plan, "parallelism.virtual_stages", chunks);
}

/// --recompute-activations wins over --recompute-granularity (validate_args() in
/// megatron/training/arguments.py).
void set_recompute(ImportedPlan& plan) {
  const SourceEntry* activations = find_use(plan, "recompute-activations");
  if (activations != nullptr) set_key(plan, "training.recompute", "selective");
}

}  // namespace

void finish_megatron_plan(ImportedPlan& plan) {
  Json tree = plan.tree.json();
  drop_experts(tree);
  drop_unused_recipe(tree);
  const bool has_groups = find_use(plan, "group-query-attention") != nullptr;
  if (!has_groups && tree.contains("model")) tree["model"].erase("num_query_groups");
  const bool has_fused_loss = find_use(plan, "cross-entropy-loss-fusion") != nullptr;
  if (!has_fused_loss && tree.contains("training")) tree["training"].erase("cross_entropy_fusion");
  plan.tree = tree;
  set_recompute(plan);
  set_vocabulary(plan);
  set_scheduled_batch(plan);
  divide_with_ends(plan);
  const Json sequence = said_key(plan, "training.sequence_length");
  if (said_key(plan, "model.max_position_embeddings").is_null() && !sequence.is_null()) {
    set_key(plan, "model.max_position_embeddings", sequence);
  }
  const SourceEntry* samples = find_use(plan, "train-samples");
  if (samples != nullptr && !samples->is_unknown && sequence.is_number_integer()) {
    const int64_t count =
        parse_whole_number(samples->value(), samples->place + ": " + samples->shown());
    int64_t tokens = 0;
    if (!__builtin_mul_overflow(count, sequence.get<int64_t>(), &tokens) && tokens > 0) {
      set_key(plan, "training.tokens", tokens);
    }
  }
}

}  // namespace sim
