#include "sim/exec/values/running_operators.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "sim/exec/values/count_reads.h"

namespace sim {
namespace {

struct RunningOperator {
  const char* name;
  bool is_sized_by_values;
  bool is_of_extension;
};

/// Of one thread.
struct Running {
  std::vector<RunningOperator> operators;  // outermost first
  bool copies_counts = false;              // the innermost of them
  std::string counted_tensor;
  MemoryRange given_to_root = {};
};

thread_local Running on_this_thread;
/// This thread does the recorder's own work.
thread_local bool works_for_itself = false;

/// c10d::gather_(Tensor[][] outputs, Tensor[] inputs, ...)
MemoryRange given_to(const at::RecordFunction& gather) {
  MemoryRange given = {};
  for_each_tensor(gather.inputs()[1], [&](const at::Tensor& own) { given = memory_of(own); });
  return given;
}

/// Whether host code of an extension's operator runs.
bool sizes_results() {
  return std::any_of(on_this_thread.operators.begin(),
                     on_this_thread.operators.end(),
                     [](const RunningOperator& op) { return op.is_of_extension; });
}

}  // namespace

void RunningOperators::began(const at::RecordFunction& function, const OperatorFacts& facts) {
  on_this_thread.copies_counts = (facts.is_copy && reads_counts(function)) ||
                                 (facts.reads_number && sizes_results() && reads_count(function));
  on_this_thread.operators.push_back(
      {function.name(), facts.is_sized_by_values, facts.is_of_extension});
  if (on_this_thread.copies_counts || facts.is_sized_by_values) {
    on_this_thread.counted_tensor = counted_tensor_text(function);
  }
  if (facts.gathers_at_root) on_this_thread.given_to_root = given_to(function);
}

void RunningOperators::ended() {
  if (!on_this_thread.operators.empty()) on_this_thread.operators.pop_back();
  on_this_thread.copies_counts = false;
  if (on_this_thread.operators.empty()) on_this_thread.given_to_root = {};
}

bool RunningOperators::read_counts() {
  return on_this_thread.copies_counts ||
         std::any_of(on_this_thread.operators.begin(),
                     on_this_thread.operators.end(),
                     [](const RunningOperator& op) { return op.is_sized_by_values; });
}

const std::string& RunningOperators::counted_tensor() { return on_this_thread.counted_tensor; }

MemoryRange RunningOperators::given_to_root() { return on_this_thread.given_to_root; }

std::string RunningOperators::outermost() {
  return on_this_thread.operators.empty() ? "" : on_this_thread.operators.front().name;
}

bool RunningOperators::own_kernels_run() {
  return !on_this_thread.operators.empty() &&
         std::string_view(on_this_thread.operators.back().name).starts_with("aten::");
}

void own_work_starts() { works_for_itself = true; }

void own_work_ends() { works_for_itself = false; }

bool is_own_work() { return works_for_itself; }

}  // namespace sim
