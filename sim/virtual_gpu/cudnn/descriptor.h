#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "sim/virtual_gpu/cudnn/cudnn_types.h"

/// The descriptors of cuDNN's backend: bags of attributes that refer to one another.
namespace virtual_gpu::cudnn {

struct Node;
using NodePtr = std::shared_ptr<const Node>;

struct Attribute {
  int name = 0;
  int type = 0;
  int64_t count = 0;
  std::vector<char> bytes;     ///< of values
  std::vector<NodePtr> nodes;  ///< of descriptors
};

/// The content of a descriptor. Others that refer to it keep it alive, as in cuDNN.
struct Node {
  Kind kind = Kind::kTensor;
  std::vector<Attribute> attributes;  ///< in the order in which they were set
  bool is_final = false;

  /// The attribute, or nullptr.
  const Attribute* find(int name) const;
  /// Replaces the attribute, or adds it.
  void set(Attribute attribute);
  void set_number(int name, int type, int64_t value);
  void set_node(int name, NodePtr node);

  /// The first descriptor of an attribute, or nullptr.
  NodePtr node(int name) const;
  /// The first value of an attribute of 4 or 8 bytes, or of a boolean; `otherwise` if it is not
  /// set.
  int64_t number(int name, int64_t otherwise = 0) const;
  std::vector<int64_t> numbers(int name) const;
};

/// What a program holds (cudnnBackendDescriptor_t).
struct Descriptor {
  std::shared_ptr<Node> node;
};

/// Bytes of one element of an attribute's type (cudnnBackendAttributeType_t).
std::size_t element_bytes(int attribute_type);

/// A tensor's shape. Strides are in elements.
struct TensorShape {
  DataType type = DataType::kFloat;
  std::vector<int64_t> dims;
  std::vector<int64_t> strides;

  int64_t elements() const;
  int64_t bytes() const;
};

int64_t data_type_bytes(DataType type);

/// The shape of a tensor's descriptor.
TensorShape shape_of(const Node& tensor);

}  // namespace virtual_gpu::cudnn
