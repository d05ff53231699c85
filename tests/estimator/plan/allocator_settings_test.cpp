#include "estimator/plan/allocator_settings.h"

#include <gtest/gtest.h>

namespace estimator {
namespace {

/// What is said of the settings; "" when they are good.
std::string problem_of(const std::string& settings) {
  const auto problem = find_allocator_problem(settings, "memory.allocator");
  return problem ? to_text({*problem}) : "";
}

TEST(AllocatorSettings, OfPyTorchsDocumentationAreGood) {
  for (const char* settings : {"",
                               "expandable_segments:True",
                               "max_split_size_mb:128, garbage_collection_threshold:0.8",
                               "roundup_power2_divisions:[64:8,128:2,>:1],max_split_size_mb:40",
                               "roundup_power2_divisions:4",
                               "backend:cudaMallocAsync",
                               "per_process_memory_fraction:0.95"}) {
    EXPECT_EQ(problem_of(settings), "") << settings;
  }
}

TEST(AllocatorSettings, ThatDoNotExistAreNamedWithTheNearest) {
  EXPECT_EQ(problem_of("expandable_segment:True"),
            "error: PyTorch's allocator has no setting \"expandable_segment\"\n"
            "  memory.allocator = expandable_segment:True\n"
            "  help: did you mean expandable_segments?\n");
}

TEST(AllocatorSettings, WithValuesThatPyTorchRefusesAreRefused) {
  for (const char* settings : {"max_split_size_mb:2",
                               "max_split_size_mb",
                               "expandable_segments:true",
                               "garbage_collection_threshold:1.2",
                               "roundup_power2_divisions:3",
                               "roundup_power2_divisions:[64:8",
                               "release_lock_on_cudamalloc:none"}) {
    EXPECT_NE(problem_of(settings), "") << settings;
  }
}

}  // namespace
}  // namespace estimator
