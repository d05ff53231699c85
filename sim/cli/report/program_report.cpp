#include "sim/cli/report/program_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "estimator/base/units.h"
#include "sim/cli/report/profile_report.h"
#include "sim/cli/report/table.h"

namespace sim {
namespace {

using estimator::format_gib;
using estimator::ProgramRecord;
using estimator::RankProfile;
using estimator::with_commas;

std::string collectives_text(const ProgramRecord& program) {
  Table table({{"group", Align::kLeft},
               {"ranks"},
               {"collective", Align::kLeft},
               {"dtype", Align::kLeft},
               {"MiB"},
               {"in an iteration"},
               {"in all"}});
  bool any = false;
  for (const auto& communicator : program.communicators) {
    for (const auto& call : communicator.calls) {
      any = true;
      table.add_row({communicator.name,
                     std::to_string(communicator.size),
                     call.kind,
                     call.dtype,
                     estimator::format_mib(call.bytes),
                     with_commas(call.iteration_count),
                     with_commas(call.count)});
    }
  }
  return any ? "\ncollectives\n" + table.text(2) : "";
}

std::string invented_text(const ProgramRecord& program) {
  if (program.invented_reads.empty()) return "";
  Table table({{"read by", Align::kLeft}, {"in", Align::kLeft}, {"bytes"}, {"times"}});
  for (const auto& read : program.invented_reads) {
    table.add_row({read.reader.empty() ? "(no operator)" : read.reader,
                   read.phase,
                   with_commas(read.bytes),
                   with_commas(read.count)});
  }
  return "\nread from the device although no kernel computed it (zeros): the program may have "
         "decided by it\n" +
         table.text(2);
}

std::string assumed_text(const ProgramRecord& program) {
  if (program.assumed.empty()) return "";
  Table table({{"assumed", Align::kLeft},
               {"value", Align::kLeft},
               {"in place of the result of", Align::kLeft},
               {"times"}});
  for (const auto& assumed : program.assumed) {
    table.add_row({assumed.name, assumed.value, assumed.operator_name, with_commas(assumed.count)});
  }
  return "\nassumed, since no kernel computed it\n" + table.text(2);
}

}  // namespace

bool program_fits(const RankProfile& profile) {
  return !profile.out_of_memory && profile.peak.reserved_bytes <= profile.device.total_bytes;
}

std::string program_verdict(const RankProfile& profile) {
  if (profile.out_of_memory) {
    return fmt::format("does not fit: rank {} ran out of {} in {}: {}\n",
                       profile.rank,
                       format_gib(profile.device.total_bytes),
                       profile.out_of_memory->phase,
                       profile.out_of_memory->message);
  }
  return fmt::format("{}: the allocator of rank {} reserved {} of {} on {}\n",
                     program_fits(profile) ? "fits" : "does not fit",
                     profile.rank,
                     format_gib(profile.peak.reserved_bytes),
                     format_gib(profile.device.total_bytes),
                     profile.device.name);
}

std::string program_text(const RankProfile& profile) {
  const ProgramRecord& program = *profile.program;
  std::string text = program_verdict(profile);
  text += fmt::format("rank {} of {}, {} optimizer steps{}{}\n\n",
                      profile.rank,
                      profile.world_size,
                      program.optimizer_steps,
                      program.stopped_by_steps ? ", then ended (--steps)" : "",
                      program.events.empty() ? "" : ", events " + program.events);
  if (program.optimizer_steps == 0) {
    text.insert(text.size() - 1,
                "note: no optimizer step was seen: this is no training iteration\n");
  }
  text += phases_text(profile);
  if (!program.attention.empty()) {
    text += fmt::format("attention: {}\n", fmt::join(program.attention, ", "));
  }
  return text + collectives_text(program) + assumed_text(program) + invented_text(program);
}

}  // namespace sim
