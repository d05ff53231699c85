#include "tests/fuzz/text_mutation.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <stdexcept>

namespace fuzz {
namespace {

constexpr std::string_view kBetweenWords = " ,:=\r\n\t[]{}()\"";
constexpr size_t kLongestPiece = 200;
/// Deep nesting and long lists are made of one piece many times.
constexpr size_t kMostRepeats = 100'000;

std::string random_bytes(Random& random) {
  std::string bytes(1 + random.below(4), '\0');
  for (char& byte : bytes) byte = static_cast<char>(random.below(256));
  return bytes;
}

/// A word, or a few bytes where there is no dictionary.
std::string word(const Material& material, Random& random) {
  return material.words.empty() ? random_bytes(random) : random.pick(material.words);
}

std::string piece_of(const std::string& text, Random& random) {
  return text.substr(random.below(text.size() + 1), 1 + random.below(kLongestPiece));
}

void change_byte(std::string& text, size_t at, const Material&, Random& random) {
  if (at == text.size()) return;
  text[at] = random.one_in(2) ? static_cast<char>(text[at] ^ (1 << random.below(8)))
                              : static_cast<char>(random.below(256));
}
void insert_bytes(std::string& text, size_t at, const Material&, Random& random) {
  text.insert(at, random_bytes(random));
}
void cut_out(std::string& text, size_t at, const Material&, Random& random) {
  text.erase(at, 1 + random.below(kLongestPiece));
}
void cut_off(std::string& text, size_t at, const Material&, Random&) { text.resize(at); }
void insert_word(std::string& text, size_t at, const Material& material, Random& random) {
  text.insert(at, word(material, random));
}
void exchange_word(std::string& text, size_t at, const Material& material, Random& random) {
  const size_t before = text.find_first_of(kBetweenWords, at);
  if (before == std::string::npos) return insert_word(text, at, material, random);
  const size_t after = std::min(text.find_first_of(kBetweenWords, before + 1), text.size());
  text.replace(before + 1, after - before - 1, word(material, random));
}
void copy_within(std::string& text, size_t at, const Material&, Random& random) {
  text.insert(at, piece_of(text, random));
}
void take_from_another(std::string& text, size_t at, const Material& material, Random& random) {
  text.insert(at, piece_of(random.pick(material.corpus), random));
}
void repeat(std::string& text, size_t at, const Material& material, Random& random) {
  const std::string piece =
      random.one_in(2) ? word(material, random) : text.substr(at, 1 + random.below(16));
  const size_t most = random.one_in(20) ? kMostRepeats : 20;
  std::string all;
  for (size_t times = 1 + random.below(most); times > 0; --times) all += piece;
  text.insert(at, all);
}

using Mutation = void (*)(std::string&, size_t at, const Material&, Random&);
/// Words twice as often: they come through the reader's first checks.
constexpr Mutation kMutations[] = {change_byte,
                                   insert_bytes,
                                   cut_out,
                                   cut_off,
                                   copy_within,
                                   take_from_another,
                                   repeat,
                                   insert_word,
                                   insert_word,
                                   exchange_word,
                                   exchange_word,
                                   exchange_word};

/// The text between the first and the last quotation mark of a line, with its escapes read.
std::string unescaped(const std::string& line) {
  const size_t first = line.find('"');
  const size_t last = line.rfind('"');
  const auto wrong = [&] { return std::runtime_error("no word of a dictionary: " + line); };
  if (first == std::string::npos || first == last) throw wrong();
  std::string text;
  for (size_t at = first + 1; at < last; ++at) {
    if (line[at] != '\\') {
      text += line[at];
    } else if (line[++at] == 'x' && at + 2 < last) {
      text += static_cast<char>(std::stoi(line.substr(at + 1, 2), nullptr, 16));
      at += 2;
    } else if (line[at] == '\\' || line[at] == '"') {
      text += line[at];
    } else {
      throw wrong();
    }
  }
  return text;
}

}  // namespace

std::vector<std::string> read_dictionary(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read the dictionary " + path);
  std::vector<std::string> words;
  for (std::string line; std::getline(file, line);) {
    if (!line.empty() && line[0] != '#') words.push_back(unescaped(line));
  }
  return words;
}

void mutate_text(std::string& text, size_t most_bytes, const Material& material, Random& random) {
  random.pick(kMutations)(text, random.below(text.size() + 1), material, random);
  if (text.size() > most_bytes) text.resize(most_bytes);
}

}  // namespace fuzz
