#include "sim/verify/compare_runs.h"

#include <gtest/gtest.h>

namespace sim {
namespace {

using estimator::CollectiveKind;
using estimator::GroupKind;

estimator::PhaseCall call(CollectiveKind kind,
                          int64_t bytes,
                          std::vector<int64_t> members = {0, 1}) {
  return {.phase = "iteration_0.forward_backward",
          .made = {.call = {.kind = kind,
                            .group = GroupKind::kTensor,
                            .group_size = static_cast<int64_t>(members.size()),
                            .dtype = "Float",
                            .bytes = bytes},
                   .members = std::move(members)}};
}

std::vector<Difference> differences_of(const estimator::RunRecord& stub,
                                       const estimator::RunRecord& real) {
  DifferenceList list;
  compare_calls(3, stub, real, list);
  compare_phases(3, stub, real, list);
  EXPECT_EQ(list.count, static_cast<int64_t>(list.kept.size()));
  return list.kept;
}

const estimator::PhaseCall kReduce = call(CollectiveKind::kAllReduce, 4);
const estimator::PhaseCall kGather = call(CollectiveKind::kAllGather, 8);

TEST(CompareCalls, FindsNothingInEqualSequences) {
  EXPECT_TRUE(differences_of({.calls = {kReduce, kGather}}, {.calls = {kReduce, kGather}}).empty());
  EXPECT_TRUE(differences_of({}, {}).empty());
}

TEST(CompareCalls, NamesACallThatTheRealRankLeftOutAndNoneAfterIt) {
  const auto found =
      differences_of({.calls = {kReduce, kGather, kReduce}}, {.calls = {kReduce, kReduce}});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].rank, 3);
  EXPECT_EQ(found[0].where, "call 1");
  EXPECT_EQ(found[0].expected,
            "all_gather of 8 bytes of Float over the tensor group (ranks 0, 1) in "
            "iteration_0.forward_backward");
  EXPECT_EQ(found[0].found, "no call here");
}

TEST(CompareCalls, NamesEachOfSeveralPlaces) {
  const auto found = differences_of({.calls = {kReduce, kGather, kReduce, kGather, kReduce}},
                                    {.calls = {kReduce, kReduce, kReduce}});
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].where, "call 1");
  EXPECT_EQ(found[1].where, "call 3");
}

TEST(CompareCalls, NamesACallTooMany) {
  const auto found = differences_of({.calls = {kReduce}}, {.calls = {kReduce, kGather}});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].expected, "no call here");
}

TEST(CompareCalls, SetsACallBesideTheOneInItsPlace) {
  const auto other_size = differences_of({.calls = {kReduce, kGather}},
                                         {.calls = {call(CollectiveKind::kAllReduce, 2), kGather}});
  ASSERT_EQ(other_size.size(), 1u);
  EXPECT_NE(other_size[0].expected.find("4 bytes"), std::string::npos);
  EXPECT_NE(other_size[0].found.find("2 bytes"), std::string::npos);
  const auto other_members = differences_of(
      {.calls = {kReduce}}, {.calls = {call(CollectiveKind::kAllReduce, 4, {0, 2})}});
  ASSERT_EQ(other_members.size(), 1u);
  EXPECT_NE(other_members[0].found.find("(ranks 0, 2)"), std::string::npos);
}

TEST(CompareCalls, SeesAnotherOrder) {
  EXPECT_FALSE(
      differences_of({.calls = {kReduce, kGather}}, {.calls = {kGather, kReduce}}).empty());
}

TEST(ComparePhases, IsExactToTheByte) {
  const estimator::PhaseRecord phase{.name = "build_model",
                                     .before = {.allocated_bytes = 0},
                                     .after = {.allocated_bytes = 1024},
                                     .peak = {.allocated_bytes = 2048}};
  EXPECT_TRUE(differences_of({.phases = {phase}}, {.phases = {phase}}).empty());
  estimator::PhaseRecord other = phase;
  other.peak.allocated_bytes += 1;
  const auto found = differences_of({.phases = {phase}}, {.phases = {other}});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].where, "peak of build_model");
  EXPECT_EQ(found[0].expected, "2,048 bytes");
  EXPECT_EQ(found[0].found, "2,049 bytes");
}

TEST(DifferenceList, CountsAllAndKeepsTheFirst) {
  DifferenceList list;
  for (int i = 0; i < 60; ++i) list.add({.where = std::to_string(i)});
  EXPECT_EQ(list.count, 60);
  EXPECT_EQ(list.kept.size(), DifferenceList::kMostKept);
  EXPECT_EQ(list.kept.front().where, "0");
}

}  // namespace
}  // namespace sim
