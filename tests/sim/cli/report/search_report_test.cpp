#include "sim/cli/report/search_report.h"

#include <gmock/gmock.h>

#include "estimator/base/units.h"

namespace sim {
namespace {

using estimator::Fit;
using estimator::FoundLayout;
using estimator::kGiB;
using estimator::Search;
using estimator::WorldSearch;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

FoundLayout found(double seconds, int64_t peak_gib) {
  return {.flags = "--tp 2",
          .gpus = 8,
          .outcome = Fit::kFits,
          .peak_bytes = peak_gib * kGiB,
          .headroom_bytes = (80 - peak_gib) * kGiB,
          .capacity_bytes = 80 * kGiB,
          .iteration_seconds = seconds,
          .tokens_per_second = 1 / seconds};
}

Search two_on_the_front() {
  Search search;
  search.pareto = {found(1, 40), found(2, 20)};
  search.worlds = {WorldSearch{.gpus = 8, .layouts = 9, .fits = 2, .leanest = found(2, 20)}};
  return search;
}

TEST(SearchReport, SaysWhereTheFrontIsOfTheComposedLayoutsAlone) {
  Search search = two_on_the_front();
  EXPECT_THAT(search_text(search, {}),
              AllOf(HasSubstr("(Pareto front, composed)"), Not(HasSubstr("--all"))));
  search.layouts_slower = 5;
  EXPECT_THAT(search_text(search, {}),
              AllOf(HasSubstr("(Pareto front of the layouts composed; --all for the whole front)"),
                    HasSubstr("least memory are of the layouts composed")));
}

TEST(SearchReport, CallsNoLayoutTheFastestWhereFasterOnesWereNotExecuted) {
  Search search = two_on_the_front();
  search.best = {found(1, 40)};
  search.best.front().executed_iteration_seconds = 1;
  EXPECT_THAT(search_text(search, {}), HasSubstr("The fastest that fit, executed whole; composed"));
  search.faster_untried = 1234;
  EXPECT_THAT(search_text(search, {}),
              AllOf(Not(HasSubstr("The fastest")),
                    HasSubstr("1,234 that may fit and be faster were not executed")));
}

TEST(SearchReport, NamesWhatIsToStayFreeWhereFewerGpusDoNotHoldIt) {
  Search search = two_on_the_front();
  FoundLayout leanest = found(1, 12);
  leanest.kept_free_bytes = 70 * kGiB;
  leanest.executed_peak_bytes = 11 * kGiB;
  search.worlds = {WorldSearch{.gpus = 8, .layouts = 2, .refused = 2},
                   WorldSearch{.gpus = 16, .layouts = 2, .too_close = 1, .leanest = leanest},
                   WorldSearch{.gpus = 32, .layouts = 2, .fits = 1, .leanest = leanest}};
  search.fewest_gpus = 32;
  EXPECT_EQ(fewest_text(search),
            "Fewest GPUs that hold it: 32\n"
            "  on 8 no layout is allowed\n"
            "  on 16 the leanest layout needs 11.00 GiB of 80.00 GiB, of which 70.00 GiB are to "
            "stay free (--tp 2)\n");
}

TEST(SearchReport, SaysOfWholeSentencesWhatIsLargerThanAGpu) {
  Search search = two_on_the_front();
  search.layouts_too_full = 93;
  EXPECT_THAT(effort_text(search),
              testing::EndsWith("; of 93 the state and the activations are larger than a GPU"));
}

}  // namespace
}  // namespace sim
