// The replayed step of a program, drawn with characters.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "estimator/cluster/program_replay.h"

namespace sim {

/// F forward, R recompute, B backward, G reduction of gradients, O optimizer, c copies between host
/// and GPU, ~ communication. Seconds are from the start of the iteration.
struct StreamWork {
  char letter = '?';
  double begin_seconds = 0;
  double end_seconds = 0;
};

/// What one stream of a rank does in the iteration.
struct StreamTrack {
  int64_t rank = 0;
  int64_t stream = 0;
  std::vector<StreamWork> works;
};
std::vector<StreamTrack> stream_tracks(const estimator::ProgramReplay& replayed);

/// A line for each stream of each rank that was replayed, `columns` wide as a whole, with a legend.
/// At the end of a line stands how much of the step the stream works.
std::string program_timeline_text(const estimator::ProgramReplay& replayed, int columns);

}  // namespace sim
