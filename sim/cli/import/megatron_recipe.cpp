#include "sim/cli/import/megatron_recipe.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <string_view>

#include "estimator/base/database.h"
#include "estimator/base/glob.h"
#include "estimator/base/json.h"
#include "estimator/base/text.h"
#include "estimator/hardware/hardware.h"
#include "estimator/plan/model_config.h"
#include "sim/cli/import/megatron_config.h"
#include "sim/cli/import/python/python_files.h"
#include "sim/cli/import/python_choice.h"
#include "sim/cli/import/python_entries.h"
#include "sim/cli/import/training_command.h"
#include "sim/cli/import/tree_entries.h"
#include "sim/cli/values/strict_number.h"

namespace onerank_data {
extern const std::string_view import_megatron_bridges_json;
}  // namespace onerank_data

namespace sim {

/// What Megatron-Bridge makes of a model of transformers, beside its shape.
struct BridgeRow {
  std::vector<std::string> models;
  std::string technique;
  estimator::JsonValue fields;
  std::string source;
};
template <class Visitor>
void visit_fields(Visitor& visit, BridgeRow& row) {
  visit("models", row.models, "patterns of the model's name; each row that fits holds");
  visit("technique", row.technique, "what its layers have that is not modelled");
  visit("fields", row.fields, "what its configuration has that the recipe need not say");
  visit("source", row.source, "the file of Megatron-Bridge that says so");
}

namespace {

using estimator::Json;
using ValueKind = PythonValue::Kind;

constexpr const char* kDispatcherFunction = "apply_flex_dispatcher_backend";
constexpr const char* kAdaptersFunction = "default_peft_config";
constexpr const char* kPrecisionModule = "megatron.bridge.training.mixed_precision";

const std::vector<BridgeRow>& bridge_rows() {
  static const auto rows = estimator::read_database<BridgeRow>(
      onerank_data::import_megatron_bridges_json, "megatron_bridges.json");
  return rows;
}

/// Rows whose patterns fit the model.
std::vector<const BridgeRow*> rows_of(const std::string& model) {
  std::vector<const BridgeRow*> rows;
  for (const BridgeRow& row : bridge_rows()) {
    if (estimator::matches_any_glob(model, row.models)) rows.push_back(&row);
  }
  return rows;
}

/// The name of transformers' model whose configuration the object is; "" if it is none.
std::string model_of(const PythonValue& object) {
  const bool is_model =
      object.text.ends_with(".get_model_config") || object.text.ends_with(".to_megatron_provider");
  const PythonValue* name = python_argument(object, 0);
  return is_model && name != nullptr ? name->as_text() : "";
}

PythonValue value_of(const Json& json) {
  if (!json.is_array()) return python_constant(json);
  std::vector<PythonValue> values;
  for (const Json& item : json) values.push_back(python_constant(item));
  return python_list(std::move(values));
}

/// Fields that recipes read from the shape of a model.
void add_shape(const std::string& model, const PythonValue& object) {
  const auto* preset = estimator::find_model_preset(model);
  if (preset == nullptr) return;
  const estimator::ModelConfig& shape = preset->config;
  for (const auto& [name, value] : {std::pair("num_layers", shape.num_layers),
                                    std::pair("vocab_size", shape.vocab_size),
                                    std::pair("hidden_size", shape.hidden_size),
                                    std::pair("seq_length", shape.max_position_embeddings)}) {
    set_python_item(object, name, python_constant(value), "");
    find_python_item(object, name)->is_known = true;
  }
}

const PythonValue* field(const PythonValue& object, std::string_view name) {
  const PythonItem* item = find_python_item(object, name);
  return item == nullptr ? nullptr : &item->value;
}

/// Ampere, Hopper, and those that NVIDIA calls B200 and B300.
bool runs_deep_ep(const std::string& name) {
  const estimator::Gpu* gpu = estimator::find_gpu(name);
  return gpu == nullptr || gpu->major_capability() < estimator::kBlackwell ||
         gpu->cuda_name.starts_with("NVIDIA B");
}

/// apply_flex_dispatcher_backend() in training/flex_dispatcher_backend.py, which asks the GPU:
/// where DeepEP does not run, tokens move by all-to-all.
void apply_dispatcher(const PythonValue& call, const std::string& gpu) {
  const PythonValue* model = python_argument(call, 0);
  if (model == nullptr) return;
  const PythonValue* given = field(call, "moe_flex_dispatcher_backend");
  if (given == nullptr) given = python_argument(call, 1);
  const PythonValue backend = given != nullptr ? *given : python_constant(estimator::JsonValue());
  if (backend.as_text() != "deepep" && backend.as_text() != "hybridep") return;
  const bool runs = backend.as_text() == "hybridep" || runs_deep_ep(gpu);
  set_python_item(
      *model, "moe_token_dispatcher_type", python_constant(runs ? "flex" : "alltoall"), call.text);
  set_python_item(*model, "moe_flex_dispatcher_backend", backend, call.text);
  if (runs) set_python_item(*model, "moe_shared_expert_overlap", python_constant(false), call.text);
}

/// default_peft_config() in recipes/utils/dataset_utils.py: the adapters of that name, or those
/// that are given.
void make_adapters(PythonValue& call) {
  constexpr const char* kScheme = "peft_scheme";
  const PythonValue* given = field(call, kScheme);
  if (given == nullptr) given = python_argument(call, 0);
  if (given == nullptr) return;
  const PythonValue scheme = *given;
  const std::string name = estimator::lower_case(scheme.as_text());
  std::erase_if(*call.items, [&](const PythonItem& item) {
    return item.name == kScheme || item.name == kPythonArguments;
  });
  if (scheme.is(ValueKind::kObject)) call = scheme;
  if (scheme.is_none() || name == "none") call = python_constant(estimator::JsonValue());
  if (name == "lora") call.text = "megatron.bridge.peft.lora.LoRA";
  if (name == "dora") call.text = "megatron.bridge.peft.dora.DoRA";
}

void add_bridge(PythonValue& object) {
  const std::string model = model_of(object);
  if (model.empty()) return;
  add_shape(model, object);
  for (const BridgeRow* row : rows_of(model)) {
    for (const auto& [name, value] : row->fields.json().items()) {
      set_python_item(object, name, value_of(value), "bridge of " + model);
    }
  }
}

bool is_true(const PythonValue& object, std::string_view name) {
  const PythonValue* value = field(object, name);
  return value != nullptr && python_truth(*value).value_or(false);
}

int64_t number_in(const PythonValue& object, std::string_view name, int64_t otherwise) {
  const PythonValue* value = field(object, name);
  const bool is_number = value != nullptr && value->constant.json().is_number_integer();
  return is_number ? value->constant.json().get<int64_t>() : otherwise;
}

/// A recipe by its name is what the function of that name makes. The optimizer is told of the
/// recipe of products in 8 bits, in 16 bits, too, where only the class says one.
void read_precision(const PythonValue& config, PythonProgram& program) {
  PythonItem* precision = find_python_item(config, "mixed_precision");
  if (precision == nullptr) return;
  if (precision->value.is_text()) {
    std::string name = precision->value.as_text();
    std::replace(name.begin(), name.end(), '-', '_');
    precision->value = program.call(kPrecisionModule, name);
  }
  PythonItem* recipe = find_python_item(precision->value, "fp8_recipe");
  if (recipe != nullptr) recipe->is_known = false;
}

/// "Et|t|tL" of [["embedding", "decoder"], ["decoder"], ["decoder", "loss"]].
PythonValue layout_text(const PythonValue& stages) {
  constexpr std::pair<std::string_view, char> kLetters[] = {
      {"embedding", 'E'}, {"decoder", 't'}, {"mtp", 'm'}, {"loss", 'L'}};
  std::string text;
  for (const PythonItem& stage : *stages.items) {
    if (!text.empty()) text += '|';
    if (!stage.value.is(ValueKind::kList)) return python_unknown("a layout");
    for (const PythonItem& part : *stage.value.items) {
      const auto* letter =
          std::find_if(std::begin(kLetters), std::end(kLetters), [&](const auto& known) {
            return known.first == part.value.as_text();
          });
      if (letter == std::end(kLetters)) return python_unknown("a layout");
      text += letter->second;
    }
  }
  return python_constant(text);
}

void write_layout(const PythonValue& model) {
  PythonItem* layout = find_python_item(model, "pipeline_model_parallel_layout");
  if (layout != nullptr && layout->value.is(ValueKind::kList))
    layout->value = layout_text(layout->value);
}

/// What CommOverlapConfig.setup() decides where the recipe does not (training/comm_overlap.py).
void complete_overlap(const PythonValue& config, const PythonValue& model) {
  PythonItem* overlap = find_python_item(config, "comm_overlap");
  const bool is_there = overlap != nullptr && overlap->value.is(ValueKind::kObject);
  const int64_t chunks = number_in(model, "virtual_pipeline_model_parallel_size", 1);
  const bool interleaves = number_in(model, "pipeline_model_parallel_size", 1) > 1 && chunks > 1;
  if (interleaves && !is_there)
    set_python_item(model, "overlap_p2p_comm", python_constant(false), "");
  if (!is_there) return;
  std::erase_if(*overlap->value.items, [](const PythonItem& item) { return item.value.is_none(); });
  constexpr int64_t kBucketElements = int64_t{128} * 1024 * 1024;
  const auto decide = [&](const char* name, estimator::JsonValue value) {
    if (const PythonValue* said = field(overlap->value, name); said == nullptr)
      set_python_item(overlap->value, name, python_constant(std::move(value)), overlap->place);
  };
  decide("bucket_size", kBucketElements);
  decide("overlap_grad_reduce", true);
  decide("overlap_param_gather", true);
  if (interleaves) decide("overlap_p2p_comm", true);
  const bool divides =
      number_in(model, "tensor_model_parallel_size", 1) > 1 && is_true(model, "sequence_parallel");
  if (!divides)
    set_python_item(overlap->value, "tp_comm_overlap", python_constant(false), overlap->place);
  if (!is_true(overlap->value, "tp_comm_overlap"))
    std::erase_if(*overlap->value.items,
                  [](const PythonItem& item) { return item.name == "tp_comm_overlap_cfg"; });
}

/// The vocabulary of a tokenizer, which a recipe may put in place of the model's
/// (_validate_and_set_vocab_size() in training/setup.py); the null tokenizer has a token more.
void write_vocabulary(const PythonValue& config, const PythonValue& model) {
  const PythonValue* tokenizer = field(config, "tokenizer");
  if (tokenizer == nullptr || !is_true(*tokenizer, "use_tokenizer_vocab_size")) return;
  const int64_t words = number_in(*tokenizer, "vocab_size", 0);
  const PythonValue* type = field(*tokenizer, "tokenizer_type");
  const bool is_null = type != nullptr && type->as_text() == "NullTokenizer";
  if (is_null && words > 0)
    set_python_item(model, "vocab_size", python_constant(words + 1), "the null tokenizer");
}

/// Sections whose fields win over those of the others come last.
void order_sections(const PythonValue& config) {
  std::stable_sort(
      config.items->begin(),
      config.items->end(),
      [](const PythonItem& left, const PythonItem& right) {
        const auto rank = [](const PythonItem& item) {
          return item.name == "mixed_precision" ? 2 : item.name == "comm_overlap" ? 1 : 0;
        };
        return rank(left) < rank(right);
      });
}

/// Variables of the job are keys by their own names.
void name_variables(std::vector<SourceEntry>& entries) {
  constexpr std::string_view kPrefix = "env-vars.";
  for (SourceEntry& entry : entries) {
    if (!entry.key.starts_with(kPrefix)) continue;
    const std::string name = entry.key.substr(kPrefix.size());
    const bool is_read =
        std::any_of(job_variables().begin(), job_variables().end(), [&](const std::string& known) {
          return normal_key(known) == name;
        });
    if (is_read) entry.key = name;
  }
}

struct RecipeGpus {
  int64_t count = 0;
  std::string gpu;
};

/// "64gpu_h100" of the function's name.
std::optional<RecipeGpus> gpus_of(const std::string& function) {
  constexpr std::string_view kMark = "gpu";
  const std::vector<std::string> words = estimator::split(function, '_');
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    if (!words[i].ends_with(kMark)) continue;
    const std::string digits = words[i].substr(0, words[i].size() - kMark.size());
    if (estimator::is_digits(digits))
      return RecipeGpus{parse_positive_number(digits, function), words[i + 1]};
  }
  return std::nullopt;
}

void set_gpus(const std::string& function, ImportedPlan& plan) {
  const auto gpus = gpus_of(function);
  if (!gpus) return;
  const estimator::Gpu* gpu = estimator::find_gpu(gpus->gpu);
  if (gpu == nullptr) {
    const SourceEntry use = {.key = function, .values = {}, .place = plan.origin};
    return add_technique(plan, "other-device", use);
  }
  set_key(plan, "cluster.gpu", gpus->gpu);
  const int64_t of_machine = std::min(gpu->machine_gpus, gpus->count);
  if (gpus->count % of_machine != 0) return;
  set_key(plan, "cluster.nodes", gpus->count / of_machine);
  set_key(plan, "cluster.gpus_per_node", of_machine);
}

void set_model(const PythonValue& model, ImportedPlan& plan) {
  const std::string name = model_of(model);
  if (name.empty()) return;
  for (const BridgeRow* row : rows_of(name)) {
    if (row->technique.empty()) continue;
    add_technique(plan, row->technique, {.key = name, .values = {}, .place = plan.origin});
  }
  if (estimator::find_model_preset(name) == nullptr) plan.model_name = name;
}

ImportedPlan plan_of(const PythonValue& config, PythonProgram& program, const std::string& origin) {
  const PythonValue* model = field(config, "model");
  const PythonValue nothing = python_object("");
  if (model == nullptr) model = &nothing;
  read_precision(config, program);
  write_layout(*model);
  complete_overlap(config, *model);
  write_vocabulary(config, *model);
  const PythonValue shape = *model;  // the sections move
  order_sections(config);
  std::vector<SourceEntry> entries = entries_of_python(config, origin);
  name_variables(entries);
  const auto* preset = estimator::find_model_preset(model_of(shape));
  const MegatronFields fields = {"Megatron-Bridge", preset == nullptr ? "" : preset->name};
  ImportedPlan plan = import_megatron_fields(std::move(entries), fields, origin);
  set_model(shape, plan);
  return plan;
}

}  // namespace

bool is_megatron_recipe(const std::string& text) {
  return text.find("megatron.bridge") != text.npos;
}

ImportedPlan import_megatron_recipe(PythonFile file,
                                    const std::string& function,
                                    const std::string& origin) {
  std::string gpu;
  const auto complete = [&gpu](PythonValue& object) {
    if (object.text.ends_with(kDispatcherFunction)) return apply_dispatcher(object, gpu);
    if (object.text.ends_with(kAdaptersFunction)) return make_adapters(object);
    add_bridge(object);
  };
  PythonProgram program(std::move(file),
                        {.find = python_files_around(),
                         .not_followed = {kDispatcherFunction, kAdaptersFunction},
                         .on_object = complete});
  const std::string chosen = chosen_function(program.functions(), "*_config", function, origin);
  if (const auto gpus = gpus_of(chosen)) gpu = gpus->gpu;
  const PythonValue config = program.call(chosen);
  refuse_no_object(config, chosen, origin);
  ImportedPlan plan = plan_of(config, program, origin);
  set_gpus(chosen, plan);
  note_undecided(program.undecided(), plan);
  return plan;
}

}  // namespace sim
