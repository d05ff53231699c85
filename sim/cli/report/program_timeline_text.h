// The replayed step of a program, drawn with characters.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "estimator/program/program_replay.h"

namespace sim {

/// F forward, R recompute, B backward, G reduction of gradients, O optimizer, c copies between host
/// and GPU, ~ communication. Seconds are from the begin of ProgramReplay::span() on every rank.
struct StreamWork {
  char letter = '?';
  double begin_seconds = 0;
  double end_seconds = 0;
};

/// What one stream of a rank does in the iteration, and when the rank begins and ends it.
struct StreamTrack {
  int64_t rank = 0;
  int64_t stream = 0;
  double begin_seconds = 0;
  double end_seconds = 0;
  std::vector<StreamWork> works;
};
std::vector<StreamTrack> stream_tracks(const estimator::ProgramReplay& replayed);

/// "A step takes 120.70 ms; from ...": that pictures of all ranks are longer than a step; else "".
std::string span_note(const estimator::ProgramReplay& replayed);

/// A line for each stream of each rank that was replayed, `columns` wide as a whole, with a legend.
/// One column is the same time on all ranks; a rank that is in another step has blanks. At the end
/// of a line stands how much of the step the stream works.
std::string program_timeline_text(const estimator::ProgramReplay& replayed, int columns);

}  // namespace sim
