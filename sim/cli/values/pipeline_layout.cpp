#include "sim/cli/values/pipeline_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "estimator/base/errors.h"
#include "sim/cli/values/strict_number.h"

namespace sim {
namespace {

using estimator::UserError;

constexpr std::size_t kMostLetters = 1'000'000;

[[noreturn]] void refuse_layout(const std::string& where, const std::string& help) {
  throw UserError({.what = "the layout does not describe the pipeline",
                   .where = fmt::format("{} = {}", kPipelineLayoutFlag, where),
                   .help = help});
}

/// What "*N" after a piece repeats.
enum class Piece { kGroup, kLetter };

/// The digits of "*29" at `at`; empty if it is no repetition.
std::string_view times_at(std::string_view text, std::size_t at) {
  if (at >= text.size() || text[at] != '*') return {};
  const std::string_view rest = text.substr(at + 1);
  return rest.substr(0, std::min(rest.find_first_not_of("0123456789"), rest.size()));
}

/// Writes each piece that "*N" follows N times.
std::string repeated_pieces(std::string_view text, Piece piece) {
  std::string result;
  while (!text.empty()) {
    const bool opens = piece == Piece::kGroup && text.front() == '(';
    const std::size_t close = opens ? text.find(')') : 0;
    const bool is_piece = piece == Piece::kLetter || (opens && close != std::string_view::npos);
    const std::string_view times = is_piece ? times_at(text, close + 1) : std::string_view();
    const std::string_view letters =
        opens && is_piece ? text.substr(1, close - 1) : text.substr(0, 1);
    if (times.empty() || letters.empty()) {
      result += text.front();
      text.remove_prefix(1);
      continue;
    }
    const int64_t count = parse_whole_number(std::string(times), kPipelineLayoutFlag);
    if (count > static_cast<int64_t>(kMostLetters / letters.size())) {
      refuse_layout(fmt::format("...{}*{}", letters, times), "repeat it less often");
    }
    for (int64_t i = 0; i < count; ++i) result += letters;
    if (result.size() > kMostLetters) refuse_layout("...", "use fewer layers");
    text.remove_prefix(close + 2 + times.size());
  }
  return result;
}

}  // namespace

std::string unrolled_layout(const std::string& text) {
  std::string letters = text;
  std::erase(letters, ',');
  return repeated_pieces(repeated_pieces(letters, Piece::kGroup), Piece::kLetter);
}

std::vector<int64_t> layers_of_layout(const std::string& text,
                                      const LayoutModel& model,
                                      int64_t stages) {
  const std::string unrolled = unrolled_layout(text);
  if (const std::size_t at = unrolled.find_first_not_of("Etm|L"); at != std::string::npos) {
    refuse_layout(fmt::format("{}: \"{}\"", text, unrolled[at]),
                  "use E (embedding), t (layer), m (multi-token prediction), L (loss), | (next "
                  "stage) and (...)*N");
  }
  std::vector<int64_t> of_stage(1, 0);
  std::string held = unrolled;
  std::erase(held, '|');
  for (const char letter : unrolled) {
    if (letter == '|') of_stage.push_back(0);
    if (letter == 't') ++of_stage.back();
  }
  const auto given = std::count(held.begin(), held.end(), 't');
  const auto predictions = std::count(held.begin(), held.end(), 'm');
  const auto times = [](char letter, int64_t count) {
    return std::string(static_cast<std::size_t>(count), letter);
  };
  if (held != "E" + times('t', given) + times('m', predictions) + "L") {
    refuse_layout(text, "begin with one E (embedding), and end with one L (loss), after all m");
  }
  if (predictions != model.predictions) {
    refuse_layout(fmt::format("{}: {} layers of multi-token prediction; the plan has {}",
                              text,
                              predictions,
                              model.predictions),
                  fmt::format("give --mtp-num-layers {}, or write as many m", predictions));
  }
  if (unrolled.find('m') < unrolled.rfind('|') && unrolled.rfind('|') != std::string::npos) {
    refuse_layout(text + ": multi-token prediction on a stage without the loss is not modelled",
                  "write all m on the last stage, before the L");
  }
  const auto count = static_cast<int64_t>(of_stage.size());
  if (given != model.layers || count % stages != 0) {
    refuse_layout(fmt::format("{}: {} layers on {} stages; the plan has {} layers, {} stages",
                              text,
                              given,
                              count,
                              model.layers,
                              stages),
                  "write as many t as layers, and as many stages or a multiple of them "
                  "(virtual stages)");
  }
  return of_stage;
}

}  // namespace sim
