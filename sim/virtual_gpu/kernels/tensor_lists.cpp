#include "sim/virtual_gpu/kernels/tensor_lists.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/virtual_gpu/bytes.h"
#include "sim/virtual_gpu/demangled.h"

namespace virtual_gpu {
namespace {

constexpr uint64_t kBlocks = 320;  // that one launch has at most

struct TypeSize {
  std::string_view name;
  uint64_t bytes;
};
constexpr TypeSize kTypes[] = {{"float", 4},
                               {"double", 8},
                               {"__half", 2},
                               {"__nv_bfloat16", 2},
                               {"c10::Half", 2},
                               {"c10::BFloat16", 2},
                               {"short", 2},
                               {"unsigned char", 1},
                               {"__nv_fp8_e4m3", 1},
                               {"__nv_fp8_e5m2", 1}};

/// The elements of a list: their type, and how often each is moved.
struct ListUse {
  int type;  // place among the functor's types
  int times;
};
constexpr int kInt16 = -1;  // a type that is not among them

/// What a functor does to its lists, as its sources say. The number of its types tells the
/// libraries apart.
struct Functor {
  std::string_view name;
  size_t types;
  std::vector<ListUse> lists;
};

/// Adam has gradients, parameters, both moments, and master weights. With these, parameters are
/// only written.
const std::vector<Functor>& functors() {
  static const auto* const functors = new std::vector<Functor>{
      // TransformerEngine: parameter, gradient, full, moment, index
      {"AdamFunctor", 5, {{1, 1}, {0, 2}, {3, 2}, {3, 2}}},
      {"AdamFunctorMaster", 5, {{1, 1}, {0, 1}, {3, 2}, {3, 2}, {2, 2}}},
      // the same: gradient, full, moment, index; a parameter and 16 bits make its master weight
      {"AdamFunctorMasterParamRemainder", 4, {{0, 1}, {kInt16, 2}, {2, 2}, {2, 2}, {kInt16, 2}}},
      // older ones: parameter, gradient, full, index
      {"AdamFunctor", 4, {{1, 1}, {0, 2}, {2, 2}, {2, 2}}},
      {"AdamFunctorMaster", 4, {{1, 1}, {0, 1}, {2, 2}, {2, 2}, {2, 2}}},
      // DeepSpeed, and older ones of apex: one type
      {"AdamFunctor", 1, {{0, 1}, {0, 2}, {0, 2}, {0, 2}}},
      // all of them: what is read, what is written
      {"ScaleFunctor", 2, {{0, 1}, {1, 1}}},
      {"ScalePtrFunctor", 2, {{0, 1}, {1, 1}}},
  };
  return *functors;
}

/// "A<x>" and "B" of "name<A<x>, B>(...)".
std::vector<std::string_view> template_arguments(std::string_view text) {
  std::vector<std::string_view> arguments;
  size_t begin = text.find('<');
  if (begin++ == text.npos) return arguments;
  int depth = 1;
  for (size_t i = begin; i < text.size(); ++i) {
    const char at = text[i];
    if (at == '<' || at == '(') ++depth;
    if (at == '>' || at == ')') --depth;
    const bool ends = depth == 0;
    if (!ends && !(depth == 1 && at == ',')) continue;
    arguments.push_back(text.substr(begin, i - begin));
    if (ends) break;
    begin = i + 2;
  }
  return arguments;
}

std::optional<uint64_t> element_bytes(std::string_view name) {
  const auto* const found = std::find_if(std::begin(kTypes),
                                         std::end(kTypes),
                                         [&](const TypeSize& type) { return type.name == name; });
  return found == std::end(kTypes) ? std::nullopt : std::optional(found->bytes);
}

std::vector<ListUse> uses_of(std::string_view functor, size_t types, size_t lists) {
  for (const Functor& known : functors()) {
    if (known.name == functor && known.types == types && known.lists.size() == lists) {
      return known.lists;
    }
  }
  return std::vector<ListUse>(lists, ListUse{.type = 0, .times = 1});
}

/// The bytes that are moved for one element of every list; empty if a type is unknown.
std::optional<uint64_t> bytes_of_element(std::string_view functor, size_t lists) {
  const std::string_view whole_name = functor.substr(0, functor.find('<'));
  const size_t colon = whole_name.rfind(':');
  const std::string_view name =
      colon == whole_name.npos ? whole_name : whole_name.substr(colon + 1);
  const auto types = template_arguments(functor);
  uint64_t sum = 0;
  for (const ListUse& use : uses_of(name, types.size(), lists)) {
    if (use.type >= static_cast<int>(types.size())) return std::nullopt;
    const auto bytes = use.type == kInt16 ? 2 : element_bytes(types[static_cast<size_t>(use.type)]);
    if (!bytes) return std::nullopt;
    sum += *bytes * static_cast<uint64_t>(use.times);
  }
  return sum;
}

/// How many tensors one launch has at most. TransformerEngine and apex differ in six lists.
struct MostTensors {
  uint64_t lists;
  uint64_t tensors;
};
constexpr MostTensors kMostTensors[] = {
    {1, 110}, {2, 64}, {3, 48}, {4, 36}, {5, 30}, {6, 24}, {6, 26}, {7, 22}, {8, 20}};

/// Where things are in a TensorListMetadata.
class Layout {
 public:
  /// `size_bytes` are those of an element of `sizes`.
  Layout(MostTensors most, uint64_t size_bytes)
      : size_bytes_(size_bytes),
        sizes_(most.lists * most.tensors * sizeof(uint64_t)),
        block_to_tensor_(sizes_ + most.tensors * size_bytes),
        block_to_chunk_(block_to_tensor_ + kBlocks) {}

  /// Of the whole. With Float8, three more lists of addresses are behind it.
  uint64_t bytes(const MostTensors& most, bool has_float8) const {
    const uint64_t end = block_to_chunk_ + (kBlocks + 1) * sizeof(int32_t);
    const uint64_t padded = (end + sizeof(uint64_t) - 1) / sizeof(uint64_t) * sizeof(uint64_t);
    return padded + (has_float8 ? 3 * most.tensors * sizeof(uint64_t) : 0);
  }

  /// Of one list, in the chunks of the first `blocks` thread blocks.
  uint64_t elements(std::string_view metadata, int64_t chunk, uint64_t blocks) const {
    uint64_t sum = 0;
    for (uint64_t block = 0; block < std::min(blocks, kBlocks); ++block) {
      const auto tensor = read_at<uint8_t>(metadata, block_to_tensor_ + block);
      const auto number = read_at<int32_t>(metadata, block_to_chunk_ + block * sizeof(int32_t));
      const int64_t begin = std::max(0, number.value_or(0)) * chunk;
      const int64_t size = std::max<int64_t>(0, size_of(metadata, tensor.value_or(0)));
      sum += static_cast<uint64_t>(std::clamp<int64_t>(size - begin, 0, chunk));
    }
    return sum;
  }

 private:
  int64_t size_of(std::string_view metadata, uint64_t tensor) const {
    const uint64_t place = sizes_ + tensor * size_bytes_;
    return size_bytes_ == sizeof(int32_t) ? read_at<int32_t>(metadata, place).value_or(0)
                                          : read_at<int64_t>(metadata, place).value_or(0);
  }

  uint64_t size_bytes_;
  uint64_t sizes_;
  uint64_t block_to_tensor_;
  uint64_t block_to_chunk_;
};

/// Sizes have four bytes, or in newer versions of TransformerEngine eight: the bytes of the whole
/// tell it.
std::optional<Layout> find_layout(uint64_t bytes, uint64_t lists, bool has_float8) {
  for (const MostTensors& most : kMostTensors) {
    for (const uint64_t size_bytes : {sizeof(int32_t), sizeof(int64_t)}) {
      const Layout layout(most, size_bytes);
      if (most.lists == lists && layout.bytes(most, has_float8) == bytes) return layout;
    }
  }
  return std::nullopt;
}

/// "TensorListMetadata<4, false>": 4; 0 for another type.
uint64_t lists_in(std::string_view metadata_type) {
  const auto arguments = template_arguments(metadata_type);
  uint64_t lists = 0;
  if (metadata_type.starts_with("TensorListMetadata<") && !arguments.empty()) {
    std::from_chars(arguments[0].data(), arguments[0].data() + arguments[0].size(), lists);
  }
  return lists;
}

}  // namespace

uint64_t tensor_list_bytes(const ReadableLaunch& launch) {
  const ParameterBytes& sizes = launch.parameters;
  const bool has_chunk = sizes.size() >= 3 && (sizes[0] == 4 || sizes[0] == 8);
  const std::string name = demangled(launch.kernel);
  const auto types = template_arguments(name);
  const uint64_t lists = types.size() < 2 ? 0 : lists_in(types[0]);
  if (!has_chunk || lists == 0) return 0;
  int64_t chunk = 0;
  std::memcpy(&chunk, launch.arguments[0], sizes[0]);  // the rest of it stays 0
  const std::string_view metadata(static_cast<const char*>(launch.arguments[2]), sizes[2]);
  const auto layout = find_layout(sizes[2], lists, types[0].ends_with(", true>"));
  if (!layout || chunk <= 0 || chunk > INT32_MAX) return 0;
  return bytes_of_element(types[1], lists).value_or(0) *
         layout->elements(metadata, chunk, launch.shape.grid[0]);
}

}  // namespace virtual_gpu
