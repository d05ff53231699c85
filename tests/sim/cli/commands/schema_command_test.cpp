#include <gmock/gmock.h>

#include <sstream>

#include "estimator/base/files.h"
#include "estimator/profile/peak_snapshot.h"
#include "tests/estimator/schema_violation.h"
#include "tests/sim/cli/onerank_program.h"

namespace sim {
namespace {

using estimator::Json;
using testing::HasSubstr;

class SchemaCommand : public OnerankProgram {
 protected:
  /// One weight, and its path.
  std::string write_small_snapshot() const {
    estimator::PeakSnapshot snapshot;
    snapshot.allocations = {{.category = estimator::MemoryCategory::kParameter,
                             .bytes = 1024,
                             .requested_bytes = 1000,
                             .module = "head",
                             .made_the_peak = true}};
    snapshot.header.allocations = 1;
    snapshot.header.peak = {.allocated_bytes = 1024, .reserved_bytes = 2048, .phase = "build"};
    snapshot.header.peak.categories.emplace()[estimator::MemoryCategory::kParameter] = 1024;
    return write("peak.jsonl", estimator::to_json_lines(snapshot));
  }
};

TEST_F(SchemaCommand, PrintsTheSchemaOfEachDocument) {
  for (const auto& [document, key] : {std::pair("plan", "parallelism"),
                                      std::pair("profile", "phases"),
                                      std::pair("estimate", "verdict")}) {
    const ProgramResult result = run({"schema", document});
    EXPECT_EQ(result.exit_code, 0);
    const Json schema = Json::parse(result.output);
    EXPECT_TRUE(schema.contains("$schema")) << document;
    EXPECT_TRUE(schema["properties"].contains(key)) << document;
  }
}

TEST_F(SchemaCommand, DescribesErrors) {
  const ProgramResult result = run({"check", "--model", "gpt5", "--json"});
  EXPECT_EQ(result.exit_code, 2);
  const Json schema = Json::parse(run({"schema", "error"}).output);
  EXPECT_EQ(estimator::violation(schema, Json::parse(result.output)), "");
}

/// What a command prints with --json, and what its schema is called.
struct Printed {
  const char* schema;
  std::vector<std::string> arguments;
};

TEST_F(SchemaCommand, KnowsEveryDocumentThatIsPrinted) {
  const std::string snapshot = write_small_snapshot();
  for (const Printed& printed : std::vector<Printed>{
           {"profile", small_plan({"run"})},
           {"estimate", small_plan({"estimate"})},
           {"verdict", small_plan({"check"})},
           {"max-micro-batch", small_plan({"estimate", "--max-micro-batch"}, {"--gbs", "8"})},
           {"max-sequence", small_plan({"estimate", "--max-sequence"})},
           {"roofline", small_plan({"roofline"})},
           {"allocators", small_plan({"allocators", "--setting", "max_split_size_mb:128"})},
           {"calibration", {"calibrate", "--device", "cpu"}},
           {"memory", {"memory", snapshot}},
           {"comm", {"comm", "all_reduce", "--gpu", "h100-sxm", "-b", "1M", "-e", "2M"}},
           {"gpus", {"list", "gpus"}},
           {"models", {"list", "models"}},
           {"links", {"list", "links"}},
           {"frameworks", {"list", "frameworks"}},
           {"example-plans", {"list", "plans"}},
           {"torch", {"list", "torch"}}}) {
    std::vector<std::string> arguments = printed.arguments;
    arguments.emplace_back("--json");
    const ProgramResult result = run(arguments);
    ASSERT_THAT(result.exit_code, testing::AnyOf(0, 1)) << printed.schema << result.error;
    const Json document = Json::parse(result.output);
    EXPECT_EQ(document.value("schema_version", 0), 1) << printed.schema;
    EXPECT_NE(document.value("kind", ""), "") << printed.schema;
    EXPECT_EQ(estimator::violation(Json::parse(run({"schema", printed.schema}).output), document),
              "")
        << printed.schema;
  }
}

TEST_F(SchemaCommand, KnowsTheLinesOfAPeakSnapshot) {
  const Json schema = Json::parse(run({"schema", "peak-snapshot"}).output);
  std::istringstream lines(estimator::read_file(write_small_snapshot()));
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    EXPECT_EQ(estimator::violation(schema, Json::parse(line)), "") << line;
  }
  EXPECT_EQ(count, 2);
  EXPECT_NE(estimator::violation(schema, Json::parse(R"({"kind": "peak_snapshot"})")), "");
}

TEST_F(SchemaCommand, RefusesADocumentThatIsNotThere) {
  const ProgramResult result = run({"schema", "plans"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.error, HasSubstr("did you mean plan?"));
}

}  // namespace
}  // namespace sim
