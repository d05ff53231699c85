// `onerank verify`, run as a user runs it, with real rank processes.
#pragma once

#include "sim/verify/verification.h"
#include "tests/sim/cli/onerank_program.h"

namespace sim {

class VerifyProgram : public OnerankProgram {
 protected:
  VerifyProgram();

  /// A GPT of 4 layers, hidden 32, 4 heads, vocabulary 64, sequence 16, fp32, AdamW, tied, on
  /// `ranks` ranks, 8 samples a step; `changes` is merged in. Returns the path of the plan's file.
  std::string write_plan(int64_t ranks, const estimator::Json& changes = {}) const;

  /// What `onerank verify PLAN --json` prints; fails the test unless it ends with `exit_code`.
  Verification verify(const std::string& plan, int exit_code);

  /// Whether a process is left that works in the test's folder.
  bool has_processes() const;
};

/// The same model as a Llama: RMSNorm, SwiGLU, rotary, 4 query groups, no biases, untied.
estimator::Json llama_changes();

}  // namespace sim
