#include "sim/exec/trace/launched_kernels.h"

#include <map>
#include <string>

#include "sim/tracking/operator_call.h"
#include "sim/virtual_gpu/demangled.h"

namespace sim {

std::vector<estimator::KernelRecord> kernel_records(const VirtualGpu& gpu) {
  std::map<std::string, int64_t> launches;
  gpu.visit_kernels(
      [](const char* name, uint64_t count, void* context) {
        (*static_cast<std::map<std::string, int64_t>*>(context))[virtual_gpu::demangled(name)] +=
            static_cast<int64_t>(count);
      },
      &launches);
  std::vector<estimator::KernelRecord> records;
  records.reserve(launches.size());
  for (const auto& [name, count] : launches) records.push_back({name, count});
  return records;
}

std::vector<estimator::GemmRecord> gemm_records(const VirtualGpu& gpu) {
  std::vector<estimator::GemmRecord> records;
  gpu.visit_gemms(
      [](const onerank_virtual_gpu_gemm* gemm, void* context) {
        static_cast<std::vector<estimator::GemmRecord>*>(context)->push_back(
            {gemm->m, gemm->n, gemm->k, gemm->batch, static_cast<int64_t>(gemm->count)});
      },
      &records);
  return records;
}

std::vector<estimator::OperatorRecord> counted_operators(const TrackedRun& tracker,
                                                         const std::vector<std::string>& phases) {
  std::vector<estimator::OperatorRecord> records;
  for (const auto& entry : tracker.operators().entries()) {
    const std::string& phase = phases.at(entry.item->phase);
    records.push_back(operator_record(*entry.item, phase.substr(phase.find('.') + 1), entry.count));
  }
  return records;
}

}  // namespace sim
