// Where experts have memory for more tokens than come (--moe-expert-rank-capacity-factor), what
// their layers keep for the backward goes to pages that the tokens which came fill
// (--moe-paged-stash, megatron/core/transformer/moe/paged_stash.py). A stream of its own copies it
// there after the layer, and back while the layer before it in the schedule runs backward. A layer
// whose backward comes next keeps its tensors.
//
// The first iteration counts how many layers keep something at the same time, and keeps copies of
// the rows that came; the pages are made before the second one.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "estimator/plan/plan.h"
#include "models/shard/side_stream.h"

namespace models {

/// A tensor that a layer keeps: `width` elements for each row that there is memory for, or where it
/// has scales, for each block of rows.
struct StashedTensor {
  at::Tensor tensor;
  int64_t block = 1;  ///< rows
};

class PagedStash {
 public:
  /// What one layer keeps of one micro-batch.
  struct Layer {
    std::vector<StashedTensor> kept;
    int64_t number = 0;  ///< of the forward in the iteration
    int64_t rows = 0;    ///< that came
    bool is_in_pages = false;
    std::vector<std::vector<int64_t>> shapes;  ///< of what is in pages
    std::vector<at::TensorOptions> options;
    std::vector<at::Tensor> pages;  ///< numbers of the pages of each tensor
  };

  PagedStash(const estimator::Plan& plan, const at::Device& device, Observer& observer);

  void begin_iteration();
  /// Before a layer's forward, and after it, when it has the tensors that it keeps.
  void begin_forward();
  void end_forward(const std::shared_ptr<Layer>& layer);
  /// Before its backward, when its tensors are back, and after it.
  void begin_backward(const std::shared_ptr<Layer>& layer);
  void end_backward(const std::shared_ptr<Layer>& layer);

 private:
  /// Tensors of one type, and of one width, share pages.
  struct Width {
    c10::ScalarType type;
    int64_t elements;
    auto operator<=>(const Width&) const = default;
  };
  struct Pages {
    at::Tensor memory, free, all;
  };
  struct Filled {
    int64_t rows = 0, mean_rows = 0;
  };

  Width width_of(const StashedTensor& kept) const;
  void count(const Layer& layer);
  void keep_rows_that_came(Layer& layer) const;
  void restore_memory(Layer& layer) const;
  void make_pages();
  void free_copied();
  bool next_is_backward() const;
  void copy_to_pages(const std::shared_ptr<Layer>& layer);
  void copy_next_back();
  void copy(const StashedTensor& kept, int64_t rows, const at::Tensor& pages, bool is_back);

  const estimator::Plan& plan_;
  at::Device device_;
  Observer& observer_;
  SideStream copies_;
  int64_t iteration_ = 0, forwards_ = 0, in_flight_ = 0, most_in_flight_ = 0;
  /// Of the first iteration: numbers of forwards, and of backwards negative.
  std::vector<int64_t> schedule_;
  std::size_t place_ = 0;
  std::map<Width, Filled> of_layer_;
  std::map<Width, Pages> pages_;
  std::map<int64_t, std::shared_ptr<Layer>> layers_;
  std::vector<at::Tensor> copied_;  ///< whose copies may still be made
  bool copies_are_made_ = false;
};

/// Null if the plan has none, and where kernels compute.
std::shared_ptr<PagedStash> make_paged_stash(const estimator::Plan& plan,
                                             const at::Device& device,
                                             Observer& observer,
                                             bool device_computes);

}  // namespace models
