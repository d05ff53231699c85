// Where the things are that tests use. Each test program has those that its CMakeLists.txt gives it
// (onerank_test_paths).
#pragma once

namespace tests {

extern const char* const kProgram;        ///< onerank
extern const char* const kFakeRank;       ///< stands for onerank-rank; "": that of the build folder
extern const char* const kFaultyRank;     ///< a rank process that fails as it is told to
extern const char* const kPlans;          ///< scripts/plans
extern const char* const kShardProfiles;  ///< of the fuzz targets' corpus
extern const char* const kPython;         ///< the Python beside the torch that Onerank is built for
extern const char* const kSitePackages;   ///< that torch's
extern const char* const kExecPrograms;   ///< programs for `onerank exec`
extern const char* const kBrokenPrograms;     ///< what breaks such programs
extern const char* const kVirtualGpuSources;  ///< sim/virtual_gpu

}  // namespace tests
