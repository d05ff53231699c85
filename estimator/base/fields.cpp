#include "estimator/base/fields.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <stdexcept>
#include <string_view>

#include "estimator/base/units.h"

namespace estimator {
namespace {

/// Writes each field into an object.
class ObjectWriter : public FieldVisitor {
 public:
  Json object = Json::object();

 private:
  void visit(const char* key, void* value, const FieldType& type, const Option&) override {
    Json json = to_json(value, type, key);
    if (!json.is_null()) object[key] = std::move(json);
  }
};

Json list_json(const void* list, const FieldType& type, const char* key) {
  Json array = Json::array();
  const std::size_t size = type.size(list);
  for (std::size_t i = 0; i < size; ++i) {
    array.push_back(to_json(type.at(list, i), *type.inner, key));
  }
  return array;
}

double finite(double value, const char* key) {
  if (std::isfinite(value)) return value;
  throw std::logic_error(std::string("a document's number is not finite: ") + key);
}

}  // namespace

/// Reads each field from the object's value of that key.
class FieldReader::ObjectReader : public FieldVisitor {
 public:
  ObjectReader(FieldReader& reader, const Json& object, const std::string& path)
      : reader_(reader), prefix_(path.empty() ? "" : path + ".") {
    for (const auto& item : object.items()) items_.emplace(item.key(), &item.value());
  }

  /// After the last field.
  void report_unknown_keys() {
    if (items_.empty()) return;
    const std::vector<std::string> known(known_.begin(), known_.end());
    for (const auto& [key, value] : items_) {
      reader_.report(prefix_ + std::string(key), "unknown key", "", suggestion(key, known));
    }
  }

 private:
  void visit(const char* key, void* value, const FieldType& type, const Option& option) override {
    known_.push_back(key);
    if (const auto found = items_.find(key); found != items_.end()) {
      reader_.read(*found->second, value, type, prefix_ + key, option.range);
      items_.erase(found);
    } else if (reader_.required_ == RequiredKeys::kAllButOptional &&
               type.form != FieldForm::kOptional) {
      reader_.report(
          prefix_ + key, "a key is missing", "", std::string("it is needed: ") + option.help);
    }
  }

  FieldReader& reader_;
  std::string prefix_;
  std::map<std::string_view, const Json*> items_;  // finding a key in an ordered_json is a search
  std::vector<const char*> known_;
};

void FieldReader::read(
    const Json& json, void* value, const FieldType& type, const std::string& path, Range range) {
  switch (type.form) {
    case FieldForm::kSwitch:
      return read_switch(json, *static_cast<bool*>(value), path);
    case FieldForm::kWhole:
      return read_whole(json, *static_cast<int64_t*>(value), path, range);
    case FieldForm::kReal:
      return read_real(json, *static_cast<double*>(value), path, range);
    case FieldForm::kText:
      return read_text(json, *static_cast<std::string*>(value), path);
    case FieldForm::kChoice:
      return read_choice(json, value, type, path);
    case FieldForm::kOptional:
      return read_optional(json, value, type, path, range);
    case FieldForm::kList:
      return read_list(json, value, type, path, range);
    case FieldForm::kObject:
      return read_object(json, value, type, path);
    case FieldForm::kJson:
      return type.set_json(value, json);
  }
}

void FieldReader::read_optional(
    const Json& json, void* value, const FieldType& type, const std::string& path, Range range) {
  type.clear(value);
  if (json.is_null() || json == "auto") return;
  read(json, type.append(value), *type.inner, path, range);
}

void FieldReader::read_list(
    const Json& json, void* value, const FieldType& type, const std::string& path, Range range) {
  if (!json.is_array()) {
    report(path, "a list is needed here", shown(json), "write [ ... ]");
    return;
  }
  type.clear(value);
  for (std::size_t i = 0; i < json.size(); ++i) {
    read(json[i], type.append(value), *type.inner, path + "[" + std::to_string(i) + "]", range);
  }
}

void FieldReader::read_choice(const Json& json,
                              void* value,
                              const FieldType& type,
                              const std::string& path) {
  const std::string text = json.is_string() ? json.get<std::string>() : shown(json);
  if (json.is_string() && type.choose(value, text)) return;
  report(path, "unknown value", shown(json), suggestion(text, type.names()));
}

void FieldReader::read_object(const Json& json,
                              void* value,
                              const FieldType& type,
                              const std::string& path) {
  if (!json.is_object()) {
    report(path, "an object is needed here", shown(json), "write { \"key\": value, ... }");
    return;
  }
  ObjectReader fields(*this, json, path);
  type.visit(value, fields);
  fields.report_unknown_keys();
}

void FieldReader::read_switch(const Json& json, bool& value, const std::string& path) {
  if (!json.is_boolean()) {
    report(path, "true or false is needed here", shown(json), "write true or false");
    return;
  }
  value = json.get<bool>();
}

namespace {

/// What to write for `json`, which is no number, or not of the right kind.
std::string number_help(const Json& json, const char* example) {
  if (json.is_string()) {
    const Json number = Json::parse(json.get<std::string>(), nullptr, /*allow_exceptions=*/false);
    if (number.is_number()) return "write it without quotes: " + number.dump();
  }
  return std::string("write a number such as ") + example;
}

}  // namespace

void FieldReader::read_whole(const Json& json,
                             int64_t& value,
                             const std::string& path,
                             Range range) {
  if (!json.is_number() || !is_whole(json.get<double>())) {
    report(path, "a whole number is needed here", shown(json), number_help(json, "8"));
    return;
  }
  value = static_cast<int64_t>(json.get<double>());  // 15e12 tokens, as people write
  check_range(json, path, range);
}

void FieldReader::read_real(const Json& json, double& value, const std::string& path, Range range) {
  if (!json.is_number() || !std::isfinite(json.get<double>())) {
    report(path, "a finite number is needed here", shown(json), number_help(json, "0.1"));
    return;
  }
  value = json.get<double>();
  check_range(json, path, range);
}

void FieldReader::read_text(const Json& json, std::string& value, const std::string& path) {
  if (!json.is_string()) {
    report(path, "text is needed here", shown(json), "write it in quotes");
    return;
  }
  value = json.get<std::string>();
}

void FieldReader::report(const std::string& path,
                         std::string what,
                         const std::string& found,
                         std::string help) {
  if (problems_.size() >= kMostProblemsShown) {
    ++left_out_;
    return;
  }
  std::string where = origin_ + (path.empty() ? "" : ": " + path);
  if (!found.empty()) where += " = " + found;
  problems_.push_back({std::move(what), std::move(where), std::move(help)});
}

void FieldReader::throw_if_any() const {
  if (!problems_.empty()) throw UserError(and_more(problems_, left_out_));
}

void FieldReader::check_range(const Json& json, const std::string& path, Range range) {
  if (range.holds(json.get<double>())) return;
  report(path, kOutOfRange, shown(json), range_text(range));
}

Json to_json(const void* value, const FieldType& type, const char* key) {
  switch (type.form) {
    case FieldForm::kSwitch:
      return *static_cast<const bool*>(value);
    case FieldForm::kWhole:
      return *static_cast<const int64_t*>(value);
    case FieldForm::kReal:
      return finite(*static_cast<const double*>(value), key);
    case FieldForm::kText:
      return *static_cast<const std::string*>(value);
    case FieldForm::kChoice:
      return type.name(value);
    case FieldForm::kOptional:
      return type.size(value) == 0 ? Json(nullptr) : to_json(type.at(value, 0), *type.inner, key);
    case FieldForm::kList:
      return list_json(value, type, key);
    case FieldForm::kObject: {
      ObjectWriter writer;
      type.visit(const_cast<void*>(value), writer);  // the writer only reads
      return std::move(writer.object);
    }
    case FieldForm::kJson:
      return type.json(value);
  }
  throw std::logic_error("a field has no form");
}

Json default_json(const char* key, const void* value, const FieldType& type, Range range) {
  const Json json = to_json(value, type, key);
  return json.is_number() && !range.holds(json.get<double>()) ? Json() : json;
}

}  // namespace estimator
