#include "sim/cli/report/roofline_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "estimator/base/units.h"
#include "sim/cli/report/table.h"

namespace sim {
namespace {

using estimator::format_duration;
using estimator::Roofline;
using estimator::RooflineRow;

constexpr const char* kKernelTime = "computed: each kernel by the rates of the GPU";

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

TitledTable bound_table(const Roofline& roofline) {
  Table table({{"what the step waits for", Align::kLeft},
               {"time", Align::kRight, kKernelTime},
               {"share", Align::kRight, "of the iteration"},
               {"step, if twice as fast", Align::kRight, "computed with half of the time"},
               {"moved by", Align::kLeft}});
  for (const estimator::StepBound& bound : roofline.bounds) {
    table.add_row({bound.name,
                   format_duration(bound.seconds),
                   percent(bound.share_of_step),
                   format_duration(bound.step_seconds_if_twice_as_fast),
                   bound.moved_by});
  }
  return {.title = fmt::format(
              "One iteration: {}; kernels of rank {}, whose stage is busy longest, on {}: "
              "{:.0f} FLOP/byte at the ridge",
              format_duration(roofline.iteration_seconds),
              roofline.rank,
              roofline.gpu,
              roofline.ridge_flops_per_byte),
          .table = std::move(table),
          .notes = {}};
}

TitledTable row_table(const char* title, const std::vector<RooflineRow>& rows) {
  constexpr double kTera = 1e12;
  constexpr std::size_t kShown = 12;
  Table table(
      {{title, Align::kLeft},
       {"calls", Align::kRight, "simulated: those of one iteration"},
       {"time", Align::kRight, kKernelTime},
       {"share", Align::kRight, "of the time of all kernels"},
       {"FLOP/byte", Align::kRight, "computed from the shapes that were run"},
       {"", Align::kLeft, "", "bound"},
       {"TFLOP/s", Align::kRight, "FLOP over time"},
       {"of peak",
        Align::kRight,
        "of the published dense peak of the plan's dtype, of FP8 or FP4 for products in these"},
       {"TB/s", Align::kRight, "bytes over time"},
       {"of peak", Align::kRight, "of the published bandwidth of the memory"}});
  for (std::size_t i = 0; i < std::min(rows.size(), kShown); ++i) {
    const RooflineRow& row = rows[i];
    table.add_row({row.name,
                   estimator::with_commas(row.count),
                   format_duration(row.seconds),
                   percent(row.share_of_compute),
                   fmt::format("{:.1f}", row.flops_per_byte),
                   estimator::to_string(row.intensity),
                   fmt::format("{:.1f}", row.flops_per_second / kTera),
                   percent(row.share_of_peak_flops),
                   fmt::format("{:.2f}", row.bytes_per_second / kTera),
                   percent(row.share_of_peak_bandwidth)});
  }
  TitledTable titled{.title = "", .table = std::move(table), .notes = {}};
  if (rows.size() > kShown) {
    titled.notes.push_back(fmt::format("and {} more (--json)", rows.size() - kShown));
  }
  return titled;
}

}  // namespace

std::vector<TitledTable> roofline_tables(const Roofline& roofline) {
  return {bound_table(roofline),
          row_table("operator", roofline.operators),
          row_table("module", roofline.modules),
          row_table("phase", roofline.phases),
          row_table("hotspot", roofline.hotspots)};
}

std::string roofline_text(const Roofline& roofline, const ReportStyle& style) {
  return tables_in(roofline_tables(roofline), style);
}

}  // namespace sim
