// Of which programs something can be said.

#include <gmock/gmock.h>

#include "estimator/base/fields.h"
#include "estimator/base/units.h"
#include "estimator/program/program_estimate.h"

namespace estimator {
namespace {

using testing::HasSubstr;

RankProfile trained() {
  RankProfile profile;
  profile.device = {.gpu = "h100-sxm",
                    .name = "NVIDIA H100 80GB HBM3",
                    .total_bytes = find_gpu("h100-sxm")->memory_bytes};
  profile.plan = Json::object();
  profile.peak = {.allocated_bytes = 70 * kGiB, .reserved_bytes = 72 * kGiB};
  profile.program = ProgramRecord{
      .command = {"python", "train.py"}, .backward_devices = {0}, .optimizer_steps = 2};
  return profile;
}

std::string why(const RankProfile& profile) {
  const auto problem = lacks_verdict(profile);
  return problem ? problem->what : "";
}

TEST(ProgramVerdict, IsGivenOnWhatTrained) {
  EXPECT_EQ(why(trained()), "");
  EXPECT_EQ(ran_out(trained()), std::nullopt);
}

TEST(ProgramVerdict, IsNotGivenWithoutAStepOrMemoryOrRecording) {
  RankProfile profile = trained();
  profile.program->optimizer_steps = 0;
  EXPECT_EQ(why(profile), "no verdict on rank 0: no optimizer step was seen");
  profile = trained();
  profile.peak = {};
  EXPECT_THAT(why(profile), HasSubstr("it allocated nothing"));
  profile.program->recorded = false;
  EXPECT_THAT(why(profile), HasSubstr("nothing was recorded"));
  EXPECT_THROW(estimate_program({profile}), UserError);
}

// A model that was left on the CPU, with a tensor on the GPU; inference beside an optimizer.
TEST(ProgramVerdict, IsNotGivenWhereNoBackwardRanOnTheDevice) {
  RankProfile profile = trained();
  profile.program->backward_devices = {};
  EXPECT_EQ(why(profile), "no verdict on rank 0: no backward ran on cuda:0");
  profile.program->backward_devices = {1};
  EXPECT_THAT(why(profile), HasSubstr("no backward ran on cuda:0"));
}

TEST(ProgramVerdict, OfWhatNeededMoreThanThereIsNeedsNoStep) {
  RankProfile profile = trained();
  profile.program->optimizer_steps = 0;
  profile.limit_lifted = true;
  profile.peak.reserved_bytes = 100 * kGiB;
  EXPECT_EQ(why(profile), "");
}

TEST(ProgramVerdict, IsNotGivenWhereMostWasOnADeviceThatNobodyFollowed) {
  RankProfile profile = trained();
  profile.program->other_devices = {{.index = 3, .reserved_peak_bytes = 72 * kGiB}};
  EXPECT_EQ(why(profile), "");
  profile.program->other_devices = {{.index = 3, .reserved_peak_bytes = 73 * kGiB}};
  EXPECT_THAT(why(profile), HasSubstr("cuda:3 more (73.00 GiB)"));
}

TEST(ProgramVerdict, IsNotGivenOnAGpuOfWhichNothingIsKnown) {
  RankProfile profile = trained();
  profile.device.gpu = "";
  profile.device.name = "NVIDIA Z1";
  EXPECT_THAT(why(profile), HasSubstr("what NVIDIA Z1 holds outside PyTorch's allocator"));
}

TEST(ProgramVerdict, OfWhatRanOutOfMemoryNeedsNoStep) {
  RankProfile profile = trained();
  profile.program->optimizer_steps = 0;
  profile.out_of_memory = OutOfMemoryRecord{.phase = "build_model", .message = "why"};
  EXPECT_EQ(why(profile), "");
  EXPECT_EQ(ran_out(profile), "rank 0 ran out of 79.19 GiB in build_model: why");
  EXPECT_EQ(estimate_program({profile}).verdict.reason, ran_out(profile));
}

// 0.49 GiB of context and two cuBLAS workspaces of 32 MiB on an H100.
TEST(ProgramVerdict, CountsWhatTheVirtualGpuHasTakenFromTheStart) {
  const auto estimate = estimate_program({trained()});
  EXPECT_EQ(program_outside_bytes(*find_gpu("h100-sxm")), estimate.ranks[0].context_bytes);
  EXPECT_EQ(estimate.verdict.peak_bytes, 72 * kGiB + estimate.ranks[0].context_bytes);
}

TEST(ProgramVerdict, CountsWhatOtherLibrariesTookBesideTorch) {
  const int64_t without = estimate_program({trained()}).verdict.peak_bytes;
  RankProfile profile = trained();
  profile.program->other_libraries_bytes = 5 * kGiB;
  const auto estimate = estimate_program({profile});
  EXPECT_EQ(estimate.verdict.peak_bytes, without + 5 * kGiB);
  EXPECT_EQ(estimate.ranks[0].terms.at(3).name, "other libraries");
  profile.program->other_libraries_bytes = 7 * kGiB;
  EXPECT_EQ(estimate_program({profile}).verdict.outcome, Fit::kDoesNotFit);
}

}  // namespace
}  // namespace estimator
