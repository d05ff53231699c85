#include "estimator/memory/context_memory.h"

#include <gtest/gtest.h>

#include "estimator/base/units.h"
#include "tests/estimator/test_plans.h"

namespace estimator {
namespace {

TEST(ContextMemory, IsTheDatabasesAndSaysThatItIsAssumed) {
  const MemoryTerm term = context_memory(*find_gpu("h100-sxm"));
  EXPECT_EQ(term.value_bytes, find_gpu("h100-sxm")->context_bytes);
  EXPECT_EQ(term.source, Source::kAssumed);
  EXPECT_EQ(term.note, find_gpu("h100-sxm")->context_source);
}

TEST(ContextMemory, HasTheBandOfPublishedFigures) {
  // At least what a first tensor took (pytorch pull request 86509), at most 300 MiB of late
  // modules.
  const Gpu& gpu = *find_gpu("h100-sxm");
  const MemoryTerm term = context_memory(gpu);
  EXPECT_EQ(term.low_bytes, 287'047'680);
  EXPECT_EQ(term.high_bytes, gpu.context_bytes + 300 * kMiB);
}

TEST(ContextMemory, OfEagerLoadingIsAsBigscienceMeasured) {
  const MemoryTerm term = context_memory(*find_gpu("a100"), ModuleLoading::kEager);
  EXPECT_EQ(term.value_bytes, 1573 * kMiB);
  EXPECT_EQ(term.source, Source::kPublished);
}

// cuBLAS's manual: 32 MiB for a handle from Hopper on, else 4 MiB; one handle for each thread.
TEST(LibraryMemory, IsTheWorkspaceOfTwoCublasHandlesInABand) {
  const MemoryTerm hopper = library_memory(*find_gpu("h100-sxm"));
  EXPECT_EQ(hopper.value_bytes, 64 * kMiB);
  EXPECT_EQ(hopper.low_bytes, 0);
  // 132 SMs x 2,048 threads x 1 KiB, a printf FIFO of 1 MiB, a heap of 8 MiB.
  EXPECT_EQ(hopper.high_bytes, (64 + 132 * 2 + 9) * kMiB);
  EXPECT_EQ(hopper.source, Source::kAssumed);
  EXPECT_EQ(library_memory(*find_gpu("a100")).value_bytes, 8 * kMiB);
}

}  // namespace
}  // namespace estimator
