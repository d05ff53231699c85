// Each struct lists its fields once. Reading, writing and the JSON Schema all come from that list.
// Reading is strict: unknown and missing keys, wrong types and numbers out of range are reported
// with the place where they stand.
//
//     template <class Visitor> void visit_fields(Visitor& visit, ClusterConfig& cluster) {
//       visit("gpu", cluster.gpu, "name of a GPU, see `onerank list gpus`");
//       visit("nodes", cluster.nodes, {"machines", Range{1, 1e6}});
//     }
//
// A field of type std::optional that is absent stays empty; `null` and "auto" read as empty.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "estimator/base/errors.h"
#include "estimator/base/field_types.h"

namespace estimator {

/// Which keys a document must have. People leave keys out of plans. A document that Onerank wrote
/// has all keys, except those of empty optionals.
enum class RequiredKeys { kNoKeys, kAllButOptional };

/// Reads JSON into structs and collects the problems that it finds. It keeps the first ones and
/// counts the others, so that even a large damaged document gives a short message.
class FieldReader {
 public:
  /// `origin` names the document in messages: a file name, or "command line".
  explicit FieldReader(std::string origin, RequiredKeys required = RequiredKeys::kNoKeys)
      : origin_(std::move(origin)), required_(required) {}

  template <class T>
  void read(const Json& json, T& value, const std::string& path, Range range = {}) {
    read(json, &value, kFieldType<T>, path, range);
  }

  /// `value` is the address of a value of `type`.
  void read(
      const Json& json, void* value, const FieldType& type, const std::string& path, Range range);

  void report(const std::string& path,
              std::string what,
              const std::string& found,
              std::string help);
  void throw_if_any() const;

 private:
  class ObjectReader;

  void read_optional(
      const Json& json, void* value, const FieldType& type, const std::string& path, Range range);
  void read_list(
      const Json& json, void* value, const FieldType& type, const std::string& path, Range range);
  void read_choice(const Json& json, void* value, const FieldType& type, const std::string& path);
  void read_object(const Json& json, void* value, const FieldType& type, const std::string& path);
  void read_switch(const Json& json, bool& value, const std::string& path);
  void read_whole(const Json& json, int64_t& value, const std::string& path, Range range);
  void read_real(const Json& json, double& value, const std::string& path, Range range);
  void read_text(const Json& json, std::string& value, const std::string& path);
  void check_range(const Json& json, const std::string& path, Range range);

  std::string origin_;
  RequiredKeys required_;
  std::vector<Problem> problems_;
  int64_t left_out_ = 0;  ///< number of problems that are not in problems_
};

/// The JSON as text, shortened so that a message can show it.
std::string shown(const Json& json);

/// `value` is the address of a value of `type`.
Json to_json(const void* value, const FieldType& type, const char* key);

/// What holds where a document leaves out a key: the value of a new object, of which `value` is the
/// address. Null if it is empty, or not in the range, so that the key has to be given.
Json default_json(const char* key, const void* value, const FieldType& type, Range range);

/// Writes a struct as JSON; empty optionals are left out. Throws std::logic_error for a number that
/// is not finite, because JSON cannot hold it; `key` names the number in the message.
template <class T>
Json to_json(const T& value, const char* key = "") {
  return to_json(&value, kFieldType<T>, key);
}

}  // namespace estimator
