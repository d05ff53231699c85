#include "estimator/cluster/program_time.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "estimator/base/fields.h"
#include "estimator/cluster/program_estimate.h"
#include "tests/estimator/replay/traced_rank.h"

namespace estimator {
namespace {

using testing::DoubleNear;
using testing::HasSubstr;

/// A product beside a collective that takes longer, an addition that waits for both, and a kernel
/// of an extension.
RankProfile small_program() {
  TracedRank rank(0, 8);
  const int64_t data = rank.communicator("dp", 8);
  Trace& trace = *rank.profile.trace;
  rank.compute(0, 0);
  trace.works.back() = {.kind = WorkKind::kProduct,
                        .name = "cublas",
                        .dtype = "BFloat16",
                        .result_dtype = "BFloat16",
                        .shapes = {{1, 4096, 4096, 4096}},
                        .flops = 2.0 * 4096 * 4096 * 4096};
  rank.collective(1, data, 0);
  trace.works.back().dtype = "BFloat16";
  trace.works.back().bytes = 1 << 28;
  const int64_t reduced = rank.record(1);
  rank.wait(0, reduced);
  rank.compute(0, 0);
  trace.works.back() = {.name = "add<float>",
                        .operator_name = "aten::add",
                        .bytes = 1 << 28,
                        .bytes_source = BytesSource::kOperator};
  rank.compute(0, 0);
  trace.works.back() = {.name = "own_kernel", .bytes_source = BytesSource::kNothing};
  const int64_t done = rank.record(0);
  rank.wait(1, done);
  rank.profile.device.gpu = "h100-sxm";
  return rank.profile;
}

class ProgramTimeTest : public testing::Test {
 protected:
  const Gpu& gpu_ = *find_gpu("h100-sxm");
  const Fabric fabric_ = fabric_of(h100_cluster(1));
};

TEST_F(ProgramTimeTest, IsTheSumOfItsParts) {
  const ProgramTime time = program_time({small_program()}, gpu_, fabric_);
  ASSERT_EQ(time.ranks.size(), 1u);
  const RankTime& rank = time.ranks[0];
  EXPECT_THAT(rank.computation_seconds + rank.exposed_communication_seconds + rank.idle_seconds,
              DoubleNear(time.iteration_seconds, 1e-12));
  EXPECT_GT(rank.exposed_communication_seconds, 0);
  EXPECT_EQ(time.flops, 2.0 * 4096 * 4096 * 4096);
  EXPECT_DOUBLE_EQ(time.hfu, time.flops / time.iteration_seconds / 989.4e12);
  ASSERT_EQ(rank.terms.size(), 3u);
  EXPECT_EQ(rank.terms[0].name, "matrix products");
  EXPECT_EQ(rank.terms[1].launches, 2);
  EXPECT_EQ(rank.terms[2].name, "communication");
}

TEST_F(ProgramTimeTest, ListsWhatIsNotPriced) {
  const ProgramTime time = program_time({small_program()}, gpu_, fabric_);
  ASSERT_EQ(time.not_priced.size(), 1u);
  EXPECT_EQ(time.not_priced[0].name, "own_kernel");
  EXPECT_TRUE(time.priced_by_memory.empty());
}

TEST_F(ProgramTimeTest, AsATraceHasASliceForEachWork) {
  const Json trace = Json::parse(program_chrome_trace({small_program()}, gpu_, fabric_));
  std::vector<std::string> names;
  for (const Json& event : trace.at("traceEvents")) {
    if (event.at("ph") == "X") names.push_back(event.at("name"));
    if (event.at("ph") == "M" && event.at("name") == "thread_name" && event.at("tid") == 1) {
      EXPECT_EQ(event.at("args").at("name"), "stream 1 (NCCL)");
    }
  }
  EXPECT_THAT(
      names,
      testing::ElementsAre("product 4096 x 4096 x 4096", "all_reduce", "aten::add", "own_kernel"));
  const auto add = std::find_if(trace.at("traceEvents").begin(),
                                trace.at("traceEvents").end(),
                                [](const Json& event) { return event.at("name") == "aten::add"; });
  EXPECT_EQ(add->at("args").at("kernel"), "add<float>");
  EXPECT_EQ(add->at("args").at("module"), "model");
  EXPECT_EQ(add->at("args").at("direction"), "forward");
}

TEST_F(ProgramTimeTest, OfAProfileWithoutATraceSaysWhatToDo) {
  RankProfile untraced = small_program();
  untraced.trace.reset();
  EXPECT_THAT(lacks_time({untraced}).value_or(""), HasSubstr("--steps 2"));
  EXPECT_FALSE(lacks_time({small_program()}).has_value());
}

}  // namespace
}  // namespace estimator
