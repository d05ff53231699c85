#include "sim/cli/page/comparison_page.h"

#include <fmt/format.h>

#include "estimator/base/document.h"
#include "estimator/base/fields.h"
#include "estimator/base/units.h"
#include "sim/cli/page/sections.h"
#include "sim/cli/report/search_report.h"
#include "sim/cli/report/sweep_report.h"

namespace sim {
namespace {

using estimator::FoundLayout;
using estimator::Search;

std::vector<Headline> headlines_of_search(const Search& search) {
  std::vector<Headline> headlines;
  if (!search.best.empty()) {
    const FoundLayout& best = search.best.front();
    headlines.push_back({"Fastest step",
                         estimator::format_duration(
                             best.executed_iteration_seconds.value_or(best.iteration_seconds)),
                         best.flags});
    headlines.push_back({"Tokens/s",
                         estimator::whole_with_commas(best.tokens_per_second),
                         fmt::format("on {} GPUs; computed", estimator::with_commas(best.gpus))});
    headlines.push_back({"MFU", fmt::format("{:.1f} %", 100 * best.mfu), "computed"});
  }
  if (search.fewest_gpus) {
    headlines.push_back({"Fewest GPUs",
                         estimator::with_commas(*search.fewest_gpus),
                         "of those that were searched"});
  }
  headlines.push_back({"Layouts composed from",
                       estimator::with_commas(search.pieces_run) + " stages",
                       "simulated: executed once each"});
  return headlines;
}

}  // namespace

Page sweep_page(const std::vector<estimator::Plan>& plans, const estimator::Sweep& sweep) {
  Page page{.command = "onerank sweep", .title = title_of(plans), .verdict = fastest_text(sweep)};
  std::vector<TitledTable> tables = sweep_tables(sweep);
  page.sections.push_back(
      {.id = "points",
       .title = "Every combination",
       .pictures = {{"sweep-growth",
                     "Each line is one choice of the other flags. Memory is simulated, time is "
                     "computed; both axes are logarithmic."},
                    {"sweep-trade",
                     "Each circle is a combination. To the left is faster, "
                     "below needs less memory."}},
       .tables = {std::move(tables.front())}});
  if (tables.size() > 1 || !sweep.limits.empty()) {
    page.sections.push_back({.id = "growth",
                             .title = "How it grows, and where it stops fitting",
                             .tables = {tables.begin() + 1, tables.end()},
                             .items = sweep_limits(sweep)});
  }
  page.data.emplace_back("sweep", estimator::to_json(sweep).dump());
  return page;
}

std::string words_of_best(const Search& search) {
  const std::string& flags = search.best.front().flags;
  return flags.empty() ? "what was given, without further flags" : flags;
}

Page search_page(const std::vector<estimator::Plan>& plans, const Search& search) {
  Page page{.command = "onerank search",
            .title = title_of(plans),
            .verdict = search.best.empty() ? "None of the layouts surely fits."
                                           : "The fastest that fits: " + words_of_best(search),
            .headlines = headlines_of_search(search)};
  page.outcome = search.best.empty() ? estimator::Fit::kDoesNotFit : estimator::Fit::kFits;
  page.sections.push_back(
      {.id = "layouts",
       .title = "The layouts",
       .lead = lines_of(fewest_text(search)),
       .pictures =
           {{"search-front",
             "Each circle is a layout of which no other is better in speed, free memory, GPUs "
             "and cost at once; the larger, the more GPUs. Composed from executed "
             "stages."}},
       .tables = search_tables(search, {}),
       .items = {effort_text(search)}});
  page.data.emplace_back("search", estimator::to_json(search).dump());
  return page;
}

Page diff_page(const EstimateDiff& diff) {
  Page page{.command = "onerank diff",
            .title = fmt::format("{} and {}", diff.first_name, diff.second_name),
            .verdict = diff.plan.empty()
                           ? "The resolved plans are equal."
                           : fmt::format("{} keys of the resolved plans differ.", diff.plan.size()),
            .setting = {"A: " + diff.first_name + ": " + diff.first_verdict,
                        "B: " + diff.second_name + ": " + diff.second_verdict}};
  page.sections.push_back(
      {.id = "numbers",
       .title = "What differs",
       .pictures = {{"diff",
                     "The worst rank's peak and one iteration, of A above and of B below."}},
       .tables = diff_tables(diff)});
  page.data.emplace_back("diff", estimator::to_json(diff).dump());
  return page;
}

}  // namespace sim
