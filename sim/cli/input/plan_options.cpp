#include "sim/cli/input/plan_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <filesystem>

#include "estimator/base/fields.h"
#include "estimator/base/text.h"
#include "estimator/resolve/plan_tree.h"
#include "estimator/resolve/resolve_plan.h"
#include "estimator/resolve/sized_model.h"
#include "sim/cli/import/import_file.h"
#include "sim/cli/import/import_verdict.h"
#include "sim/cli/input/flag_names.h"
#include "sim/cli/values/byte_sizes.h"
#include "sim/cli/values/strict_number.h"
#include "sim/cli/values/token_words.h"

namespace sim {
namespace {

using estimator::find_in_tree;
using estimator::Json;
using estimator::PlanContext;
using estimator::Problem;
using estimator::set_in_tree;
using estimator::UserError;

constexpr const char* kAllocatorPath = "memory.allocator";
constexpr const char* kModelPath = "model.preset";

/// Keys that PyTorch takes from variables, where the plan has them not; the first variable wins.
const std::vector<std::pair<std::string, std::vector<const char*>>> kVariables = {
    {"memory.cublas_workspace", {kCublasWorkspaceVariable}},
    {kAllocatorPath, {kOldAllocatorVariable, kAllocatorVariable}},
};

bool is_given(const Json& value) { return !value.is_null() && value != ""; }

}  // namespace

void PlanOptions::add_to(CLI::App& app) {
  app.add_option(
         "PLAN,-p,--plan",
         path_,
         "a plan file, JSON or YAML, or a file of another program, such as a script that starts "
         "Megatron-LM; flags take precedence over it")
      ->type_name("FILE")
      ->group("Plan");
  add_flags_to(app);
}

void PlanOptions::add_flags_to(CLI::App& app) {
  app.add_option("--gpus,--num-gpus,--world-size",
                 world_size_,
                 "ranks of the simulated world (or WORLD_SIZE)")
      ->type_name("N")
      ->group("Plan");
  app.add_option("--ignore",
                 ignored_,
                 "estimate another program's file without what is not modelled: fp8,deepep; the "
                 "estimate says what is missing")
      ->type_name("NAME,...")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->group("Plan");
  app.add_option("--script-arguments",
                 script_arguments_,
                 "what another program's script is started with, its $1, $2 ...: \"7B 1 bf16\"; "
                 "\"\" for nothing")
      ->type_name("TEXT")
      ->group("Plan");
  app.add_flag("--verbose", verbose_, "list the keys of another program's file, and their use")
      ->group("Plan");
  flags_.add_to(app);
  pipeline_layers_.add_to(app);
}

std::vector<TypedValues> PlanOptions::several_values() const {
  std::vector<TypedValues> several = flags_.several_values();
  TypedValues worlds{kWorldSizeFlag, "", estimator::split(world_size_, ',')};
  if (worlds.values.size() > 1) several.push_back(std::move(worlds));
  return several;
}

PlanOptions PlanOptions::with(const std::vector<TypedChoice>& choices) const {
  PlanOptions chosen = *this;
  for (const TypedChoice& choice : choices) {
    if (choice.flag == kWorldSizeFlag) {
      chosen.world_size_ = choice.value;
    } else {
      chosen.flags_.choose(choice);
    }
  }
  return chosen;
}

PlanOptions PlanOptions::of_file(std::string path) const {
  PlanOptions other = *this;
  other.path_ = std::move(path);
  return other;
}

std::string PlanOptions::given_beyond(const std::vector<std::string>& keys) const {
  if (!world_size_.empty()) return kWorldSizeFlag;
  if (pipeline_layers_.any_given()) return pipeline_layers_.given();
  return flags_.given_beyond(keys);
}

PlanContext PlanOptions::context(const Environment& environment) const {
  PlanContext context;
  context.origin = path_.empty() ? "command line" : path_ == "-" ? kStandardInput : path_;
  const bool has_flags = flags_.any_given() || pipeline_layers_.any_given();
  if (!path_.empty() && has_flags) context.origin += " and flags";
  if (!world_size_.empty()) {
    context.world_size_origin = kWorldSizeFlag;
    context.world_size = parse_whole_number(world_size_, context.world_size_origin);
  } else if (const auto variable = find_variable(environment, kWorldSizeVariable)) {
    context.world_size_origin = kWorldSizeVariable;
    context.world_size = parse_whole_number(*variable, context.world_size_origin);
  }
  return context;
}

namespace {

/// Of a file: a flag says how many GPUs there are.
void leave_open_how_many_machines(Json& tree) {
  const auto cluster = tree.find("cluster");
  if (cluster != tree.end() && cluster->is_object()) cluster->erase("nodes");
}

/// The model of one file in the plan of another.
void take_model(PlanFile of_model, PlanFile& file) {
  Json tree = file.tree.json();
  const Json model = find_in_tree(of_model.tree.json(), "model");
  if (!tree.is_object() || model.is_null()) return;
  tree["model"] = model;
  file.tree = tree;
  if (!of_model.imported) return;
  if (file.imported) {
    merge_under(*file.imported, std::move(*of_model.imported));
  } else {
    file.imported = std::move(of_model.imported);
  }
}

}  // namespace

std::string PlanOptions::file_of_model() const {
  std::string model = flags_.typed(kModelPath);
  if (model.empty()) return "";
  std::error_code ignored;
  const bool has_config =
      std::filesystem::is_regular_file(std::filesystem::path(model) / "config.json", ignored);
  const bool is_file = !estimator::named_model(model) && std::filesystem::exists(model, ignored);
  return has_config || is_file ? model : "";
}

PlanFile PlanOptions::read_tree(const Environment& environment, Writers& writers) const {
  PlanFile file;
  file.tree = Json::object();
  const std::string model_file = file_of_model();
  const std::string& named = path_.empty() ? model_file : path_;
  if (script_arguments_ && path_.empty()) {
    throw UserError({.what = "there is no script that takes arguments",
                     .where = "--script-arguments " + *script_arguments_,
                     .help = "give the script, or leave it out"});
  }
  if (!named.empty()) file = read_plan_or_other_file(named, script_arguments_);
  if (!path_.empty() && !model_file.empty()) take_model(read_plan_or_other_file(model_file), file);
  Json tree = file.tree.json();
  if (!tree.is_object()) return file;  // resolve_plan() says what is wrong with it
  if (!world_size_.empty()) leave_open_how_many_machines(tree);
  flags_.overlay(tree, model_file.empty() ? "" : kModelPath);
  for (const auto& [path, variables] : kVariables) {
    for (const char* name : variables) {
      const auto value = find_variable(environment, name);
      if (!value || is_given(find_in_tree(tree, path))) continue;
      set_in_tree(tree, path, *value, name);
      writers.emplace(path, name);
    }
  }
  file.tree = tree;
  return file;
}

PipelineLayers PlanOptions::stage_flags(const PlanFile& file) const {
  PipelineLayers layers = pipeline_layers_;
  if (layers.any_given() || !file.imported) return layers;
  for (const auto& [flag, value] : file.imported->stage_flags) layers.set(flag, value);
  return layers;
}

std::string PlanOptions::import_lines(const ImportedPlan& imported) const {
  std::string lines = import_summary(imported, verbose_);
  for (const std::string& line : accept(imported, ignored_)) lines += "note: " + line + "\n";
  return lines;
}

/// "command line: memory.allocator = x" is the variable that wrote the key, or the flag.
std::vector<Problem> PlanOptions::with_origins(std::vector<Problem> problems,
                                               const std::string& origin,
                                               const Writers& writers) const {
  for (Problem& problem : problems) {
    for (const auto& [path, variable] : writers) {
      replace_name(problem.where, fmt::format("{}: {}", origin, path), variable);
    }
    problem.where = flags_.with_flag_names(problem.where);
  }
  return problems;
}

void PlanOptions::with_names(const PlanInput& input,
                             const Writers& writers,
                             const std::function<void()>& read) const {
  try {
    read();
  } catch (const UserError& error) {
    throw UserError(with_origins(error.problems(), input.spec.context.origin, writers),
                    error.exit_code());
  }
}

void PlanOptions::refuse_ignored() const {
  if (ignored_.empty()) return;
  throw UserError({.what = "only what another program's file asks for can be ignored",
                   .where = fmt::format("--ignore {}", fmt::join(ignored_, ",")),
                   .help = "leave it out"});
}

PlanOptions::WrittenPlan PlanOptions::written(const Environment& environment) const {
  Writers writers;
  const PlanFile file = read_tree(environment, writers);
  WrittenPlan written{.tree = file.tree, .lines = ""};
  if (!file.imported) {
    refuse_ignored();
    return written;
  }
  written.lines = import_lines(*file.imported);
  Json tree = file.tree.json();
  stage_flags(file).overlay(tree);
  if (file.imported->derive_keys) file.imported->derive_keys(tree, context(environment));
  written.tree = tree;
  try {
    check_complete(*file.imported, tree, context(environment).world_size.has_value());
  } catch (const UserError& error) {
    const Problem& problem = error.problems().front();
    written.lines += fmt::format("note: {}: {}; {}\n", problem.what, problem.where, problem.help);
  }
  return written;
}

PlanInput PlanOptions::said(const Environment& environment, Writers& writers) const {
  PlanInput input;
  input.spec.context = context(environment);
  input.world_size_origin =
      input.spec.context.world_size ? input.spec.context.world_size_origin : "the plan";
  const PlanFile file = read_tree(environment, writers);
  input.spec.tree = file.tree;
  if (file.imported) {
    input.import_lines = import_lines(*file.imported);
    check_complete(*file.imported, file.tree.json(), input.spec.context.world_size.has_value());
  } else {
    refuse_ignored();
  }
  const PipelineLayers layers = stage_flags(file);
  const auto derive = file.imported ? file.imported->derive_keys : nullptr;
  if (!layers.any_given() && !derive) return input;
  input.spec.derive_keys = [layers, derive, context = input.spec.context](Json& tree) {
    layers.overlay(tree);
    if (derive) derive(tree, context);
  };
  return input;
}

namespace {

/// Replaces words that stand for numbers.
void read_words(PlanInput& input) {
  Json tree = input.spec.tree.json();
  read_byte_sizes(tree, input.spec.context.origin);
  input.import_lines += read_token_rule(tree, input.spec.context.origin);
  input.spec.tree = std::move(tree);
}

}  // namespace

PlanInput PlanOptions::said(const Environment& environment) const {
  Writers writers;
  PlanInput input = said(environment, writers);
  with_names(input, writers, [&] {
    read_words(input);
    estimator::check_readable(input.spec.tree.json(), input.spec.context);
  });
  return input;
}

PlanInput PlanOptions::resolve(const Environment& environment) const {
  Writers writers;
  PlanInput input = said(environment, writers);
  with_names(input, writers, [&] {
    read_words(input);
    input.plan = estimator::resolve_plan(input.spec);
  });
  if (is_given(find_in_tree(input.spec.tree.json(), kAllocatorPath))) {
    const auto writer = writers.find(kAllocatorPath);
    input.allocator_origin = writer == writers.end() ? "the plan" : writer->second;
  }
  return input;
}

}  // namespace sim
