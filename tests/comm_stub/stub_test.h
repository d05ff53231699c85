// What the tests of the stub share: groups, recorded calls, small tensors.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <string>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <vector>

#include "comm_stub/stub_backend.h"

namespace comm_stub {

// gtest finds these by name.
inline void PrintTo(const at::Tensor& tensor, std::ostream* out) { *out << tensor; }

class StubTest : public testing::Test {
 protected:
  using Kind = estimator::CollectiveKind;
  using Tensors = std::vector<at::Tensor>;
  using Backend = c10::intrusive_ptr<c10d::Backend>;

  /// Member `member_index` of a data group of `size` ranks.
  Backend stub(int64_t size, int64_t member_index, StubOptions options = {}) {
    const estimator::RankGroup group{
        .kind = estimator::GroupKind::kData, .first = 0, .spans = {{.count = size, .stride = 8}}};
    auto sink = [this](const estimator::CollectiveCall& call) { calls.push_back(call); };
    return make_stub_backend(group, member_index, sink, std::move(options));
  }

  /// The message of the refusal; "" if the call went through. Nothing refused is recorded.
  template <class Call>
  std::string refusal(const Call& call) {
    calls.clear();
    try {
      call();
    } catch (const c10::ValueError& error) {
      EXPECT_TRUE(calls.empty()) << "a refused call was recorded";
      return error.what_without_backtrace();
    }
    return "";
  }

  std::vector<estimator::CollectiveCall> calls;
};

inline at::Tensor floats(std::vector<float> values) { return at::tensor(values); }
inline at::Tensor longs(std::vector<int64_t> values) { return at::tensor(values); }
/// Elements that a call must overwrite.
inline at::Tensor unwritten(at::IntArrayRef sizes, at::ScalarType type = at::kFloat) {
  return at::full(sizes, 99, type);
}

/// Same dtype, sizes and elements.
inline testing::AssertionResult same(const at::Tensor& found, const at::Tensor& expected) {
  if (found.scalar_type() == expected.scalar_type() && found.equal(expected)) {
    return testing::AssertionSuccess();
  }
  return testing::AssertionFailure() << "found\n" << found << "\nexpected\n" << expected;
}

}  // namespace comm_stub
