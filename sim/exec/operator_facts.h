// What following a program takes to know of an operator, found out once for each: programs call the
// same few hundred operators over and over.
#pragma once

#include <ATen/record_function.h>

#include "sim/exec/assumptions.h"
#include "sim/exec/host_values.h"
#include "sim/exec/written_memory.h"

namespace sim {

struct OperatorFacts {
  /// Else it is a range that was named for profilers: of autograd's engine, of a function in
  /// Python.
  bool is_operator = false;
  OperatorWrites writes;
  HostTreatment on_host;
  const AssumptionRule* assumption = nullptr;
  bool reads_back = false;          ///< see count_reads.h
  bool is_copy = false;             ///< the same
  bool is_sized_by_values = false;  ///< the same
  bool has_cudnn = false;           ///< see without_cudnn.h
  bool gathers_parameters = false;  ///< fully_shard's copy of what an all-gather brought
};

/// Valid until the thread ends.
const OperatorFacts& facts_of(const at::RecordFunction& function);

}  // namespace sim
