#include "models/data_parallel/buckets.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "estimator/base/units.h"

namespace models {
namespace {

constexpr int64_t kParameterAlignment = 64;  // elements: 128 bytes of bf16
constexpr int64_t kBucketAlignment = 128;    // elements: 256 bytes of bf16

int64_t bucket_multiple(const BufferShape& shape) {
  return shape.sharded ? std::lcm(shape.data_ranks, kBucketAlignment) : 1;
}

/// As Megatron-LM's `shared_embedding`.
bool is_alone(const Parameter& parameter, const BufferShape& shape) {
  return shape.sharded && &parameter == shape.tied;
}

bool closes_before(const Parameter& parameter, const Bucket& bucket, const BufferShape& shape) {
  if (bucket.slots.empty()) return false;
  return parameter.chunk != bucket.chunk || is_alone(parameter, shape);
}

bool is_cut(int64_t chunk, const BufferShape& shape) {
  return shape.bucket_elements > 0 && (chunk == 0 || shape.cut_later_chunks);
}

bool is_full(const Bucket& bucket, int64_t end, const BufferShape& shape) {
  return is_cut(bucket.chunk, shape) && end - bucket.begin >= shape.bucket_elements;
}

/// About what its Newton-Schulz steps cost.
int64_t cost_of(const Parameter& matrix) {
  const int64_t rows = matrix.value.size(0), columns = matrix.value.size(1);
  return rows * columns * std::min(rows, columns);
}

/// Matrices, dealt out to data ranks, bucket by bucket.
class MatrixDealer {
 public:
  explicit MatrixDealer(const BufferShape& shape)
      : ranks_(shape.data_ranks),
        part_multiple_(std::lcm(kParameterAlignment,
                                std::lcm(shape.data_ranks, kBucketAlignment) / shape.data_ranks)),
        costs_(ranks_, 0) {}

  /// The next bucket, from element `begin` on.
  Bucket deal(ParameterList matrices, int64_t begin) {
    parts_.assign(ranks_, {});
    ends_.assign(ranks_, 0);
    int64_t elements = 0;
    for (const Parameter* matrix : matrices) elements += matrix->value.numel();
    constexpr double kImbalance = 1.3;
    const double most = static_cast<double>(elements) / static_cast<double>(ranks_) * kImbalance;
    std::stable_sort(matrices.begin(), matrices.end(), [](const auto* one, const auto* other) {
      return cost_of(*one) > cost_of(*other);
    });
    for (Parameter* matrix : matrices) give(*matrix, most);
    return bucket_of_parts(begin, matrices.front()->chunk);
  }

  int64_t padded_part(int64_t elements) const {
    return estimator::round_up(elements, part_multiple_);
  }

 private:
  static int64_t end_with(int64_t end, const Parameter& matrix) {
    return estimator::round_up(end, kParameterAlignment) + matrix.value.numel();
  }

  void give(Parameter& matrix, double most) {
    std::size_t to = ranks_;
    for (std::size_t rank = 0; rank < ranks_; ++rank) {
      const bool has_room = static_cast<double>(end_with(ends_[rank], matrix)) <= most;
      if (has_room && (to == ranks_ || costs_[rank] < costs_[to])) to = rank;
    }
    if (to == ranks_) to = std::min_element(ends_.begin(), ends_.end()) - ends_.begin();
    ends_[to] = end_with(ends_[to], matrix);
    costs_[to] += cost_of(matrix);
    parts_[to].push_back(&matrix);
  }

  Bucket bucket_of_parts(int64_t begin, int64_t chunk) const {
    const int64_t part = padded_part(*std::max_element(ends_.begin(), ends_.end()));
    Bucket bucket{.begin = begin,
                  .end = begin + part * static_cast<int64_t>(ranks_),
                  .chunk = chunk,
                  .slots = {}};
    for (std::size_t rank = 0; rank < ranks_; ++rank) {
      int64_t end = begin + part * static_cast<int64_t>(rank);
      for (Parameter* matrix : parts_[rank]) {
        end = end_with(end, *matrix);
        bucket.slots.push_back(
            {.parameter = matrix, .begin = end - matrix->value.numel(), .end = end});
      }
    }
    return bucket;
  }

  std::size_t ranks_;
  int64_t part_multiple_;
  std::vector<int64_t> costs_;  ///< of each rank, in all buckets so far
  std::vector<ParameterList> parts_;
  std::vector<int64_t> ends_;
};

/// Which matrices go into a bucket: it is told of one after the other.
class MatrixCollection {
 public:
  MatrixCollection(const MatrixDealer& dealer, const BufferShape& shape)
      : dealer_(dealer), shape_(shape), ends_(shape.data_ranks, 0) {}

  bool takes(const Parameter& matrix) const {
    if (matrices_.empty() || !is_cut(matrix.chunk, shape_)) return true;
    constexpr double kFill = 0.9;  // of as many parts as its largest matrix makes
    const auto floor =
        static_cast<int64_t>(static_cast<double>(shape_.data_ranks * largest_) * kFill);
    if (elements_ < std::max(shape_.bucket_elements, floor)) return true;
    const int64_t fullest = *std::max_element(ends_.begin(), ends_.end());
    return end_of_emptiest(matrix) <= dealer_.padded_part(fullest);
  }

  void take(Parameter& matrix) {
    *std::min_element(ends_.begin(), ends_.end()) = end_of_emptiest(matrix);
    matrices_.push_back(&matrix);
    elements_ += matrix.value.numel();
    largest_ = std::max(largest_, matrix.value.numel());
  }

  const ParameterList& matrices() const { return matrices_; }

 private:
  int64_t end_of_emptiest(const Parameter& matrix) const {
    const int64_t emptiest = *std::min_element(ends_.begin(), ends_.end());
    return estimator::round_up(emptiest, kParameterAlignment) + matrix.value.numel();
  }

  const MatrixDealer& dealer_;
  const BufferShape& shape_;
  ParameterList matrices_;
  std::vector<int64_t> ends_;
  int64_t elements_ = 0, largest_ = 0;
};

}  // namespace

std::vector<Bucket> lay_out_buckets(const ParameterList& parameters, const BufferShape& shape) {
  const int64_t parameter_multiple = shape.sharded ? kParameterAlignment : 1;
  std::vector<Bucket> buckets(1);
  int64_t end = 0;
  const auto close = [&] {
    end = estimator::round_up(end, bucket_multiple(shape));
    buckets.back().end = end;
    buckets.push_back({.begin = end, .end = end, .chunk = 0, .slots = {}});
  };
  for (auto place = parameters.rbegin(); place != parameters.rend(); ++place) {
    Parameter& parameter = **place;
    if (closes_before(parameter, buckets.back(), shape)) close();
    const int64_t begin = estimator::round_up(end, parameter_multiple);
    end = begin + parameter.value.numel();
    buckets.back().chunk = parameter.chunk;
    buckets.back().slots.push_back({.parameter = &parameter, .begin = begin, .end = end});
    if (is_full(buckets.back(), end, shape) || is_alone(parameter, shape)) close();
  }
  if (buckets.back().slots.empty())
    buckets.pop_back();
  else
    buckets.back().end = estimator::round_up(end, bucket_multiple(shape));
  return buckets;
}

std::vector<Bucket> packed_buckets(std::vector<Bucket> buckets,
                                   const BufferShape& shape,
                                   int64_t elements_in_one) {
  int64_t end = 0;
  for (Bucket& bucket : buckets) {
    bucket.begin = end;
    for (ParameterSlot& slot : bucket.slots) {
      const int64_t elements = (slot.end - slot.begin) / elements_in_one;
      slot.begin = estimator::round_up(end, kParameterAlignment);
      slot.end = end = slot.begin + elements;
    }
    bucket.end = end = estimator::round_up(end, bucket_multiple(shape));
  }
  return buckets;
}

std::vector<Bucket> lay_out_reducer_buckets(const ParameterList& parameters,
                                            const ReducerShape& shape,
                                            bool reversed) {
  std::vector<ParameterList> groups;
  int64_t elements = 0;
  for (Parameter* parameter : parameters) {
    const bool is_full = elements >= (groups.size() == 1 ? shape.first : shape.others);
    if (groups.empty() || is_full) {
      groups.emplace_back();
      elements = 0;
    }
    groups.back().push_back(parameter);
    elements += parameter->value.numel();
  }
  if (reversed) std::reverse(groups.begin(), groups.end());
  std::vector<Bucket> buckets;
  int64_t end = 0;
  for (const ParameterList& group : groups) {
    Bucket& bucket = buckets.emplace_back();
    bucket.begin = end;
    for (Parameter* parameter : group) {
      const int64_t begin = std::exchange(end, end + parameter->value.numel());
      bucket.slots.push_back({.parameter = parameter, .begin = begin, .end = end});
    }
    bucket.end = end;
    bucket.chunk = group.front()->chunk;
  }
  return buckets;
}

std::vector<Bucket> lay_out_matrices(const ParameterList& parameters, const BufferShape& shape) {
  std::vector<Bucket> buckets;
  MatrixDealer dealer(shape);
  std::optional<MatrixCollection> collection;
  const auto close = [&] {
    if (!collection) return;
    const int64_t begin = buckets.empty() ? 0 : buckets.back().end;
    buckets.push_back(dealer.deal(collection->matrices(), begin));
    collection.reset();
  };
  for (auto place = parameters.rbegin(); place != parameters.rend(); ++place) {
    if (collection && !collection->takes(**place)) close();
    if (!collection) collection.emplace(dealer, shape);
    collection->take(**place);
  }
  close();
  return buckets;
}

}  // namespace models
