#include "models/shard/output_keeper.h"

#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

namespace models {
namespace {

/// A segment of four products with an attention among them, which writes down what runs.
class Segment {
 public:
  /// What ran: the product's number, or "a".
  std::string run(OutputKeeper& keeper, OutputKeeper::Kept& kept) {
    const OutputKeeper::Scope scope(&keeper, &kept);
    ran_.clear();
    sum_ = 0;
    product(keeper, "1");
    product(keeper, "2");
    for (const at::Tensor& output : keeper.keep([&] { return outputs("a", {5, 6}); })) add(output);
    product(keeper, "3");
    product(keeper, "4");
    return ran_;
  }
  double sum() const { return sum_; }

 private:
  OutputKeeper::Outputs outputs(const std::string& name, const std::vector<double>& values) {
    ran_ += name;
    OutputKeeper::Outputs all;
    for (const double value : values) all.push_back(at::full({1}, value));
    return all;
  }
  void product(OutputKeeper& keeper, const std::string& name) {
    add(keeper.keep_product([&] { return outputs(name, {std::stod(name)}).front(); }));
  }
  void add(const at::Tensor& output) { sum_ += output.item().toDouble(); }

  std::string ran_;
  double sum_ = 0;
};

TEST(OutputKeeper, RunsEverySecondProductAgainAndNothingElse) {
  OutputKeeper keeper;
  OutputKeeper::Kept kept;
  Segment segment;
  EXPECT_EQ(segment.run(keeper, kept), "12a34");
  EXPECT_EQ(kept.size(), 3);  // two products and the attention
  EXPECT_EQ(segment.sum(), 1 + 2 + 5 + 6 + 3 + 4);
  EXPECT_EQ(segment.run(keeper, kept), "24");
  EXPECT_TRUE(kept.empty());
  EXPECT_EQ(segment.sum(), 1 + 2 + 5 + 6 + 3 + 4);
}

TEST(OutputKeeper, CountsTheProductsOfEachSegmentFromOne) {
  OutputKeeper keeper;
  const auto product = [] { return at::full({1}, 1.0); };
  keeper.keep_product(product);  // of no segment
  OutputKeeper::Kept first, second;
  for (OutputKeeper::Kept* kept : {&first, &second}) {
    const OutputKeeper::Scope scope(&keeper, kept);
    keeper.keep_product(product);
    EXPECT_EQ(kept->size(), 1);
  }
}

TEST(OutputKeeper, RefusesARecomputeThatIsNotItsForward) {
  OutputKeeper keeper;
  OutputKeeper::Kept kept = {{at::full({1}, 1.0)}};
  const OutputKeeper::Scope scope(&keeper, &kept);
  const auto one = [] { return OutputKeeper::Outputs{at::full({1}, 1.0)}; };
  keeper.keep(one);
  EXPECT_THROW(keeper.keep(one), std::logic_error);
  EXPECT_THROW(OutputKeeper::Scope(&keeper, &kept), std::logic_error);
}

}  // namespace
}  // namespace models
