#include "models/shard/output_keeper.h"

#include <stdexcept>

namespace models {
namespace {

/// The same memory under other tensors, since autograd writes into those that a function returns.
OutputKeeper::Outputs other_tensors_of(const OutputKeeper::Outputs& outputs) {
  OutputKeeper::Outputs others;
  for (const at::Tensor& output : outputs) {
    others.push_back(output.defined() ? output.variable_data() : output);
  }
  return others;
}

}  // namespace

OutputKeeper::Scope::Scope(OutputKeeper* keeper, Kept* kept) : keeper_(keeper) {
  if (keeper_ == nullptr) return;
  if (keeper_->kept_ != nullptr) throw std::logic_error("a recomputed segment inside another");
  keeper_->kept_ = kept;
  keeper_->recompute_ = !kept->empty();
  keeper_->products_ = 0;
  policy_.emplace();
}

OutputKeeper::Scope::~Scope() {
  if (keeper_ != nullptr) keeper_->kept_ = nullptr;
}

OutputKeeper::Outputs OutputKeeper::keep(const std::function<Outputs()>& run) {
  if (kept_ == nullptr) return run();
  if (!recompute_) {
    Outputs outputs = run();
    kept_->push_back(other_tensors_of(outputs));
    return outputs;
  }
  if (kept_->empty()) throw std::logic_error("a recompute has more operators than its forward");
  Outputs outputs = std::move(kept_->front());
  kept_->pop_front();
  return outputs;
}

at::Tensor OutputKeeper::keep_product(const std::function<at::Tensor()>& run) {
  const bool is_kept = ++products_ % 2 == 1;
  return is_kept ? keep([&] { return Outputs{run()}; }).front() : run();
}

}  // namespace models
