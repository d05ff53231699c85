#include "models/shard/paged_stash.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>
#include <c10/util/accumulate.h>

#include <cmath>
#include <utility>

#include "estimator/base/units.h"
#include "estimator/plan/fused_experts.h"
#include "models/shard/kernel_scope.h"

namespace models {

PagedStash::PagedStash(const estimator::Plan& plan, const at::Device& device, Observer& observer)
    : plan_(plan), device_(device), observer_(observer), copies_(device, &observer) {}

/// paged_stash_reset()
void PagedStash::begin_iteration() {
  ++iteration_;
  forwards_ = 0;
  place_ = 0;
  if (iteration_ == 1 || of_layer_.empty()) return;
  if (pages_.empty()) make_pages();
  for (const auto& [width, pages] : pages_) pages.free.copy_(pages.all);
}

PagedStash::Width PagedStash::width_of(const StashedTensor& kept) const {
  const int64_t rows = *estimator::expert_row_budget(plan_) / kept.block;
  return {kept.tensor.scalar_type(), kept.tensor.numel() / rows};
}

/// on_save_for_backward(), while it counts.
void PagedStash::count(const Layer& layer) {
  most_in_flight_ = std::max(most_in_flight_, ++in_flight_);
  if (!of_layer_.empty()) return;
  for (const StashedTensor& kept : layer.kept) {
    Filled& filled = of_layer_[width_of(kept)];
    filled.rows += layer.rows / kept.block;
    filled.mean_rows += estimator::mean_expert_rows(plan_) / kept.block;
  }
}

/// Without pages, tensors of the rows that came are made, and copied.
void PagedStash::keep_rows_that_came(Layer& layer) const {
  for (StashedTensor& kept : layer.kept) {
    const int64_t elements = layer.rows / kept.block * width_of(kept).elements;
    layer.shapes.push_back(kept.tensor.sizes().vec());
    const at::Tensor rows = at::empty({elements}, kept.tensor.options());
    kept.tensor = rows.copy_(kept.tensor.view(-1).narrow(0, 0, elements));
  }
}

/// torch.nn.functional.pad() of it.
void PagedStash::restore_memory(Layer& layer) const {
  for (std::size_t i = 0; i < layer.kept.size(); ++i) {
    at::Tensor& rows = layer.kept[i].tensor;
    const c10::ScalarType type = rows.scalar_type();
    const at::Tensor plain = rows.element_size() == 1 ? rows.view(at::kByte) : rows;
    const int64_t missing = c10::multiply_integers(layer.shapes[i]) - rows.numel();
    rows = at::constant_pad_nd(plain, {0, missing}).view(type).view(layer.shapes[i]);
  }
}

/// allocate_stash_buffers() and PagedStashBuffer.
void PagedStash::make_pages() {
  const estimator::TrainingConfig& t = plan_.training;
  const double factor = t.moe_paged_stash_buffer_size_factor_cuda;
  const c10::NoGradGuard no_grad;
  for (const auto& [width, filled] : of_layer_) {
    const int64_t of_layer = factor >= 0 ? filled.mean_rows : filled.rows;
    const auto rows =
        static_cast<int64_t>(static_cast<double>(most_in_flight_ * of_layer) * std::abs(factor));
    const int64_t pages = estimator::divide_up(rows, t.moe_paged_stash_page_size);
    const auto options = at::TensorOptions().device(device_);
    const int64_t held = pages * t.moe_paged_stash_page_size;
    const Pages made{.memory = at::empty({held, width.elements}, options.dtype(width.type)),
                     .free = at::arange(pages, options.dtype(at::kLong)),
                     .all = at::arange(pages, options.dtype(at::kLong))};
    for (const at::Tensor& tensor : {made.memory, made.free, made.all}) {
      observer_.memory_lasts(tensor, {estimator::MemoryCategory::kWorkspace, "paged_stash", ""});
    }
    pages_.emplace(width, made);
  }
}

/// wait_for_stash_to_complete()
void PagedStash::free_copied() {
  if (!std::exchange(copies_are_made_, false)) return;
  copies_.join();
  copied_.clear();
}

bool PagedStash::next_is_backward() const {
  return place_ < schedule_.size() && schedule_[place_] < 0;
}

void PagedStash::begin_forward() { free_copied(); }

void PagedStash::end_forward(const std::shared_ptr<Layer>& layer) {
  const c10::NoGradGuard no_grad;
  layer->number = ++forwards_;
  layers_[layer->number] = layer;
  if (iteration_ <= 1) {
    count(*layer);
    schedule_.push_back(layer->number);
    return keep_rows_that_came(*layer);
  }
  ++place_;
  if (next_is_backward() && schedule_[place_] == -layer->number) return;
  copy_to_pages(layer);
  if (next_is_backward()) copy_next_back();
}

void PagedStash::begin_backward(const std::shared_ptr<Layer>& layer) {
  const c10::NoGradGuard no_grad;
  if (iteration_ <= 1) {
    schedule_.push_back(-layer->number);
    --in_flight_;
    return restore_memory(*layer);
  }
  ++place_;
  free_copied();
  copies_.join();
}

void PagedStash::end_backward(const std::shared_ptr<Layer>& layer) {
  layers_.erase(layer->number);
  if (iteration_ > 1 && next_is_backward()) copy_next_back();
}

/// offload_to_stash() and reload_from_stash(): a Triton kernel, of as many rows as came.
void PagedStash::copy(const StashedTensor& kept,
                      int64_t rows,
                      const at::Tensor& pages,
                      bool is_back) {
  const Width width = width_of(kept);
  const at::Tensor part = kept.tensor.view(-1).narrow(0, 0, rows / kept.block * width.elements);
  const at::Tensor page = pages_.at(width).memory.view(-1).narrow(0, 0, part.numel());
  KernelScope kernel(is_back ? "megatron::paged_stash_pop" : "megatron::paged_stash_copy");
  is_back ? kernel.moves({page, pages}, {part}) : kernel.moves({part}, {page, pages});
}

void PagedStash::copy_to_pages(const std::shared_ptr<Layer>& layer) {
  const int64_t size = plan_.training.moe_paged_stash_page_size;
  const int64_t pages = estimator::divide_up(*estimator::expert_row_budget(plan_), size);
  copies_.wait_for_current();
  const SideStream::Scope beside(copies_);
  for (StashedTensor& kept : layer->kept) {
    layer->pages.push_back(at::empty({pages}, kept.tensor.options().dtype(at::kLong)));
    layer->pages.back().zero_();
    copy(kept, layer->rows, layer->pages.back(), /*is_back=*/false);
    layer->shapes.push_back(kept.tensor.sizes().vec());
    layer->options.push_back(kept.tensor.options());
    copied_.push_back(std::exchange(kept.tensor, {}));
  }
  layer->is_in_pages = true;
  copies_are_made_ = true;
}

/// reload_paged_tensors(): memory is of the current stream.
void PagedStash::copy_next_back() {
  Layer& layer = *layers_.at(-schedule_[place_]);
  if (!std::exchange(layer.is_in_pages, false)) return;
  for (std::size_t i = 0; i < layer.kept.size(); ++i) {
    layer.kept[i].tensor = at::empty(layer.shapes[i], layer.options[i]);
  }
  copies_.wait_for_current();
  const SideStream::Scope beside(copies_);
  for (std::size_t i = 0; i < layer.kept.size(); ++i) {
    copy(layer.kept[i], layer.rows, layer.pages[i], /*is_back=*/true);
  }
}

std::shared_ptr<PagedStash> make_paged_stash(const estimator::Plan& plan,
                                             const at::Device& device,
                                             Observer& observer,
                                             bool device_computes) {
  if (!plan.training.moe_paged_stash || device_computes) return nullptr;
  return std::make_shared<PagedStash>(plan, device, observer);
}

}  // namespace models
