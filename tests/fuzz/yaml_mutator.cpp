// For targets whose inputs are YAML: changes of the tree, written in one of YAML's ways.
#include "estimator/base/errors.h"
#include "sim/cli/values/yaml_tree.h"
#include "tests/fuzz/json_mutation.h"

namespace fuzz {
namespace {

using estimator::Json;

std::string write_yaml(const Json& tree, size_t indent, Random& random);

/// "\n" and a line for each child, which `begin_line` begins.
template <class BeginLine>
std::string write_block(const Json& tree, size_t indent, Random& random, BeginLine begin_line) {
  std::string text;
  for (const auto& item : tree.items()) {
    text += '\n';
    text.append(indent, ' ');
    text += begin_line(item) + write_yaml(item.value(), indent + 2, random);
  }
  return text;
}

std::string write_yaml(const Json& tree, size_t indent, Random& random) {
  const bool is_flow = !tree.is_structured() || tree.empty() || random.one_in(12);
  if (tree.is_string() && random.one_in(2)) return tree.get<std::string>();  // unquoted
  if (is_flow) return write_json(tree);
  if (tree.is_array()) {
    return write_block(tree, indent, random, [](const auto&) { return std::string("- "); });
  }
  return write_block(
      tree, indent, random, [](const auto& item) { return write_json(item.key()) + ": "; });
}

}  // namespace
}  // namespace fuzz

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data,
                                          size_t size,
                                          size_t most_bytes,
                                          unsigned seed) {
  fuzz::Random random(seed);
  std::string text(reinterpret_cast<const char*>(data), size);
  try {
    estimator::Json tree = sim::parse_yaml(text, "corpus");
    for (uint64_t changes = 1 + random.below(3); changes > 0; --changes) {
      fuzz::mutate_tree(tree, random);
    }
    text = fuzz::write_yaml(tree, 0, random);
  } catch (const estimator::UserError&) {
    return LLVMFuzzerMutate(data, size, most_bytes);
  }
  if (!fuzz::write_input(data, most_bytes, text)) return size;
  return random.one_in(2) ? LLVMFuzzerMutate(data, text.size(), most_bytes) : text.size();
}
