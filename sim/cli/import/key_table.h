// What the keys of other programs mean for a plan, as tables (data/*.json). A key is modelled (it
// writes a key of the plan), or has no effect on memory and time, or belongs to a technique that
// has an effect and is not modelled.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "estimator/base/option.h"
#include "sim/cli/import/source_entry.h"

namespace sim {

struct KeyCondition {
  std::string key;
  std::vector<std::string> values;
};
template <class Visitor>
void visit_fields(Visitor& visit, KeyCondition& condition) {
  visit("key", condition.key, "another key of the file");
  visit("values", condition.values, "one of which it has");
}

/// A row without a technique and without a path is for keys without effect.
struct KeyRow {
  std::vector<std::string> keys;
  std::vector<std::string> only;
  std::vector<std::string> unless;
  std::vector<KeyCondition> when;
  std::string technique;
  std::string path;
  std::string constant;
  std::string words;
  int64_t added = 0;
  std::string note;
};
template <class Visitor>
void visit_fields(Visitor& visit, KeyRow& row) {
  visit("keys", row.keys, "names of the key; * stands for any letters");
  visit("only", row.only, "the row holds for these values alone");
  visit("unless", row.unless, "the row does not hold for these values, which change nothing");
  visit("when", row.when, "the row holds only where another key has one of these values");
  visit("technique", row.technique, "what the key asks for is not modelled; see techniques.json");
  visit("path", row.path, "the key of the plan that it writes");
  visit("constant", row.constant, "what it writes, if not its own value");
  visit("words", row.words, "its words for the plan's: yarn=rope,adam=adamw");
  visit("added", row.added, "to its number, the first one of several");
  visit("note", row.note, "what the estimate leaves out, said with it");
}

struct Technique {
  std::string name;
  std::string what;
  std::string errs;
};
template <class Visitor>
void visit_fields(Visitor& visit, Technique& technique) {
  visit("name", technique.name, "as --ignore takes it");
  visit("what", technique.what, "what it is");
  visit("errs", technique.errs, "how the real run differs from an estimate without it");
}

/// A value that holds where the file does not have the key.
struct DefaultRow {
  std::string key;
  std::string value;
  std::vector<std::string> when;
  std::vector<std::string> unless;
};
template <class Visitor>
void visit_fields(Visitor& visit, DefaultRow& row) {
  visit("key", row.key, "the key");
  visit("value", row.value, "its value; empty for a switch");
  visit("when",
        row.when,
        "only in files that have one of these keys, or a key with a value: key=value");
  visit("unless", row.unless, "not in files that have one of these keys");
}

/// What turns a switch on and off, in lower case.
struct SwitchWords {
  std::vector<std::string> yes = {};
  std::vector<std::string> no = {};
};

/// One program's keys. `flags`: whether its keys are also the plan's flags, as Megatron-LM's are.
struct KeyTable {
  std::string program;
  std::vector<KeyRow> rows;
  std::vector<DefaultRow> defaults;
  bool flags = false;
  SwitchWords switches = {};  ///< empty: true and false alone
};

const std::vector<Technique>& techniques();
/// Throws std::logic_error for a name that is not in techniques.json.
const Technique& technique_named(std::string_view name);

/// Reads the rows of a table that is compiled in, and makes their keys normal. `name` is the name
/// of its file.
std::vector<KeyRow> read_key_rows(std::string_view text, const std::string& name);

/// Lower or upper case as it is, with - for _.
std::string normal_key(std::string_view key);

}  // namespace sim
