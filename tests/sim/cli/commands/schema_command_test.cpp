#include <gmock/gmock.h>

#include "estimator/base/fields.h"
#include "tests/sim/cli/onerank_program.h"

namespace sim {
namespace {

using estimator::Json;
using testing::HasSubstr;

class SchemaCommand : public OnerankProgram {};

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

TEST_F(SchemaCommand, RefusesADocumentThatIsNotThere) {
  const ProgramResult result = run({"schema", "plans"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.error, HasSubstr("did you mean plan?"));
}

}  // namespace
}  // namespace sim
