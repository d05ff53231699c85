#include "sim/cli/values/byte_sizes.h"

#include <gmock/gmock.h>

#include "estimator/base/errors.h"
#include "estimator/base/fields.h"

namespace sim {
namespace {

using estimator::Json;
using testing::AllOf;
using testing::HasSubstr;

TEST(ByteSizes, AreReadWithTheirUnits) {
  EXPECT_EQ(parse_bytes("512"), 512);
  EXPECT_EQ(parse_bytes("64K"), 65'536);
  EXPECT_EQ(parse_bytes("10GiB"), 10'737'418'240);
  EXPECT_EQ(parse_bytes("1.5 GB"), 1'500'000'000);
  EXPECT_EQ(parse_bytes("0.5m"), 524'288);
  EXPECT_EQ(parse_bytes("20.9GiB"), 22'441'204'122);  // 22,441,204,121.6
  EXPECT_EQ(parse_bytes("2 tib"), 2'199'023'255'552);
}

TEST(ByteSizes, ThatAreNoneAreNothing) {
  for (const char* text :
       {"", "GiB", "10 GiBs", "10Gi", "-1G", "0.3", "inf", "nan", "10 X", "1e99"}) {
    EXPECT_FALSE(parse_bytes(text)) << text;
  }
}

TEST(ByteSizes, OfAPlanBecomeBytes) {
  Json plan = {{"name", "10GiB"}, {"memory", {{"headroom_bytes", "10GiB"}, {"allocator", "1G"}}}};
  read_byte_sizes(plan, "plan.yaml");
  EXPECT_EQ(plan["memory"]["headroom_bytes"], 10'737'418'240);
  EXPECT_EQ(plan["memory"]["allocator"], "1G") << "a key that counts no bytes";
  EXPECT_EQ(plan["name"], "10GiB");
}

TEST(ByteSizes, OfAPlanThatAreNoneAreNamed) {
  Json plan = {{"memory", {{"headroom_bytes", "some"}}}};
  try {
    read_byte_sizes(plan, "plan.yaml");
    FAIL() << "it was taken";
  } catch (const estimator::UserError& error) {
    EXPECT_THAT(error.what(),
                AllOf(HasSubstr("a size is needed here\n  plan.yaml: memory.headroom_bytes = "
                                "\"some\"\n  help: write bytes, or a number with K, M, G or T"),
                      HasSubstr("10GiB")));
  }
}

}  // namespace
}  // namespace sim
