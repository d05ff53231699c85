#include "sim/cli/values/yaml_tree.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <optional>
#include <sstream>
#include <string_view>

#include "estimator/base/errors.h"
#include "estimator/base/fields.h"
#include "estimator/base/files.h"
#include "estimator/base/number_text.h"
#include "estimator/resolve/plan_tree.h"

namespace sim {
namespace {

using estimator::Json;
using estimator::UserError;

constexpr const char* kTooLarge = "a plan this deep or large";

class YamlReader {
 public:
  YamlReader(const std::string& origin, YamlReading reading) : origin_(origin), reading_(reading) {}

  Json read(const YAML::Node& node, int depth = 0) {
    // Aliases share nodes: a short text can stand for a tree without end.
    constexpr int kMostNodes = 100'000;
    if (depth > estimator::kDeepestPlan || ++nodes_ > kMostNodes) {
      fail(node.Mark(), kTooLarge, "write it without so many aliases");
    }
    switch (node.Type()) {
      case YAML::NodeType::Map:
        return read_map(node, depth);
      case YAML::NodeType::Sequence:
        return read_sequence(node, depth);
      case YAML::NodeType::Scalar:
        return read_scalar(node);
      default:
        return nullptr;
    }
  }

  [[noreturn]] void fail(const YAML::Mark& mark, const std::string& what, std::string help) const {
    throw UserError({.what = fmt::format("{} is not a valid YAML plan: {}", origin_, what),
                     .where = fmt::format("line {}, column {}", mark.line + 1, mark.column + 1),
                     .help = std::move(help)});
  }

 private:
  Json read_map(const YAML::Node& map, int depth) {
    Json object = Json::object();
    for (const auto& entry : map) {
      if (!entry.first.IsScalar())
        fail(entry.first.Mark(), "a key is not text", "write key: value");
      if (object.size() >= estimator::kMostKeys) {
        fail(entry.first.Mark(),
             fmt::format("more than {} keys in one place", estimator::kMostKeys),
             "see `onerank schema plan` for those that there are");
      }
      const std::string& key = entry.first.Scalar();
      if (object.contains(key) && reading_ == YamlReading::kStrict) {
        fail(
            entry.first.Mark(), fmt::format("the key {} stands twice", key), "keep one of the two");
      }
      object[key] = read(entry.second, depth + 1);
    }
    return object;
  }

  Json read_sequence(const YAML::Node& sequence, int depth) {
    Json array = Json::array();
    for (const auto& item : sequence) array.push_back(read(item, depth + 1));
    return array;
  }

  /// resolver.py of PyYAML.
  static std::optional<bool> switch_of(std::string_view text) {
    constexpr std::array<std::string_view, 9> kOn = {
        "true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"};
    constexpr std::array<std::string_view, 9> kOff = {
        "false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"};
    if (std::find(kOn.begin(), kOn.end(), text) != kOn.end()) return true;
    if (std::find(kOff.begin(), kOff.end(), text) != kOff.end()) return false;
    return std::nullopt;
  }

  Json read_scalar(const YAML::Node& node) const {
    const std::string& text = node.Scalar();
    const bool quoted = node.Tag() == "!";
    if (quoted) return text;
    if (text == "null" || text == "~" || text.empty()) return nullptr;
    if (text == "true" || text == "false") return text == "true";
    if (reading_ == YamlReading::kAsPython) {
      if (const auto is_on = switch_of(text)) return *is_on;
    }
    if (text.find_first_not_of("0123456789+-.eE") != std::string::npos) return text;
    if (const auto whole = estimator::parse_number<int64_t>(text)) return *whole;
    if (const auto real = estimator::parse_number<double>(text)) return *real;
    return text;
  }

  const std::string& origin_;
  YamlReading reading_;
  int nodes_ = 0;
};

/// Looks at the structure alone, before any tree is built: yaml-cpp gives some malformed texts
/// documents without end, and follows nesting down to the end of its stack.
class StructureCheck : public YAML::EventHandler {
 public:
  explicit StructureCheck(const YamlReader& reader) : reader_(reader) {}

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1) {
      reader_.fail(mark, "a second document begins", "give each plan its own file");
    }
  }
  void OnSequenceStart(const YAML::Mark& mark,
                       const std::string&,
                       YAML::anchor_t,
                       YAML::EmitterStyle::value) override {
    enter(mark);
  }
  void OnMapStart(const YAML::Mark& mark,
                  const std::string&,
                  YAML::anchor_t,
                  YAML::EmitterStyle::value) override {
    enter(mark);
  }
  void OnSequenceEnd() override { --depth_; }
  void OnMapEnd() override { --depth_; }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&,
                const std::string&,
                YAML::anchor_t,
                const std::string&) override {}

 private:
  void enter(const YAML::Mark& mark) {
    if (++depth_ > estimator::kDeepestPlan)
      reader_.fail(mark, kTooLarge, "see `onerank list plans`");
  }

  const YamlReader& reader_;
  int documents_ = 0;
  int depth_ = 0;
};

void check_structure(const std::string& text, const YamlReader& reader) {
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  StructureCheck check(reader);
  for (int document = 0; document < 2 && parser.HandleNextDocument(check);) ++document;
}

}  // namespace

Json parse_yaml(const std::string& text, const std::string& origin, YamlReading reading) {
  YamlReader reader(origin, reading);
  try {
    check_structure(text, reader);
    return reader.read(YAML::Load(text));
  } catch (const YAML::Exception& error) {
    reader.fail(error.mark, error.msg, "see `onerank list plans` for complete examples");
  }
}

}  // namespace sim
