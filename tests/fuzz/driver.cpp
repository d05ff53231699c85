// Drives a fuzz target where libFuzzer is not: every file of the corpus as it is, then mutated
// ones. Input number n of a seed is the same in every run, so that a finding can be had again.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/json_mutation.h"
#include "tests/fuzz/text_mutation.h"
#include "tests/fuzz/worker.h"

extern "C" {
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
__attribute__((weak)) size_t LLVMFuzzerCustomMutator(uint8_t* data,
                                                     size_t size,
                                                     size_t most_bytes,
                                                     unsigned seed);

/// Freed memory that is kept for reports must not count as the reader's.
const char* __asan_default_options() { return "quarantine_size_mb=16:max_allocation_size_mb=1024"; }
}

namespace fuzz {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kEnoughFindings = 20;

struct Options {
  std::vector<std::string> corpus;
  std::string dictionary;
  std::string findings = "fuzz-findings";
  uint32_t seed = std::random_device()();
  int64_t count = 1'000;
  double seconds = 3600;
  Limits limits;
};

/// How a reader must take an input.
enum class Expected { kAny, kAccepted, kRefused };

/// The inputs that the changed ones are made from, and how each is to be taken as it is.
struct Corpus {
  std::vector<fs::path> files;
  std::vector<Expected> expected;
};

Corpus corpus_of_run;
/// What LLVMFuzzerMutate() has no argument for: of the input that is being made.
const Material* material_of_input = nullptr;
Random* random_of_input = nullptr;

std::string read_bytes(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path.string());
  return {std::istreambuf_iterator<char>(file), {}};
}

void add_folder(Corpus& corpus, const fs::path& folder, Expected expected) {
  std::vector<fs::path> files{fs::directory_iterator(folder), fs::directory_iterator()};
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files) {
    if (fs::is_directory(file)) {
      const bool is_of_refused = file.filename() == "refused";
      add_folder(corpus, file, is_of_refused ? Expected::kRefused : expected);
    } else {
      corpus.files.push_back(file);
      corpus.expected.push_back(expected);
    }
  }
}

/// Of a folder, the files must be accepted, but those of its folder "refused" refused.
Corpus find_corpus(const std::vector<std::string>& paths) {
  Corpus corpus;
  for (const std::string& path : paths) {
    if (fs::is_directory(path)) {
      add_folder(corpus, path, Expected::kAccepted);
    } else {
      corpus.files.emplace_back(path);
      corpus.expected.push_back(Expected::kAny);
    }
  }
  return corpus;
}

void check_expected(int64_t index, bool is_accepted) {
  const auto number = static_cast<size_t>(index);
  if (number >= corpus_of_run.files.size() || corpus_of_run.expected[number] == Expected::kAny)
    return;
  if (is_accepted == (corpus_of_run.expected[number] == Expected::kAccepted)) return;
  fail(fmt::format("{} of the corpus is {}",
                   corpus_of_run.files[number].string(),
                   is_accepted ? "accepted" : "refused: " + last_refusal()));
}

std::string mutated(std::string input, Random& random) {
  random_of_input = &random;
  size_t size = input.size();
  input.resize(Worker::kMostInputBytes);
  auto* bytes = reinterpret_cast<uint8_t*>(input.data());
  if (LLVMFuzzerCustomMutator != nullptr) {
    const auto seed = static_cast<unsigned>(random.below(uint64_t{1} << 32));
    size = LLVMFuzzerCustomMutator(bytes, size, input.size(), seed);
  } else {
    size = LLVMFuzzerMutate(bytes, size, input.size());
  }
  input.resize(size);
  return input;
}

/// Input number `index`: first the files of the corpus, then one of them, changed.
std::string input_of(uint32_t seed, int64_t index) {
  const auto number = static_cast<size_t>(index);
  if (number < material_of_input->corpus.size()) return material_of_input->corpus[number];
  std::seed_seq mixed{seed, static_cast<uint32_t>(number), static_cast<uint32_t>(number >> 32)};
  uint32_t words[2];
  mixed.generate(words, words + 2);
  Random random(uint64_t{words[0]} << 32 | words[1]);
  return mutated(random.pick(material_of_input->corpus), random);
}

void test(int64_t index, const std::string& input) {
  const int64_t accepted_before = accepted_inputs();
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
  check_expected(index, accepted_inputs() > accepted_before);
}

std::string program_name() { return fs::read_symlink("/proc/self/exe").filename(); }

void report(const Finding& finding, const Options& options) {
  fs::create_directories(options.findings);
  const std::string file =
      fmt::format("{}/{}-{}-{}", options.findings, program_name(), options.seed, finding.index);
  std::ofstream(file, std::ios::binary) << finding.input;
  fmt::print("finding: {}\n  input {} of --seed {}\n  again: {} --count 0 {}\n",
             finding.what,
             finding.index,
             options.seed,
             program_name(),
             file);
  std::fflush(stdout);  // else the next worker writes it again
}

/// Whether all went well. A run in which nothing is accepted tests no more than refusals.
bool run(const Options& options) {
  const double began = now();
  const auto corpus_files = static_cast<int64_t>(material_of_input->corpus.size());
  const int64_t end = corpus_files + options.count;
  Worker worker([&](int64_t index) { return input_of(options.seed, index); }, test, options.limits);
  Progress progress;
  int64_t findings = 0;
  while (progress.next < end && now() < began + options.seconds && findings < kEnoughFindings) {
    const auto finding = worker.run(progress.next, end, began + options.seconds, progress);
    if (!finding) continue;
    report(*finding, options);
    ++findings;
  }
  fmt::print("{}: {} inputs, {} accepted, {} findings, {:.0f} s, --seed {}\n",
             program_name(),
             progress.next,
             progress.accepted,
             findings,
             now() - began,
             options.seed);
  const bool reaches_the_uses = progress.accepted > 0 || options.count == 0;
  if (!reaches_the_uses) fmt::print("no input was accepted: is the corpus out of date?\n");
  return findings == 0 && reaches_the_uses;
}

Options parse(int argc, char** argv) {
  Options options;
  CLI::App app("Feeds a reader of Onerank with the files of a corpus, and with changes of them.");
  app.add_option("CORPUS", options.corpus, "files, or folders of files")
      ->required()
      ->check(CLI::ExistingPath);
  app.add_option("--dictionary", options.dictionary, "words, in libFuzzer's format");
  app.add_option("--findings", options.findings, "folder for inputs that end badly");
  app.add_option("--seed", options.seed, "of the changes; default: another one each time");
  app.add_option("--count", options.count, "changed inputs after the corpus (default 1,000)");
  app.add_option("--seconds", options.seconds, "to stop after");
  app.add_option("--input-seconds", options.limits.seconds, "of processor time for one input");
  app.add_option("--input-bytes", options.limits.bytes, "of memory while it runs");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error) == 0 ? 0 : 2);
  }
  return options;
}

}  // namespace
}  // namespace fuzz

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t most_bytes) {
  std::string text(reinterpret_cast<const char*>(data), size);
  fuzz::Random& random = *fuzz::random_of_input;
  for (uint64_t changes = 1 + random.below(4); changes > 0; --changes) {
    fuzz::mutate_text(text, most_bytes, *fuzz::material_of_input, random);
  }
  std::copy(text.begin(), text.end(), data);
  return text.size();
}

int main(int argc, char** argv) {
  try {
    const fuzz::Options options = fuzz::parse(argc, argv);
    fuzz::corpus_of_run = fuzz::find_corpus(options.corpus);
    fuzz::Material material;
    for (const auto& file : fuzz::corpus_of_run.files)
      material.corpus.push_back(fuzz::read_bytes(file));
    if (!options.dictionary.empty()) material.words = fuzz::read_dictionary(options.dictionary);
    fuzz::material_of_input = &material;
    return fuzz::run(options) ? 0 : 1;
  } catch (const std::exception& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return 2;
  }
}
