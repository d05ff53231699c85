// The operators of PyTorch that run on this thread, as far as they tell what a value that nobody
// computed is read for, and who launched a kernel.
#pragma once

#include <ATen/record_function.h>

#include <string>

#include "sim/exec/values/operator_facts.h"
#include "sim/exec/values/written_memory.h"

namespace sim {

/// Of the calling thread. Operators are nested: the one that began last ends first.
class RunningOperators {
 public:
  static void began(const at::RecordFunction& function, const OperatorFacts& facts);
  static void ended();

  /// Whether a value that is read now decides how much work is done: several counts are copied to
  /// the host, or the size of a tensor follows from values on the device.
  static bool read_counts();
  /// What the last operator that may read counts reads them from, as text: "a Bool tensor [64, 8]".
  static const std::string& counted_tensor();
  /// Name of the outermost one; empty if none runs.
  static std::string outermost();
  /// What this rank gives to the gather at one rank that runs; its address is null if none does.
  static MemoryRange given_to_root();
  /// Whether what runs are PyTorch's own kernels: what they write follows from their operator.
  static bool own_kernels_run();
};

/// What this thread does between these two is the recorder's own work: its operators are none of
/// the program's.
void own_work_starts();
void own_work_ends();
bool is_own_work();

}  // namespace sim
