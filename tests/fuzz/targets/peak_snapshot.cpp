// Peak snapshots, and what `onerank memory` makes of them.
#include "estimator/profile/peak_snapshot.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "tests/fuzz/arguments.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/input_file.h"
#include "tests/fuzz/json_mutation.h"

using estimator::Json;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return fuzz::read_and_use([&] {
    const auto snapshot = estimator::read_peak_snapshot(fuzz::as_text(data, size), "snapshot");
    fuzz::expect_sound_numbers(estimator::to_json(snapshot.header), "header");
    fuzz::expect_sound_numbers(estimator::to_json(snapshot.allocations), "allocations");
    const std::string written = estimator::to_json_lines(snapshot);
    if (estimator::to_json_lines(estimator::read_peak_snapshot(written, "again")) != written) {
      fuzz::fail("a snapshot reads back as another one");
    }
    const std::string& path = fuzz::in_file(data, size, ".jsonl");
    for (const char* by : {"category", "module", "tensor"}) {
      fuzz::use_command({"memory", path, "--by", by});
    }
  });
}

namespace {

/// The text with the sums of its allocations in its header, so that a changed allocation passes the
/// check of the whole. Throws Json::exception where there are none.
std::string with_true_sums(const std::string& text) {
  std::map<std::string, double> categories;
  double total = 0;
  const std::vector<std::string> lines = fuzz::lines_of(text);
  for (size_t i = 1; i < lines.size(); ++i) {
    const Json allocation = Json::parse(lines[i]);
    const auto bytes = allocation.at("bytes").get<double>();
    categories[allocation.at("category").get<std::string>()] += bytes;
    total += bytes;
  }
  Json header = Json::parse(text.substr(0, text.find('\n')));
  header["allocations"] = lines.size() - 1;
  header.at("peak")["allocated_bytes"] = total;
  for (auto& item : header.at("peak").at("categories").items()) {
    item.value() = categories[item.key()];
  }
  return fuzz::write_json(header) + text.substr(std::min(text.find('\n'), text.size()));
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data,
                                          size_t size,
                                          size_t most_bytes,
                                          unsigned seed) {
  size = fuzz::mutate_json_input(data, size, most_bytes, seed);
  if (seed % 2 == 0) return size;
  try {
    const std::string text = with_true_sums(std::string(fuzz::as_text(data, size)));
    if (text.size() > most_bytes) return size;
    std::memcpy(data, text.data(), text.size());
    return text.size();
  } catch (const Json::exception&) {
    return size;
  }
}
