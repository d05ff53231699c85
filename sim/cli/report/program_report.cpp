#include "sim/cli/report/program_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "estimator/base/units.h"
#include "estimator/program/program_estimate.h"
#include "estimator/program/program_tokens.h"
#include "sim/cli/report/profile_report.h"
#include "sim/cli/report/table.h"
#include "sim/cli/report/verdict_report.h"

namespace sim {
namespace {

using estimator::format_gib;
using estimator::ProgramRecord;
using estimator::RankProfile;
using estimator::with_commas;

/// The calls of each kind, type and size, whoever their root or peer is.
std::vector<estimator::ProgramCollective> whoever_the_peer_is(
    const std::vector<estimator::ProgramCollective>& calls) {
  std::map<std::tuple<std::string, std::string, int64_t>, estimator::ProgramCollective> sums;
  for (const auto& call : calls) {
    const auto [at, is_new] = sums.try_emplace({call.kind, call.dtype, call.bytes}, call);
    if (is_new) continue;
    at->second.count += call.count;
    at->second.iteration_count += call.iteration_count;
  }
  std::vector<estimator::ProgramCollective> all;
  all.reserve(sums.size());
  for (auto& [key, sum] : sums) all.push_back(std::move(sum));
  return all;
}

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
    for (const auto& call : whoever_the_peer_is(communicator.calls)) {
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

/// The kinds of the answers, the most frequent first: "all_gather 20, all_reduce 15".
std::string kinds_text(const std::map<std::string, int64_t>& counts) {
  std::vector<std::pair<int64_t, std::string>> kinds;
  kinds.reserve(counts.size());
  for (const auto& [kind, count] : counts) kinds.emplace_back(-count, kind);
  std::sort(kinds.begin(), kinds.end());
  std::vector<std::string> texts;
  texts.reserve(kinds.size());
  for (const auto& [count, kind] : kinds) {
    texts.push_back(fmt::format("{} {}", kind, with_commas(-count)));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

/// One line: what was assumed, and how often.
std::string assumed_line(const ProgramRecord& program) {
  std::map<std::string, int64_t> answers;
  std::map<std::string, int64_t> given;
  int64_t barriers = 0;
  int64_t zeros = 0;
  for (const auto& answer : program.absent_answers) {
    const bool is_barrier = answer.kind == to_string(estimator::CollectiveKind::kBarrier);
    (is_barrier ? barriers : answers[answer.kind]) += answer.count;
  }
  for (const auto& assumed : program.assumed) given[assumed.name] += assumed.count;
  for (const auto& read : program.invented_reads) zeros += read.count;
  std::vector<std::string> parts;
  if (!answers.empty()) {
    parts.push_back("of absent ranks what this one holds (" + kinds_text(answers) + ")");
  }
  if (barriers > 0) {
    parts.push_back("that absent ranks came (barriers " + with_commas(barriers) + ")");
  }
  const auto checks = given.extract(estimator::kAssumedCheck);
  if (!checks.empty()) {
    parts.push_back("that what the program checks is so (checks " + with_commas(checks.mapped()) +
                    ")");
  }
  if (!given.empty()) parts.push_back("as given (" + kinds_text(given) + ")");
  if (zeros > 0) {
    parts.push_back("zeros for what only kernels would know (reads " + with_commas(zeros) + ")");
  }
  if (parts.empty()) return "values assumed: none\n";
  return fmt::format("values assumed: {} (--verbose lists them)\n", fmt::join(parts, "; "));
}

std::string absent_text(const ProgramRecord& program) {
  if (program.absent_answers.empty()) return "";
  Table table({{"absent", Align::kLeft},
               {"group", Align::kLeft},
               {"ranks"},
               {"times"},
               {"called at", Align::kLeft},
               {"why", Align::kLeft}});
  for (const auto& answer : program.absent_answers) {
    table.add_row({answer.kind,
                   answer.group,
                   with_commas(answer.members),
                   with_commas(answer.count),
                   answer.line,
                   answer.why});
  }
  return "\nassumed of absent ranks: that they hold what this rank holds, and come to barriers\n" +
         table.text(2);
}

/// All reads of one operator.
struct InventedReads {
  std::set<std::size_t> phases;  // by their places in the profile
  int64_t times = 0;
  int64_t bytes = 0;
};

std::string phases_of(const InventedReads& reads, const RankProfile& profile) {
  const auto name = [&](std::size_t place) {
    return place < profile.phases.size() ? profile.phases[place].name : "end";
  };
  std::string first = name(*reads.phases.begin());
  if (reads.phases.size() == 1) return first;
  return fmt::format("{} to {}", first, name(*reads.phases.rbegin()));
}

std::string invented_text(const RankProfile& profile) {
  if (profile.program->invented_reads.empty()) return "";
  std::map<std::string, InventedReads> readers;
  for (const auto& read : profile.program->invented_reads) {
    InventedReads& reads = readers[read.reader.empty() ? "(no operator)" : read.reader];
    const auto phase = std::find_if(profile.phases.begin(),
                                    profile.phases.end(),
                                    [&](const auto& known) { return known.name == read.phase; });
    reads.phases.insert(static_cast<std::size_t>(phase - profile.phases.begin()));
    reads.times += read.count;
    reads.bytes += read.bytes * read.count;
  }
  Table table({{"read by", Align::kLeft}, {"times"}, {"bytes"}, {"in", Align::kLeft}});
  for (const auto& [reader, reads] : readers) {
    table.add_row(
        {reader, with_commas(reads.times), with_commas(reads.bytes), phases_of(reads, profile)});
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

/// What the program was told of its device's time, and what it chose by it.
std::string times_text(const ProgramRecord& program, bool is_verbose) {
  constexpr std::size_t kShown = 3;
  if (!program.has_timed_events) return "";
  std::string text =
      "times between its events (computed): of what ran between them, alone and at full speed\n";
  const std::size_t all = program.tuned.size();
  const std::size_t shown = is_verbose ? all : std::min(kShown, all);
  for (std::size_t i = 0; i < shown; ++i) {
    const estimator::TunedRecord& tuned = program.tuned[i];
    text += fmt::format("  by these it chose, of {} ways for {}: {}\n",
                        with_commas(tuned.tried),
                        tuned.name,
                        tuned.choice);
  }
  if (shown < all) text += fmt::format("  and {} more (--verbose lists them)\n", all - shown);
  return text;
}

/// "  0.47 GiB allocator, reserved (simulated) + 0.49 GiB CUDA context (assumed) + ..."
std::string terms_text(const estimator::RankClassEstimate& row) {
  std::string text;
  for (const estimator::MemoryTerm& term : row.terms) {
    text += fmt::format("{}{} {} ({})",
                        text.empty() ? "  " : " + ",
                        format_gib(term.value_bytes),
                        term.name,
                        estimator::to_string(term.source));
  }
  return text + "\n";
}

/// Which process, world and device the profile is of.
std::string place_text(const RankProfile& profile) {
  const ProgramRecord& program = *profile.program;
  std::string text = fmt::format("rank {} of {} on cuda:{} of {}, {} optimizer steps{}{}\n",
                                 profile.rank,
                                 profile.world_size,
                                 program.device_index,
                                 profile.device.name,
                                 program.optimizer_steps,
                                 program.stopped_by_steps ? ", then ended (--steps)" : "",
                                 program.events.empty() ? "" : ", events " + program.events);
  if (estimator::trains_alone(profile)) text += estimator::alone_text(profile) + "\n";
  for (const estimator::OtherDevice& other : program.other_devices) {
    text += fmt::format("it used cuda:{} too: at most {} reserved there\n",
                        other.index,
                        format_gib(other.reserved_peak_bytes));
  }
  if (program.caught_failures > 0) {
    text += fmt::format(
        "{} of its requests for memory {} refused, and it went on: what it did after that is "
        "judged\n",
        with_commas(program.caught_failures),
        program.caught_failures == 1 ? "was" : "were");
  }
  if (program.outside_bytes > 0) {
    text += fmt::format(
        "{} of the device were taken from the start, for CUDA's context and "
        "libraries\n",
        format_gib(program.outside_bytes));
  }
  return text;
}

}  // namespace

std::string program_verdict(const RankProfile& profile) {
  if (const auto problem = estimator::lacks_verdict(profile)) {
    return problem->what + "\n";
  }
  if (const auto reason = estimator::ran_out(profile)) {
    return fmt::format("does not fit: {}\n", *reason);
  }
  const estimator::ProgramEstimate estimate = estimator::estimate_program_memory({profile});
  return verdict_text(estimate.verdict) + terms_text(estimate.ranks.front());
}

estimator::Verdict verdict_of_program(const RankProfile& profile) {
  estimator::Verdict verdict = estimator::estimate_program_memory({profile}).verdict;
  if (estimator::ran_out(profile)) verdict.outcome = estimator::Fit::kDoesNotFit;
  return verdict;
}

std::string program_text(const RankProfile& profile, bool is_verbose) {
  const ProgramRecord& program = *profile.program;
  std::string text = program_verdict(profile) + place_text(profile) + "\n";
  if (!program.recorded) return text;
  text += phases_text(profile) + allocator_text(profile);
  if (!program.attention.empty()) {
    text += fmt::format("attention: {}\n", fmt::join(program.attention, ", "));
  }
  text += times_text(program, is_verbose);
  text += assumed_line(program) + collectives_text(program);
  if (!is_verbose) return text;
  return text + absent_text(program) + assumed_text(program) + invented_text(profile);
}

}  // namespace sim
