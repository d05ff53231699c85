#include "sim/exec/values/operator_facts.h"

#include <string_view>
#include <unordered_map>

#include "sim/exec/values/count_reads.h"
#include "sim/exec/values/drawn_integers.h"
#include "sim/tracking/operator_key.h"

namespace sim {
namespace {

bool may_read_messages(std::string_view name) {
  return !name.starts_with("c10d::") && !name.starts_with("aten::empty") &&
         name != "record_param_comms" && name != "aten::record_stream";
}

OperatorFacts new_facts(const at::RecordFunction& function) {
  const std::string_view name = function.name();
  const auto op = function.operator_name();
  const HostTreatment on_host = host_treatment_of(function);
  return {.is_operator = op.has_value(),
          .traits = op ? std::optional(traits_of(*op, c10::DeviceType::CUDA)) : std::nullopt,
          .writes = writes_of(function),
          .on_host = on_host,
          .assumption = assumption_rule_of(function),
          .reads_back = op && (reads_back(*op) || (on_host.op && on_host.is_of_extension)),
          .is_copy = is_copy(name),
          .is_of_extension = op && is_of_extension(*op),
          .reads_number = reads_number(name),
          .is_sized_by_values = is_sized_by_values(name),
          .joins_tensors = name == "aten::cat",
          .draws_integers = draws_integers(name),
          .may_read_messages = may_read_messages(name),
          .gathers_at_root = name == "c10d::gather_",
          .gathers_parameters = name == "fsdp::split_with_sizes_copy"};
}

}  // namespace

const OperatorFacts& facts_of(const at::RecordFunction& function) {
  thread_local std::unordered_map<const char*, OperatorFacts> known;
  const char* const key = operator_key(function);
  const auto found = known.find(key);
  return found != known.end() ? found->second
                              : known.emplace(key, new_facts(function)).first->second;
}

}  // namespace sim
