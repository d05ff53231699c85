#include "models/attention/all_to_all_attention.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/tensor.h>
#include <torch/csrc/autograd/custom_function.h>

#include "models/shard/context_chunks.h"
#include "models/shard/kept_value.h"
#include "models/shard/side_stream.h"

namespace models {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Between this rank's rows of all heads and all rows of this rank's heads.
class HeadExchange {
 public:
  HeadExchange(std::shared_ptr<Communicator> group,
               int64_t sequence_dim,
               const at::Device& device,
               Observer& observer)
      : group_(std::move(group)), dim_(sequence_dim), unpacking_(device, &observer) {
    const std::vector<int64_t> chunks = chunks_by_rank(ranks());
    std::vector<int64_t> places(chunks.size());
    for (std::size_t place = 0; place < chunks.size(); ++place) {
      places[chunks[place]] = static_cast<int64_t>(place);
    }
    const auto numbers = at::TensorOptions().dtype(at::kInt);
    chunk_at_place_ = at::tensor(chunks, numbers).to(device);
    place_of_chunk_ = at::tensor(places, numbers).to(device);
  }

  /// [s/n rows, heads] -> [s rows, heads/n], of each tensor.
  variable_list to_heads(const variable_list& tensors) const {
    return exchange(
        tensors,
        [this](const at::Tensor& rows) {
          return rows.unflatten(-2, {ranks(), -1}).movedim(-3, 0).contiguous();
        },
        [this](const at::Tensor& by_rank) {
          const at::Tensor chunks = by_rank.movedim(0, dim_)
                                        .contiguous()
                                        .flatten(dim_, dim_ + 1)
                                        .unflatten(dim_, {2 * ranks(), -1});
          return chunks.index_select(dim_, place_of_chunk_).flatten(dim_, dim_ + 1);
        });
  }

  /// The way back.
  variable_list to_rows(const variable_list& tensors) const {
    return exchange(
        tensors,
        [this](const at::Tensor& heads) {
          const at::Tensor chunks =
              heads.unflatten(dim_, {2 * ranks(), -1}).movedim(dim_, 0).contiguous();
          return chunks.index_select(0, chunk_at_place_).unflatten(0, {ranks(), 2});
        },
        [this](const at::Tensor& by_rank) {  // [n, 2, s/2n and b, heads/n, d]
          const at::Tensor halves = by_rank.movedim(0, -3).movedim(0, dim_).contiguous();
          return halves.flatten(-3, -2).flatten(dim_, dim_ + 1);
        });
  }

  /// The numbers of this rank's heads (flash_attn_a2a_communicate_softmax_offset).
  at::Tensor own_heads(const at::Tensor& of_all) const {
    return of_all.chunk(ranks())[static_cast<std::size_t>(group_->index())].clone();
  }
  /// The gradients of all heads, each of all ranks' tokens, of which a rank is to have its share:
  /// those of all ranks are summed.
  at::Tensor of_all_heads(const at::Tensor& own, bool computes) const {
    at::Tensor all = at::empty({own.size(0) * ranks()}, own.options());
    group_->all_gather(all, own);
    return computes ? all.div_(ranks()) : all;
  }

 private:
  int64_t ranks() const { return group_->size(); }

  /// Tensor after tensor: while one travels, the one before is unpacked, on a stream beside, and
  /// the next is packed.
  template <class Pack, class Unpack>
  variable_list exchange(const variable_list& tensors,
                         const Pack& pack,
                         const Unpack& unpack) const {
    const std::size_t count = tensors.size();
    variable_list sent, received;
    std::vector<PendingCall> calls;
    for (std::size_t turn = 0; turn < count + 2; ++turn) {
      if (turn > 0 && turn <= count) {
        received.push_back(at::empty_like(sent.back()));
        calls.push_back(group_->start_all_to_all(received.back(), sent.back()));
      }
      if (turn > 1) {
        const SideStream::Scope beside(unpacking_);
        calls[turn - 2].wait();
        received[turn - 2] = unpack(received[turn - 2]);
      }
      if (turn < count) sent.push_back(pack(tensors[turn]));
    }
    unpacking_.join();
    return received;
  }

  std::shared_ptr<Communicator> group_;
  int64_t dim_;
  SideStream unpacking_;
  at::Tensor chunk_at_place_;  ///< of what the ranks have, one after the other
  at::Tensor place_of_chunk_;  ///< the inverse
};

namespace {

struct AllToAllCall {
  std::shared_ptr<const HeadExchange> exchange;
  AttentionCall attention;
};

struct AllToAllFunction : torch::autograd::Function<AllToAllFunction> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& query,
                            const at::Tensor& key,
                            const at::Tensor& value,
                            const std::optional<at::Tensor>& sink,
                            const AllToAllCall& call) {
    const variable_list own = call.exchange->to_heads({query, key, value});
    const at::Tensor own_sink = sink ? call.exchange->own_heads(*sink) : at::Tensor();
    const Attended attended = attend(own[0], own[1], own[2], call.attention, own_sink);
    context->save_for_backward({own[0],
                                own[1],
                                own[2],
                                attended.output,
                                attended.log_sum,
                                attended.seed,
                                attended.offset,
                                own_sink});
    keep(context, call);
    return call.exchange->to_rows({attended.output})[0].flatten(2);
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const AllToAllCall& call = kept<AllToAllCall>(context);
    const variable_list saved = context->get_saved_variables();
    const at::Tensor by_head = gradients[0].unflatten(-1, {-1, saved[0].size(-1)});
    const at::Tensor gradient = call.exchange->to_heads({by_head})[0];
    const AttentionGradients found = attend_backward(
        gradient,
        saved[0],
        saved[1],
        saved[2],
        {.output = saved[3], .log_sum = saved[4], .seed = saved[5], .offset = saved[6]},
        call.attention,
        saved[7]);
    variable_list rows = call.exchange->to_rows({found.query, found.key, found.value});
    rows.push_back(found.sink.defined()
                       ? call.exchange->of_all_heads(found.sink, call.attention.computes)
                       : at::Tensor());
    rows.emplace_back();
    return rows;
  }
};

}  // namespace

AllToAllAttention::AllToAllAttention(std::shared_ptr<Communicator> group,
                                     const AttentionCall& call,
                                     const ShardContext& context)
    : exchange_(std::make_shared<const HeadExchange>(
          std::move(group), call.sequence_dim, context.device, context.observer)),
      call_(call) {}

at::Tensor AllToAllAttention::forward(const at::Tensor& query,
                                      const at::Tensor& key,
                                      const at::Tensor& value,
                                      const at::Tensor& sink) const {
  const auto of_all = sink.defined() ? std::optional(sink.to(at::kFloat)) : std::nullopt;
  return AllToAllFunction::apply(query, key, value, of_all, AllToAllCall{exchange_, call_});
}

}  // namespace models
