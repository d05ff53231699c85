#include <gmock/gmock.h>

#include "estimator/base/fields.h"
#include "tests/sim/cli/onerank_program.h"

namespace sim {
namespace {

using estimator::Json;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

class ListCommand : public OnerankProgram {};

TEST_F(ListCommand, GivesModelsAsJsonWithTheirParameters) {
  const ProgramResult result = run({"list", "models", "--json"});
  EXPECT_EQ(result.exit_code, 0);
  bool found = false;
  const Json list = Json::parse(result.output);
  for (const Json& model : list["entries"]) {
    if (model["name"] != "llama3-8b") continue;
    EXPECT_EQ(model["parameters"], 8'030'261'248);
    found = true;
  }
  EXPECT_TRUE(found);
}

TEST_F(ListCommand, GivesEachListAsATableAndAsJson) {
  for (const std::string list : {"gpus", "models", "links", "plans"}) {
    EXPECT_THAT(run({"list", list}).output, StartsWith("name "));
    EXPECT_TRUE(Json::parse(run({"list", list, "--json"}).output)["entries"].is_array());
  }
  EXPECT_THAT(run({"list", "frameworks"}).output, StartsWith("megatron-lm: "));
  EXPECT_TRUE(Json::parse(run({"list", "frameworks", "--json"}).output)["entries"].is_array());
  EXPECT_THAT(run({"list", "gpus"}).output, HasSubstr("NVIDIA H100 80GB HBM3"));
}

TEST_F(ListCommand, GivesEachExampleByTheNameThatCommandsTake) {
  EXPECT_THAT(run({"list", "plans"}).output,
              AllOf(HasSubstr("\nllama3-8b-8xh100-fsdp  "),
                    HasSubstr("  tensor 1 x pipeline 1 x context 1 x data 8     torchtitan\n")));
}

TEST_F(ListCommand, IsWrittenForOthers) {
  EXPECT_THAT(run({"list", "gpus", "--format", "md"}).output, StartsWith("| name | CUDA's name |"));
  EXPECT_THAT(run({"list", "models", "--format", "csv"}).output, StartsWith("name,parameters,"));
  EXPECT_THAT(run({"list", "frameworks", "--format", "csv"}).output,
              StartsWith("framework,stands for,notes\nmegatron-lm,"));
}

TEST_F(ListCommand, RefusesAListThatIsNotThere) {
  const ProgramResult result = run({"list", "modles"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.error, HasSubstr("did you mean models?"));
  EXPECT_EQ(run({"list"}).exit_code, 2);
}

TEST_F(ListCommand, HelpLeadsWithExamplesAndOffersOnlyWhatIsThere) {
  const ProgramResult help = run({"--help"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_LT(help.output.find("Examples:"), help.output.find("Usage:"));
  EXPECT_THAT(help.output, HasSubstr("\n  verify "));
  EXPECT_THAT(run({"estimate", "--help-all"}).output, HasSubstr("--tensor-model-parallel-size,"));
  EXPECT_THAT(run({"--version"}).output, StartsWith("onerank "));
}

}  // namespace
}  // namespace sim
