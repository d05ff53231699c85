// Programs whose ranks share memory (PyTorch's symmetric memory) run as any rank of a machine.

#include <map>
#include <string>

#include "estimator/base/fields.h"
#include "tests/sim/exec/exec_program.h"

namespace sim {
namespace {

using estimator::TraceWork;
using estimator::WorkKind;
using testing::HasSubstr;

constexpr int64_t kMib = 1 << 20;

class ExecSharedMemory : public ExecProgram, public testing::WithParamInterface<const char*> {
 protected:
  /// The work with this name; each has one.
  TraceWork work_named(const std::string& part) const {
    for (const TraceWork& work : trace_.works) {
      if (work.name.find(part) != std::string::npos) return work;
    }
    ADD_FAILURE() << "no work named " << part;
    return {};
  }
  /// What `symm_mem::one_shot_all_reduce` and the like move over the link.
  std::map<std::string, int64_t> peer_bytes_of_operators() const {
    std::map<std::string, int64_t> bytes;
    for (const TraceWork& work : trace_.works) {
      if (work.peer_bytes > 0) bytes[work.operator_name] += work.peer_bytes;
    }
    return bytes;
  }
  estimator::Trace trace_;
};

// 32 Mi elements of bf16, and 2 KiB of signals before or behind them: 66 MiB. PyTorch's allocator
// has the two lists of addresses, 512 bytes each.
TEST_P(ExecSharedMemory, RunsAndCountsWhatIsOnesOwn) {
  const std::string rank = GetParam();
  const ProgramResult result =
      run_program("shares_memory.py", {"--world-size", "8", "--rank", rank});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.output, HasSubstr("nvshmem False"));
  EXPECT_THAT(result.output, HasSubstr("took 68 MiB, 1024 bytes of PyTorch's"))
      << "2 MiB are PyTorch's segment";
  EXPECT_THAT(result.output, HasSubstr("rank " + rank + " of 8, multicast True"));
  EXPECT_THAT(result.output, HasSubstr("to and from memory of other ranks that is mapped"));
  // The workspace of the fused operators takes its own segments.
  EXPECT_GE(profile(std::stoll(rank)).program->other_libraries_bytes, 66 * kMib);
}

TEST_P(ExecSharedMemory, PricesWhatPassesTheLink) {
  const std::string rank = GetParam();
  ASSERT_EQ(run_program("shares_memory.py", {"--world-size", "8", "--rank", rank}).exit_code, 0);
  trace_ = profile(std::stoll(rank)).trace.value();
  EXPECT_EQ(work_named("barrier_kernel").kind, WorkKind::kSignal);
  EXPECT_EQ(work_named("put_signal_kernel").kind, WorkKind::kSignal);
  EXPECT_EQ(work_named("wait_signal_kernel").kind, WorkKind::kSignal);
  EXPECT_EQ(work_named(estimator::kPeerToPeer).kind, WorkKind::kCopy);
  const auto bytes = peer_bytes_of_operators();
  const int64_t tensor = 64 * kMib;
  EXPECT_EQ(bytes.at("symm_mem::one_shot_all_reduce"), 7 * tensor);
  EXPECT_EQ(bytes.at("symm_mem::two_shot_all_reduce_"), 2 * tensor / 8 * 7);
  EXPECT_EQ(bytes.at("symm_mem::multimem_all_reduce_"), tensor + tensor / 8);
  EXPECT_EQ(bytes.count("symm_mem::fused_all_gather_matmul"), 0u)
      << "its copies and signals move nothing else";
}

INSTANTIATE_TEST_SUITE_P(OfAMachine, ExecSharedMemory, testing::Values("0", "3"));

}  // namespace
}  // namespace sim
