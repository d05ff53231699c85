#include "sim/cli/report/textbook_report.h"

#include <fmt/format.h>

#include "sim/cli/report/rank_memory_report.h"

namespace sim {
namespace {

using estimator::ClusterEstimate;

}  // namespace

std::vector<TitledTable> textbook_tables(const ClusterEstimate& estimate) {
  if (estimate.textbook.empty()) return {};
  Table table({{"by the book", Align::kLeft},
               {"GiB", Align::kRight, "computed: the formula"},
               {"executed", Align::kRight, kAllocatedSource},
               {"difference", Align::kRight, "executed over the formula"},
               {"formula", Align::kLeft},
               {"source", Align::kLeft}});
  for (const estimator::TextbookTerm& term : estimate.textbook) {
    const bool is_known = term.executed_bytes && term.bytes > 0;
    const double executed = static_cast<double>(term.executed_bytes.value_or(0));
    const double share = is_known ? executed / static_cast<double>(term.bytes) - 1 : 0;
    table.add_row({term.name,
                   gib(term.bytes),
                   term.executed_bytes ? gib(*term.executed_bytes) : "-",
                   is_known ? fmt::format("{:+.1f} %", 100 * share) : "-",
                   term.formula,
                   term.source});
  }
  return {
      {.title = fmt::format("By the book: closed formulas for rank {}, beside what was executed",
                            estimate.verdict.worst_rank),
       .table = std::move(table),
       .notes = {
           "P, l, h, a, v: parameters, layers, width, heads, vocabulary of the model; s, b: tokens "
           "and samples of a micro-batch; t, p, c: tensor, pipeline and context ranks; d: data "
           "ranks that share one copy (data / replicas)",
           "the layer of the papers is GPT's, with an MLP of 4 h, dropout and 16 bits; stages are "
           "even"}}};
}

}  // namespace sim
