#include "sim/virtual_gpu/cudnn/descriptor.h"

#include <algorithm>
#include <utility>

namespace virtual_gpu::cudnn {

const Attribute* Node::find(int name) const {
  const auto place = std::find_if(attributes.begin(), attributes.end(), [&](const Attribute& each) {
    return each.name == name;
  });
  return place == attributes.end() ? nullptr : &*place;
}

void Node::set(Attribute attribute) {
  for (Attribute& each : attributes) {
    if (each.name != attribute.name) continue;
    each = std::move(attribute);
    return;
  }
  attributes.push_back(std::move(attribute));
}

void Node::set_number(int name, int type, int64_t value) {
  Attribute attribute{.name = name, .type = type, .count = 1};
  attribute.bytes.resize(element_bytes(type));
  std::memcpy(attribute.bytes.data(), &value, attribute.bytes.size());  // little-endian
  set(std::move(attribute));
}

void Node::set_node(int name, NodePtr node) {
  set({.name = name, .type = kDescriptorType, .count = 1, .bytes = {}, .nodes = {std::move(node)}});
}

NodePtr Node::node(int name) const {
  const Attribute* found = find(name);
  return found == nullptr || found->nodes.empty() ? nullptr : found->nodes.front();
}

int64_t Node::number(int name, int64_t otherwise) const {
  const Attribute* found = find(name);
  if (found == nullptr || found->bytes.empty()) return otherwise;
  int64_t value = 0;
  std::memcpy(&value, found->bytes.data(), std::min(found->bytes.size(), sizeof value));
  return value;
}

std::vector<int64_t> Node::numbers(int name) const {
  const Attribute* found = find(name);
  if (found == nullptr || found->bytes.empty()) return {};
  std::vector<int64_t> values(found->bytes.size() / sizeof(int64_t));
  std::memcpy(values.data(), found->bytes.data(), values.size() * sizeof(int64_t));
  return values;
}

std::size_t element_bytes(int attribute_type) {
  switch (attribute_type) {
    case kBooleanType:
    case kCharType:
      return 1;
    case kHandleType:
    case kInt64Type:
    case kDoubleType:
    case kPointerType:
    case kDescriptorType:
      return 8;
    case kFractionType:
      return 16;
    default:
      return 4;
  }
}

int64_t data_type_bytes(DataType type) {
  switch (type) {
    case DataType::kDouble:
    case DataType::kInt64:
      return 8;
    case DataType::kFloat:
    case DataType::kInt32:
      return 4;
    case DataType::kHalf:
    case DataType::kBfloat16:
      return 2;
    default:
      return 1;
  }
}

int64_t TensorShape::elements() const {
  int64_t product = 1;
  for (const int64_t dim : dims) product *= dim;
  return product;
}

int64_t TensorShape::bytes() const { return elements() * data_type_bytes(type); }

TensorShape shape_of(const Node& tensor) {
  return {.type = static_cast<DataType>(tensor.number(kTensorDataType)),
          .dims = tensor.numbers(kTensorDims),
          .strides = tensor.numbers(kTensorStrides)};
}

}  // namespace virtual_gpu::cudnn
