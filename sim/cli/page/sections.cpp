#include "sim/cli/page/sections.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>

#include "estimator/base/contains.h"
#include "estimator/base/document.h"
#include "estimator/base/fields.h"
#include "estimator/base/text.h"
#include "estimator/base/units.h"
#include "sim/cli/report/profile_report.h"
#include "sim/cli/report/rank_memory_report.h"
#include "sim/cli/report/roofline_report.h"
#include "sim/cli/report/step_report.h"
#include "sim/cli/report/training_report.h"

namespace sim {

using estimator::RankClassEstimate;

std::vector<Headline> memory_headlines(const estimator::Verdict& verdict,
                                       const std::string& assumed,
                                       const std::string& rank) {
  return {{"Most memory of a rank",
           estimator::format_gib(verdict.peak_bytes),
           fmt::format("of {}; simulated, and assumed for {}",
                       estimator::format_gib(verdict.capacity_bytes),
                       assumed)},
          {verdict.headroom_bytes < 0 ? "Too much" : "Free",
           estimator::format_gib(std::abs(verdict.headroom_bytes)),
           "on " + rank}};
}

std::string tool_words(const estimator::ToolVersion& tool) {
  return fmt::format("{} {}, torch {}", tool.name, tool.version, tool.torch);
}

std::string title_of(const estimator::Plan& plan) {
  if (!plan.name.empty()) return plan.name;
  const std::string model = plan.model_preset.empty() ? "A model" : plan.model_preset;
  return fmt::format("{} on {}", model, plan.cluster.gpu);
}

std::string title_of(const std::vector<estimator::Plan>& plans) {
  std::vector<std::string> titles;
  for (const estimator::Plan& plan : plans) {
    std::string title = title_of(plan);
    if (!estimator::contains(titles, title)) titles.push_back(std::move(title));
  }
  return fmt::format("{}", fmt::join(titles, ", "));
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines = estimator::split(text, '\n');
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  return lines;
}

PageSection classes_section(const estimator::Verdict& verdict,
                            const std::vector<RankClassEstimate>& classes) {
  return {.id = "memory",
          .title = "Memory of each class of ranks",
          .pictures = {{"classes",
                        "Each bar is a class of equal ranks at its peak. The thin line at its end "
                        "is the band of what is not known exactly; the dashed line is the GPU's "
                        "memory."}},
          .tables = {rank_class_table(verdict, classes)}};
}

PageSection terms_section(const RankClassEstimate& worst) {
  PageSection section{.id = "worst-rank",
                      .title = fmt::format("What rank {} needs", worst.representative_rank),
                      .tables = peak_tables(worst)};
  if (const std::string text = out_of_memory_text(worst); !text.empty()) section.lead = {text};
  return section;
}

void add_rank_detail(const RankDetail& detail,
                     const estimator::RankProfile* profile,
                     int64_t limit_bytes,
                     Page& page) {
  PageSection history{.id = "history", .title = "Memory over two iterations"};
  if (!detail.history.empty()) {
    history.pictures = {{"history",
                         "What is allocated, by what it is for, after each allocation; the line is "
                         "what the allocator has reserved. Simulated by running the rank. The "
                         "arrow keys read the picture."}};
    page.data.emplace_back("history", history_json(detail.history, limit_bytes));
  }
  if (profile != nullptr) {
    history.tables = {{.title = fmt::format("Phases of rank {}", profile->rank),
                       .table = phase_table(*profile),
                       .notes = {}}};
  }
  if (!detail.history.empty() || profile != nullptr) page.sections.push_back(std::move(history));
  if (!detail.peak) return;
  const estimator::PeakSnapshot& peak = *detail.peak;
  page.sections.push_back(
      {.id = "peak",
       .title = fmt::format("The peak of rank {}, tensor by tensor", peak.header.rank),
       .lead = {peak_line(peak.header.peak)},
       .pictures = {{"treemap",
                     "Each area is what a module holds at the peak; equal layers are one. A click "
                     "opens it in the tree."}},
       .tree = peak_tree(peak.allocations)});
}

void add_step(const std::string& lines, StepPicture picture, Page& page) {
  page.sections.push_back(
      {.id = "step",
       .title = "The step of " + lines,
       .pictures = {{"step",
                     "Computed. Communication shows where nothing else runs. The arrow keys read "
                     "the picture, and the buttons move in it."}},
       .tables = {std::move(picture.busy)}});
  page.data.emplace_back("step", std::move(picture.json));
}

void add_roofline(const estimator::Roofline& roofline, Page& page) {
  page.sections.push_back(
      {.id = "bounds",
       .title = "What bounds the step",
       .pictures = {{"roofline",
                     "Each circle is an operator; its area is its share of the kernels' time. The "
                     "dashed line is what the GPU can do."}},
       .tables = roofline_tables(roofline)});
  page.data.emplace_back("roofline", estimator::to_json(roofline).dump());
}

void add_training(const std::optional<estimator::TrainingEstimate>& training, Page& page) {
  std::vector<TitledTable> tables = training_tables(training);
  if (tables.empty()) return;
  page.sections.push_back(
      {.id = "training", .title = "Training and cost", .tables = std::move(tables)});
}

void add_origins(const std::vector<estimator::RateTerm>& rates,
                 const std::vector<std::string>& assumptions,
                 const std::vector<std::string>& not_modelled,
                 Page& page) {
  const auto add = [&](const char* id, const char* title, const std::vector<std::string>& items) {
    if (!items.empty()) page.sections.push_back({.id = id, .title = title, .items = items});
  };
  if (std::vector<TitledTable> tables = rate_tables(rates); !tables.empty()) {
    page.sections.push_back(
        {.id = "rates", .title = "Rates of the GPU", .tables = std::move(tables)});
  }
  add("assumed", "Assumed", assumptions);
  add("not-modelled", "Not modelled", not_modelled);
}

}  // namespace sim
