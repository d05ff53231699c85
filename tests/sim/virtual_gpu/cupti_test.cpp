// CUPTI's activity interface, as kineto calls it.

#include <gmock/gmock.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "sim/virtual_gpu/cupti/activity_records.h"
#include "sim/virtual_gpu/cupti/cupti_control.h"

extern "C" {
int cuptiActivityRegisterCallbacks(void (*request)(uint8_t**, size_t*, size_t*),
                                   void (*complete)(void*, uint32_t, uint8_t*, size_t, size_t));
int cuptiActivityRegisterTimestampCallback(uint64_t (*now)());
int cuptiActivityEnable(uint32_t kind);
int cuptiActivityDisable(uint32_t kind);
int cuptiActivityFlushAll(uint32_t flag);
int cuptiActivityGetNextRecord(uint8_t* buffer, size_t valid_bytes, uint8_t** record);
int cuptiActivityPushExternalCorrelationId(uint32_t kind, uint64_t id);
int cuptiActivityPopExternalCorrelationId(uint32_t kind, uint64_t* last);
}

namespace {

using namespace virtual_gpu;

std::vector<uint8_t> records;
size_t valid_bytes = 0;

template <class Activity>
std::vector<Activity> told(uint32_t kind) {
  std::vector<Activity> found;
  uint8_t* record = nullptr;
  while (cuptiActivityGetNextRecord(records.data(), valid_bytes, &record) == 0) {
    Activity activity;
    std::memcpy(&activity, record, sizeof activity);
    if (activity.kind == kind) found.push_back(activity);
  }
  return found;
}

class Cupti : public testing::Test {
 protected:
  void SetUp() override {
    records.assign(1 << 16, 0xff);
    cuptiActivityRegisterCallbacks(
        [](uint8_t** memory, size_t* bytes, size_t*) {
          *memory = records.data();
          *bytes = records.size();
        },
        [](void*, uint32_t, uint8_t*, size_t, size_t valid) { valid_bytes = valid; });
    onerank_cupti_set_host([](void* starts) { ++*static_cast<int*>(starts); }, &starts_);
    cuptiActivityEnable(kActivityConcurrentKernel);
  }
  void TearDown() override {
    cuptiActivityDisable(kActivityConcurrentKernel);
    cuptiActivityRegisterTimestampCallback(nullptr);
  }
  int starts_ = 0;
};

TEST_F(Cupti, TellsTheHostWhenAProfilerStarts) {
  EXPECT_EQ(starts_, 1);
  EXPECT_EQ(onerank_cupti_is_tracing(), 1);
  cuptiActivityDisable(kActivityConcurrentKernel);
  EXPECT_EQ(onerank_cupti_is_tracing(), 0);
}

TEST_F(Cupti, TellsOfAKernelOfItsCallAndOfTheOperatorThatCalled) {
  cuptiActivityPushExternalCorrelationId(3, 41);
  cuptiActivityPushExternalCorrelationId(3, 42);
  const uint32_t call = onerank_cupti_called(ONERANK_CUPTI_KERNEL);
  uint64_t last = 0;
  cuptiActivityPopExternalCorrelationId(3, &last);
  EXPECT_EQ(last, 42u);
  cuptiActivityPopExternalCorrelationId(3, nullptr);
  std::string name = "some_kernel";
  const onerank_cupti_work work{.kind = ONERANK_CUPTI_KERNEL,
                                .call = call,
                                .name = name.c_str(),
                                .device = 2,
                                .stream = 5,
                                .start_nanoseconds = 1000,
                                .end_nanoseconds = 3000};
  onerank_cupti_ran(&work);
  name = "another one";
  cuptiActivityFlushAll(0);

  const auto kernels = told<KernelActivity>(kActivityConcurrentKernel);
  ASSERT_EQ(kernels.size(), 1u);
  EXPECT_STREQ(kernels[0].name, "some_kernel");
  EXPECT_EQ(kernels[0].start, 1000u);
  EXPECT_EQ(kernels[0].end, 3000u);
  EXPECT_EQ(kernels[0].device, 2u);
  EXPECT_EQ(kernels[0].stream, 5u);
  EXPECT_EQ(kernels[0].correlation, call);
  const auto calls = told<CallActivity>(kActivityRuntime);
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls[0].correlation, call);
  const auto ids = told<CorrelationActivity>(kActivityExternalCorrelation);
  ASSERT_EQ(ids.size(), 1u);
  EXPECT_EQ(ids[0].external_id, 42u);
  EXPECT_EQ(ids[0].correlation, call);
}

TEST_F(Cupti, TellsOfCopiesAndFills) {
  const onerank_cupti_work copy{.kind = ONERANK_CUPTI_COPY,
                                .call = onerank_cupti_called(ONERANK_CUPTI_COPY),
                                .bytes = 4096,
                                .direction = 2};
  const onerank_cupti_work fill{
      .kind = ONERANK_CUPTI_FILL, .call = onerank_cupti_called(ONERANK_CUPTI_FILL), .bytes = 64};
  onerank_cupti_ran(&copy);
  onerank_cupti_ran(&fill);
  cuptiActivityFlushAll(0);
  const auto copies = told<CopyActivity>(kActivityMemcpy);
  ASSERT_EQ(copies.size(), 1u);
  EXPECT_EQ(copies[0].bytes, 4096u);
  EXPECT_EQ(copies[0].copy_kind, 2) << "CUPTI_ACTIVITY_MEMCPY_KIND_DTOH";
  EXPECT_EQ(told<FillActivity>(kActivityMemset).at(0).bytes, 64u);
}

/// A clock that began at 5,000,000 when it was given, and stands still since.
TEST_F(Cupti, TellsTimesByTheProfilersClock) {
  cuptiActivityRegisterTimestampCallback([]() -> uint64_t { return 5000000; });
  onerank_cupti_called(ONERANK_CUPTI_FILL);
  cuptiActivityFlushAll(0);
  const auto calls = told<CallActivity>(kActivityRuntime);
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls[0].start, 5000000u);
}

}  // namespace
