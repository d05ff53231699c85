#include "tests/sim/verify/ranks/verify_program.h"

#include <fstream>
#include <iterator>

#include "estimator/base/fields.h"
#include "estimator/base/files.h"
#include "sim/cli/process/environment.h"

namespace sim {

namespace fs = std::filesystem;
using estimator::Json;

VerifyProgram::VerifyProgram() {
  environment_.erase(kRankProcessVariable);
  for (const char* variable : {kMasterAddressVariable,
                               kMasterPortVariable,
                               "SLURM_STEP_NUM_TASKS",
                               "TORCHELASTIC_RUN_ID"}) {
    environment_.erase(variable);
  }
}

std::string VerifyProgram::write_plan(int64_t ranks, const Json& changes) const {
  Json tree = Json::parse(R"({
    "model": {"num_layers": 4, "hidden_size": 32, "num_attention_heads": 4, "vocab_size": 64,
              "max_position_embeddings": 16, "hidden_dropout": 0, "attention_dropout": 0,
              "tie_embeddings": true},
    "cluster": {"gpu": "a100", "nodes": 1},
    "training": {"micro_batch_size": 1, "global_batch_size": 8, "sequence_length": 16,
                 "dtype": "fp32", "attention": "unfused", "make_vocab_size_divisible_by": 1}})");
  tree["cluster"]["gpus_per_node"] = ranks;
  tree.merge_patch(changes.is_null() ? Json::object() : changes);
  return write("plan.json", tree.dump());
}

Verification VerifyProgram::verify(const std::string& plan, int exit_code) {
  const ProgramResult result = run({"verify", plan, "--json", "--timeout", "60"});
  EXPECT_EQ(result.exit_code, exit_code) << result.error << result.output;
  EXPECT_TRUE(temporary_files().empty());
  Verification verification;
  if (result.output.empty()) return verification;
  estimator::FieldReader reader("standard output");
  reader.read(estimator::parse_json(result.output, "standard output"), verification, "");
  reader.throw_if_any();
  return verification;
}

bool VerifyProgram::has_processes() const {
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc")) {
    std::ifstream file(entry.path() / "cmdline", std::ios::binary);
    const std::string command((std::istreambuf_iterator<char>(file)), {});
    if (command.find(path("tmp")) != std::string::npos) return true;
  }
  return false;
}

Json llama_changes() {
  return Json::parse(R"({"model": {"num_query_groups": 4, "ffn_hidden_size": 48,
    "normalization": "RMSNorm", "activation": "swiglu", "position_embedding": "rope",
    "add_bias_linear": false, "tie_embeddings": false}})");
}

}  // namespace sim
