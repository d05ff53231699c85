#include "models/data_parallel/joined_data_parallel.h"

#include <iterator>

namespace models {
namespace {

template <class T>
void append(std::vector<T>& all, std::vector<T> more) {
  all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

}  // namespace

JoinedDataParallel::JoinedDataParallel(std::vector<std::unique_ptr<DataParallel>> parts,
                                       bool chained)
    : parts_(std::move(parts)), chained_(chained) {}

void JoinedDataParallel::begin_iteration() {
  for (const auto& part : parts_) part->begin_iteration();
}

void JoinedDataParallel::start_last_micro_batch(int64_t chunk) {
  for (const auto& part : parts_) part->start_last_micro_batch(chunk);
}

void JoinedDataParallel::start_backward() {
  for (const auto& part : parts_) part->start_backward();
}

void JoinedDataParallel::finish_backward() {
  for (const auto& part : parts_) part->finish_backward();
}

void JoinedDataParallel::finish_chunk(int64_t chunk) {
  for (const auto& part : parts_) part->finish_chunk(chunk);
}

void JoinedDataParallel::start_gathering_chunk(int64_t chunk) {
  for (const auto& part : parts_) part->start_gathering_chunk(chunk);
}

void JoinedDataParallel::free_chunk(int64_t chunk) {
  for (const auto& part : parts_) part->free_chunk(chunk);
}

void JoinedDataParallel::start_reducing_chunk(int64_t chunk) {
  for (const auto& part : parts_) part->start_reducing_chunk(chunk);
}

void JoinedDataParallel::start_reduction() {
  for (const auto& part : parts_) part->start_reduction();
}

void JoinedDataParallel::finish_reduction() {
  for (const auto& part : parts_) part->finish_reduction();
}

void JoinedDataParallel::gather_parameters() {
  for (const auto& part : parts_) part->gather_parameters();
}

void JoinedDataParallel::start_gathers(int64_t chunk, bool all) {
  for (const auto& part : parts_) part->start_gathers(chunk, all);
}

void JoinedDataParallel::before_unit(int64_t unit) {
  for (const auto& part : parts_) part->before_unit(unit);
}

void JoinedDataParallel::finish_gathers() {
  for (const auto& part : parts_) part->finish_gathers();
}

std::vector<OwnedPiece> JoinedDataParallel::owned_pieces() const {
  std::vector<OwnedPiece> pieces;
  for (const auto& part : parts_) append(pieces, part->owned_pieces());
  return pieces;
}

std::vector<OptimizerPiece> JoinedDataParallel::optimizer_pieces() const {
  std::vector<OptimizerPiece> pieces;
  for (const auto& part : parts_) append(pieces, part->optimizer_pieces());
  return pieces;
}

std::vector<at::Tensor> JoinedDataParallel::step_gradients(c10::ScalarType type) {
  std::vector<at::Tensor> gradients;
  for (const auto& part : parts_) append(gradients, part->step_gradients(type));
  return gradients;
}

int64_t JoinedDataParallel::parameter_padding() const {
  int64_t elements = 0;
  for (const auto& part : parts_) elements += part->parameter_padding();
  return elements;
}

int64_t JoinedDataParallel::gradient_padding() const {
  int64_t elements = 0;
  for (const auto& part : parts_) elements += part->gradient_padding();
  return elements;
}

}  // namespace models
