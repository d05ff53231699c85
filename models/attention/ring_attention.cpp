#include "models/attention/ring_attention.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/addcmul.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/logaddexp.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/stack.h>
#include <torch/csrc/autograd/custom_function.h>

#include <array>

#include "models/shard/context_chunks.h"
#include "models/shard/kept_value.h"

namespace models {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// What a rank's queries see of another's keys.
enum class Section { kDiagonal, kFirstHalfOfKeys, kSecondHalfOfQueries };

Section section_of(int64_t rank, int64_t whose_keys) {
  if (whose_keys == rank) return Section::kDiagonal;
  return whose_keys < rank ? Section::kFirstHalfOfKeys : Section::kSecondHalfOfQueries;
}

struct Ring {
  std::shared_ptr<Communicator> group;
  AttentionCall call;

  int64_t ranks() const { return group->size(); }
  /// `steps` ranks further in the ring.
  int64_t rank_after(int64_t steps) const { return (group->index() + steps + ranks()) % ranks(); }
  AttentionCall call_of(Section section) const {
    AttentionCall step = call;
    step.causal = section == Section::kDiagonal;
    return step;
  }
  at::Tensor queries(Section section, const at::Tensor& rows) const {
    return section == Section::kSecondHalfOfQueries ? half_of(rows, call.sequence_dim, 1) : rows;
  }
  at::Tensor keys(Section section, const at::Tensor& rows) const {
    return section == Section::kFirstHalfOfKeys ? half_of(rows, call.sequence_dim, 0) : rows;
  }
};

/// A message to one neighbour and one from the other.
class Exchange {
 public:
  Exchange(const Ring& ring, const at::Tensor& sent, const at::Tensor& received, int64_t step)
      : send_(ring.group->start_send(sent, ring.rank_after(step))),
        receive_(ring.group->start_recv(received, ring.rank_after(-step))) {}
  void wait() {
    send_.wait();
    receive_.wait();
  }

 private:
  PendingCall send_, receive_;
};

/// What each step attended to, and what all of them come to.
class StepSum {
 public:
  explicit StepSum(const Ring& ring) : ring_(ring) {}

  void add(Section section, Attended attended) {
    if (steps_.empty()) {
      log_sum_ = attended.log_sum.clone();
    } else {
      at::Tensor sum = rows_of_log_sum(section);
      at::logaddexp_out(sum, sum, attended.log_sum);
    }
    steps_.push_back({section, std::move(attended)});
  }

  const at::Tensor& log_sum() const { return log_sum_; }

  at::Tensor output() const {
    const at::Tensor& first = steps_.front().attended.output;
    at::Tensor sum = at::empty_like(first);
    at::mul_out(sum, first, weights(steps_.front()));
    for (std::size_t step = 1; step < steps_.size(); ++step) {
      const auto& [section, attended] = steps_[step];
      at::Tensor rows = ring_.queries(section, sum);
      at::addcmul_out(rows, rows, attended.output, weights(steps_[step]));
    }
    return sum;
  }

  variable_list seeds_and_offsets() const {
    variable_list all;
    for (const Step& step : steps_) {
      all.push_back(step.attended.seed);
      all.push_back(step.attended.offset);
    }
    return all;
  }

 private:
  struct Step {
    Section section;
    Attended attended;
  };

  /// Log-sums are [b, heads, s] in every layout.
  at::Tensor rows_of_log_sum(Section section) const {
    return section == Section::kSecondHalfOfQueries ? half_of(log_sum_, 2, 1) : log_sum_;
  }

  /// A step's share of each row, laid out like its output.
  at::Tensor weights(const Step& step) const {
    const at::Tensor share = (step.attended.log_sum - rows_of_log_sum(step.section)).exp_();
    return share.movedim(2, ring_.call.sequence_dim).unsqueeze(-1);
  }

  const Ring& ring_;
  std::vector<Step> steps_;
  at::Tensor log_sum_;
};

/// A sum of parts of which some are of one half only. Its halves begin with what comes first.
class SumOfHalves {
 public:
  SumOfHalves(at::Tensor sum, int64_t dim, std::array<bool, 2> begun)
      : sum_(std::move(sum)), dim_(dim), begun_(begun) {}

  void add(const at::Tensor& part) {
    if (begun_[0] == begun_[1]) {
      begin_or_add(sum_, part, begun_[0]);
      begun_ = {true, true};
      return;
    }
    for (const int64_t which : {0, 1}) add_half(which, half_of(part, dim_, which));
  }
  void add_half(int64_t which, const at::Tensor& part) {
    begin_or_add(half_of(sum_, dim_, which), part, begun_[which]);
    begun_[which] = true;
  }

 private:
  static void begin_or_add(const at::Tensor& sum, const at::Tensor& part, bool begun) {
    if (begun)
      sum.add_(part);
    else
      sum.copy_(part);
  }

  at::Tensor sum_;
  int64_t dim_;
  std::array<bool, 2> begun_;
};

/// Backward goes around the ring the other way, so that the keys that came last in forward are the
/// first, and each rank's own, with all of their gradient, come home last.
class RingBackward {
 public:
  RingBackward(const Ring& ring, const variable_list& saved, const at::Tensor& gradient)
      : ring_(ring),
        query_(saved[0]),
        attended_({.output = saved[2], .log_sum = saved[3]}),
        seeds_and_offsets_(saved.begin() + 4, saved.end()),
        gradient_(gradient.contiguous().view(query_.sizes())),
        query_gradient_(at::empty_like(query_)),
        query_sum_(query_gradient_, ring.call.sequence_dim, {false, false}) {
    std::vector<int64_t> shape = saved[1].sizes().vec();
    shape.insert(shape.begin(), 2);
    for (at::Tensor& message : messages_) message = at::empty(shape, saved[1].options());
    messages_[0][0].copy_(saved[1]);
    if (ring.rank_after(0) + 1 < ring.ranks()) {
      log_sum_of_second_half_ = half_of(attended_.log_sum, 2, 1).contiguous();
    }
  }

  variable_list run() {
    for (int64_t step = 0; step < ring_.ranks(); ++step) {
      const at::Tensor& sent = messages_[step % 2];
      const at::Tensor& received = messages_[(step + 1) % 2];
      Exchange exchange(ring_, part(sent, step), part(received, step), -1);
      const int64_t whose_keys = ring_.rank_after(1 + step);
      const Section section = section_of(ring_.rank_after(0), whose_keys);
      const AttentionGradients found = attend_to(section, sent[0], step);
      add_to_query(section, found.query);
      exchange.wait();
      const bool second_half_begun = step > 0 && whose_keys != 0;
      add_to_keys(section, found.key, received[1][0], {step > 0, second_half_begun});
      add_to_keys(section, found.value, received[1][1], {step > 0, second_half_begun});
    }
    const at::Tensor home = messages_[ring_.ranks() % 2][1];
    return {query_gradient_, home[0], home[1]};
  }

 private:
  /// A message is keys and values, and the gradient of those of the step before. The first one has
  /// no gradient to bring, the last one's keys nobody needs.
  at::Tensor part(const at::Tensor& message, int64_t step) const {
    if (step == 0) return message[0];
    return step == ring_.ranks() - 1 ? message[1] : message;
  }

  AttentionGradients attend_to(Section section, const at::Tensor& keys_values, int64_t step) const {
    const auto forward_step = static_cast<std::size_t>(ring_.ranks() - 1 - step);
    return attend_backward(
        ring_.queries(section, gradient_),
        ring_.queries(section, query_),
        ring_.keys(section, keys_values[0]),
        ring_.keys(section, keys_values[1]),
        {.output = ring_.queries(section, attended_.output),
         .log_sum =
             section == Section::kSecondHalfOfQueries ? log_sum_of_second_half_ : attended_.log_sum,
         .seed = seeds_and_offsets_[2 * forward_step],
         .offset = seeds_and_offsets_[2 * forward_step + 1]},
        ring_.call_of(section));
  }

  void add_to_query(Section section, const at::Tensor& gradient) {
    if (section == Section::kSecondHalfOfQueries)
      query_sum_.add_half(1, gradient);
    else
      query_sum_.add(gradient);
  }

  void add_to_keys(Section section,
                   const at::Tensor& gradient,
                   const at::Tensor& sum,
                   std::array<bool, 2> begun) const {
    SumOfHalves keys(sum, ring_.call.sequence_dim, begun);
    if (section == Section::kFirstHalfOfKeys)
      keys.add_half(0, gradient);
    else
      keys.add(gradient);
  }

  const Ring& ring_;
  at::Tensor query_;
  Attended attended_;
  variable_list seeds_and_offsets_;
  at::Tensor gradient_;
  at::Tensor query_gradient_;
  SumOfHalves query_sum_;
  std::array<at::Tensor, 2> messages_;  ///< [keys and values | gradient, key | value, rows...]
  at::Tensor log_sum_of_second_half_;
};

struct RingFunction : torch::autograd::Function<RingFunction> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& query,
                            const at::Tensor& key,
                            const at::Tensor& value,
                            const Ring& ring) {
    StepSum sum(ring);
    std::vector<at::Tensor> keys_values{at::stack({key, value})};  // of rank before rank
    std::optional<Exchange> exchange;
    for (int64_t step = 0; step < ring.ranks(); ++step) {
      if (exchange) exchange->wait();
      if (step + 1 < ring.ranks()) {
        keys_values.push_back(at::empty_like(keys_values.back()));
        exchange.emplace(ring, keys_values[step], keys_values[step + 1], +1);
      }
      const Section section = section_of(ring.rank_after(0), ring.rank_after(-step));
      sum.add(section,
              attend(ring.queries(section, query),
                     ring.keys(section, keys_values[step][0]),
                     ring.keys(section, keys_values[step][1]),
                     ring.call_of(section)));
    }
    const at::Tensor output = sum.output();
    variable_list saved{query, keys_values.back(), output, sum.log_sum()};
    for (const at::Tensor& tensor : sum.seeds_and_offsets()) saved.push_back(tensor);
    context->save_for_backward(std::move(saved));
    keep(context, ring);
    return output.flatten(2);
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const Ring& ring = kept<Ring>(context);
    variable_list found = RingBackward(ring, context->get_saved_variables(), gradients[0]).run();
    found.emplace_back();
    return found;
  }
};

}  // namespace

at::Tensor RingAttention::forward(const at::Tensor& query,
                                  const at::Tensor& key,
                                  const at::Tensor& value) const {
  return RingFunction::apply(query, key, value, Ring{group_, call_});
}

}  // namespace models
