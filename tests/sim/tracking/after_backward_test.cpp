#include "sim/tracking/after_backward.h"

#include <gtest/gtest.h>

namespace sim {
namespace {

TEST(AfterBackward, IsWhereANodeWasTheLastThatRan) {
  AfterBackward part;
  part.operator_starts(5);
  EXPECT_FALSE(part.is_here(5));
  part.node_ran();
  EXPECT_TRUE(part.is_here(5)) << "no operator has started since";
  EXPECT_TRUE(part.is_here());
  part.operator_starts(5);
  part.operator_starts(5);
  EXPECT_TRUE(part.is_here(5));
  part.forward_begins();
  EXPECT_FALSE(part.is_here(5));
  EXPECT_FALSE(part.is_here());
}

TEST(AfterBackward, EndsWithANode) {
  AfterBackward part;
  part.node_ran();
  part.operator_starts(5);
  EXPECT_FALSE(part.is_here(6)) << "the operator that has started makes one";
  part.operator_starts(6);
  EXPECT_FALSE(part.is_here());
  part.operator_starts(5);
  EXPECT_FALSE(part.is_here(5)) << "the backward is over";
}

TEST(AfterBackward, CountsTheNodesFromEachBackward) {
  AfterBackward part;
  part.node_ran();
  part.operator_starts(5);
  part.node_ran();
  part.operator_starts(9);
  EXPECT_TRUE(part.is_here(9));
}

}  // namespace
}  // namespace sim
