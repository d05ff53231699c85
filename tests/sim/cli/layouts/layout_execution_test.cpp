// Which composed layouts a search executes, with executions that are made up.
#include "sim/cli/layouts/layout_execution.h"

#include <gtest/gtest.h>

#include "estimator/base/fields.h"
#include "estimator/resolve/plan_spec.h"
#include "estimator/resolve/resolve_plan.h"

namespace sim {
namespace {

using estimator::Fit;
using estimator::Layout;
using estimator::Layouts;

/// A layout of `seconds` a step that may fit, composed to fit or not.
Layout layout(double seconds, Fit composed) {
  const estimator::PlanSpec spec{
      .tree = estimator::Json::parse(
          R"({"model": "llama3-8b", "cluster": {"gpu": "h100", "nodes": 1}})"),
      .context = {}};
  static const estimator::Plan plan = resolve_plan(spec);
  Layout one{.edits = {}, .plan = plan};
  one.composed = estimator::ComposedPlan{.outcome = composed, .may_fit = true};
  one.composed->time.emplace().iteration_seconds = seconds;
  return one;
}

/// `count` layouts, each a second slower than the one before.
void add(std::vector<Layouts>& worlds, int count, Fit composed) {
  std::vector<Layout>& layouts = worlds.front().allowed;
  for (int i = 0; i < count; ++i) {
    layouts.push_back(layout(static_cast<double>(layouts.size() + 1), composed));
  }
}

class LayoutExecutionTest : public testing::Test {
 protected:
  /// Whole, each needs and takes what was composed, but those that are doubtful do not fit.
  void execute(std::size_t top) {
    execute_fastest(worlds_, top, [&](const std::vector<Layout*>& layouts) {
      for (Layout* one : layouts) {
        ++executed_;
        one->executed = estimator::ExecutedLayout{
            .outcome =
                one->composed->outcome == Fit::kFits && !all_fail_ ? Fit::kFits : Fit::kDoesNotFit,
            .iteration_seconds = one->composed->time->iteration_seconds + slower_};
      }
    });
  }
  std::vector<double> best(std::size_t top) {
    std::vector<double> seconds;
    for (const Layout* one : fastest_seen_to_fit(worlds_, top)) {
      seconds.push_back(one->executed->iteration_seconds);
    }
    return seconds;
  }

  std::vector<Layouts> worlds_ = std::vector<Layouts>(1);
  int executed_ = 0;
  bool all_fail_ = false;
  double slower_ = 0;
};

TEST_F(LayoutExecutionTest, FindsTheSameFastestForAnyNumberThatIsWanted) {
  for (const std::size_t top : {1U, 2U, 5U}) {
    worlds_.front().allowed.clear();
    add(worlds_, 20, Fit::kTooClose);
    add(worlds_, 9, Fit::kFits);
    execute(top);
    EXPECT_EQ(best(1), std::vector<double>{21}) << top;
    EXPECT_EQ(count_faster_untried(worlds_, top), 0) << top;
  }
}

TEST_F(LayoutExecutionTest, TriesWhatIsComposedToFitWhenDoubtfulOnesWereTriedInVain) {
  add(worlds_, 100, Fit::kDoesNotFit);
  add(worlds_, 3, Fit::kFits);
  execute(1);
  EXPECT_EQ(best(1), std::vector<double>{101});
  EXPECT_EQ(executed_, 31);
  EXPECT_EQ(count_faster_untried(worlds_, 1), 70);
}

TEST_F(LayoutExecutionTest, ExecutesNoMoreThanTheFastestWhereTheyFit) {
  add(worlds_, 100, Fit::kFits);
  execute(3);
  EXPECT_EQ(executed_, 3);
  EXPECT_EQ(count_faster_untried(worlds_, 3), 0);
}

// Composed, the second takes 2 s; the first takes 2.5 s when it is executed.
TEST_F(LayoutExecutionTest, ExecutesWhatIsFasterThanTheFastestTurnsOutToBe) {
  slower_ = 1.5;
  add(worlds_, 9, Fit::kFits);
  execute(1);
  EXPECT_EQ(executed_, 2);
  EXPECT_EQ(best(1), std::vector<double>{2.5});
}

TEST_F(LayoutExecutionTest, ExecutesAsManyAsAreLackingAfterOnesThatFail) {
  add(worlds_, 1, Fit::kTooClose);
  add(worlds_, 9, Fit::kFits);
  execute(3);
  EXPECT_EQ(executed_, 4);
  EXPECT_EQ(best(3), (std::vector<double>{2, 3, 4}));
}

TEST_F(LayoutExecutionTest, EndsWhereAllFail) {
  all_fail_ = true;
  add(worlds_, 100, Fit::kFits);
  execute(1);
  EXPECT_EQ(executed_, 30);
  EXPECT_EQ(count_faster_untried(worlds_, 1), 70);
}

}  // namespace
}  // namespace sim
