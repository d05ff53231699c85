#include "sim/cli/import/import_verdict.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "estimator/base/contains.h"
#include "estimator/base/errors.h"
#include "estimator/base/text.h"
#include "estimator/resolve/given_sizes.h"
#include "estimator/resolve/plan_tree.h"
#include "sim/cli/values/plan_flag_table.h"

namespace sim {
namespace {

using estimator::contains;
using estimator::Json;
using estimator::Problem;
using estimator::UserError;

/// "train.sh:12: fp8-format hybrid, fp8-recipe delayed"; each place once.
std::string uses_text(const UsedTechnique& used) {
  std::string text;
  std::string place;
  for (const SourceEntry& use : used.uses) {
    if (!text.empty()) text += place == use.place ? ", " : "; ";
    text += place == use.place ? use.written() : use.with_place();
    place = use.place;
  }
  return text;
}

/// Something of the file that the plan has not: a problem, unless it is ignored by its name.
struct LeftOut {
  std::string name;
  std::string line;  ///< of the report, where it is ignored
  Problem problem;
};

LeftOut left_out(const UsedTechnique& used) {
  const Technique& technique = *used.technique;
  const std::string uses = uses_text(used);
  return {.name = technique.name,
          .line = fmt::format("{} ({}); the real run: {}", technique.what, uses, technique.errs),
          .problem = {.what = fmt::format("not modelled: {} ({})", technique.what, technique.name),
                      .where = uses,
                      .help = fmt::format("--ignore {} estimates without it; the real run: {}",
                                          technique.name,
                                          technique.errs)}};
}

LeftOut unknown_key(const SourceEntry& entry, const std::string& program) {
  return {.name = entry.key,
          .line = entry.with_place() + "; what it does is not known",
          .problem = {.what = fmt::format("{} has no such key that Onerank knows", program),
                      .where = entry.with_place(),
                      .help = fmt::format("--ignore {} estimates without it", entry.key)}};
}

LeftOut open_word(const SourceEntry& word) {
  return {
      .name = word.key,
      .line = fmt::format("{}: the arguments that {} may hold", word.place, word.key),
      .problem = {
          .what = fmt::format("{} may hold arguments, and nobody knows which", word.key),
          .where = word.place,
          .help = fmt::format("--script-arguments \"...\" gives what the script is started with; "
                              "else write the arguments into it, or --ignore '{}'",
                              word.key)}};
}

std::vector<LeftOut> all_left_out(const ImportedPlan& plan) {
  std::vector<LeftOut> all;
  for (const UsedTechnique& used : plan.techniques) all.push_back(left_out(used));
  for (const SourceEntry& entry : plan.unknown) all.push_back(unknown_key(entry, plan.program));
  for (const SourceEntry& word : plan.open) all.push_back(open_word(word));
  return all;
}

void list_keys(const char* title, const std::vector<SourceEntry>& entries, std::string& text) {
  if (!entries.empty()) text += fmt::format("  {}:\n", title);
  for (const SourceEntry& entry : entries) text += fmt::format("    {}\n", entry.with_place());
}

}  // namespace

std::vector<std::string> accept(const ImportedPlan& plan, const std::vector<std::string>& ignored) {
  std::vector<Problem> problems;
  std::vector<std::string> lines = plan.notes;
  std::set<std::string> known;
  for (LeftOut& left : all_left_out(plan)) {
    if (contains(ignored, left.name)) {
      lines.push_back("left out: " + left.line);
    } else {
      problems.push_back(std::move(left.problem));
    }
    known.insert(std::move(left.name));
  }
  for (const std::string& name : ignored) {
    if (known.contains(name)) continue;
    problems.push_back({.what = "the file has nothing of this name to ignore",
                        .where = "--ignore " + name,
                        .help = known.empty() ? "leave it out"
                                              : fmt::format("it has {}", fmt::join(known, ", "))});
  }
  if (!problems.empty()) throw UserError(std::move(problems));
  for (std::string& line : lines) line = estimator::printable(line);
  return lines;
}

void check_complete(const ImportedPlan& plan, const Json& tree, bool has_world) {
  std::vector<std::string> lacks;
  std::vector<std::string> flags;
  const auto need = [&](const std::string& path, const char* what, const std::string& flag) {
    const Json value = estimator::find_in_tree(tree, path);
    if (!value.is_null() && value != "auto" && value != "") return;
    lacks.emplace_back(what);
    flags.push_back(flag);
  };
  const Json model = estimator::find_in_tree(tree, "model");
  const bool is_named = model.is_string() || (model.is_object() && model.contains("preset"));
  if (model.is_null()) {
    const std::string named = fmt::format(
        "the shape of the model {} (a model of `onerank list models`, or a config.json)",
        plan.model_name);
    need("model", plan.model_name.empty() ? "the model" : named.c_str(), "--model llama3-8b");
  } else if (!is_named) {
    for (const estimator::GivenSize& size : estimator::kGivenSizes) {
      const std::string path = fmt::format("model.{}", size.key);
      need(path, size.what, estimator::first_flag_of(path) + " " + size.example);
    }
  }
  need("cluster.gpu", "the GPU", "--gpu h100-sxm");
  if (!has_world) need("cluster.nodes", "the number of machines", "--nodes 4");
  for (const UnsetKey& key : plan.unset) {
    const auto* option = estimator::find_plan_option(key.path);
    const bool is_asked = option != nullptr && option->changes_ranks && !option->flags.empty() &&
                          key.path != "training.seed";
    if (!is_asked || contains(lacks, key.entry.with_place())) continue;
    const std::string flag = option->flags.front().names.back() + " N";
    const bool is_new = std::none_of(flags.begin(), flags.end(), [&](const std::string& asked) {
      return asked.starts_with(flag.substr(0, flag.size() - 1));
    });
    if (estimator::find_in_tree(tree, key.path).is_null() && is_new) {
      lacks.push_back(key.entry.with_place());
      flags.push_back(flag);
    }
  }
  if (lacks.empty()) return;
  throw UserError({.what = plan.origin + " does not say all that an estimate needs",
                   .where = fmt::format("it lacks {}", fmt::join(lacks, ", ")),
                   .help = fmt::format("give {}", fmt::join(flags, " "))});
}

std::string import_summary(const ImportedPlan& plan, bool verbose) {
  std::string text = fmt::format("{} of {}: {} keys modelled, {} without effect\n",
                                 plan.origin,
                                 plan.program,
                                 plan.modelled.size(),
                                 plan.without_effect.size());
  if (!verbose) return estimator::printable(text);
  list_keys("modelled", plan.modelled, text);
  list_keys("without effect on memory and time", plan.without_effect, text);
  std::vector<SourceEntry> unset;
  for (const UnsetKey& key : plan.unset) unset.push_back(key.entry);
  list_keys("not set in the file", unset, text);
  return estimator::printable(text);
}

}  // namespace sim
