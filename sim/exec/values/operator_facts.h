// What must be known of an operator in order to follow a program. It is found out once for each
// operator, since programs call the same few hundred operators over and over.
#pragma once

#include <ATen/record_function.h>

#include <optional>

#include "sim/exec/values/assumptions.h"
#include "sim/exec/values/host_values.h"
#include "sim/exec/values/written_memory.h"
#include "sim/tracking/operator_traits.h"

namespace sim {

struct OperatorFacts {
  /// False for a range that was named for profilers, by autograd's engine or by a function in
  /// Python.
  bool is_operator = false;
  std::optional<OperatorTraits> traits;  ///< of an operator
  OperatorWrites writes;
  HostTreatment on_host;
  const AssumptionRule* assumption = nullptr;
  bool reads_back = false;          ///< see count_reads.h
  bool is_copy = false;             ///< see count_reads.h
  bool is_of_extension = false;     ///< see count_reads.h
  bool reads_number = false;        ///< see count_reads.h
  bool is_sized_by_values = false;  ///< see count_reads.h
  bool joins_tensors = false;       ///< see joined_tensors.h
  bool draws_integers = false;      ///< see drawn_integers.h
  /// It may read what a message brought. False for calls of process groups, and where memory is
  /// made for messages.
  bool may_read_messages = false;
  bool gathers_at_root = false;     ///< a gather of c10d, which is made of messages
  bool gathers_parameters = false;  ///< fully_shard's copy out of an all-gather's result
};

/// Valid until the thread ends.
const OperatorFacts& facts_of(const at::RecordFunction& function);

}  // namespace sim
