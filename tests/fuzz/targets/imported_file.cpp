// Files of other programs, told by their content: scripts, YAML, JSON, TOML.
#include "sim/cli/import/import_verdict.h"
#include "sim/cli/input/plan_file.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/input_file.h"
#include "tests/fuzz/plan_uses.h"

namespace {

void use_import(const sim::ImportedPlan& plan) {
  std::vector<std::string> ignored;
  for (const sim::UsedTechnique& used : plan.techniques) ignored.push_back(used.technique->name);
  for (const sim::SourceEntry& entry : plan.unknown) ignored.push_back(entry.key);
  for (const std::string& line : sim::accept(plan, ignored)) fuzz::expect_printable(line, "a line");
  fuzz::expect_printable(sim::import_summary(plan, true), "the summary");
  estimator::Json tree = plan.tree.json();
  tree["cluster"]["gpu"] = "h100-sxm";
  if (!tree["cluster"].contains("nodes")) tree["cluster"]["nodes"] = 1;
  if (!tree.contains("model")) tree["model"] = "gpt2";
  if (tree["model"].is_object() && !tree["model"].contains("vocab_size")) {
    tree["model"]["vocab_size"] = 1024;
  }
  sim::check_complete(plan, tree, false);
  fuzz::use_plan(tree);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string& path = fuzz::in_file(data, size, "");
  return fuzz::read_and_use([&] {
    const sim::PlanFile file = sim::read_plan_or_other_file(path);
    if (!file.imported) throw fuzz::Refused();
    use_import(*file.imported);
  });
}
