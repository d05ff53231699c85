#include "sim/exec/values/assumptions.h"

#include <ATen/core/Tensor.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string_view>

#include "sim/exec/program/python.h"
#include "sim/exec/values/host_values.h"
#include "sim/exec/values/known_tensors.h"

namespace sim {

struct AssumptionRule {
  std::string_view op;
  const char* name;  ///< what it computes
};

namespace {

constexpr const char* kExpertTokens = "expert-tokens";
/// Which experts each token takes; told as the counts that follow from it.
constexpr const char* kChoices = "expert-choices";

/// The last choice of experts that this thread's router made: rows times choices.
struct Routing {
  int64_t tokens = 0;
  int64_t choices = 0;
};
thread_local Routing last_routing;

/// Which operator computes what. Of several results the first is it.
constexpr AssumptionRule kRules[] = {
    {"aten::nll_loss_forward", kLoss},
    {"aten::nll_loss2d_forward", kLoss},
    {"aten::mse_loss", kLoss},
    {"aten::smooth_l1_loss", kLoss},
    {"aten::binary_cross_entropy", kLoss},
    {"aten::linalg_vector_norm", kGradientNorm},
    {"aten::_foreach_norm", kGradientNorm},
    {"aten::_amp_foreach_non_finite_check_and_unscale_", kFoundInf},
    {"aten::histc", kExpertTokens},
    {"aten::bincount", kExpertTokens},
    {"aten::scatter_add_", kExpertTokens},
    {"aten::sum", kExpertTokens},
    {"aten::topk", kChoices},
    {"aten::is_nonzero", estimator::kAssumedCheck},
    {"aten::item", estimator::kAssumedCheck},
    {"aten::_local_scalar_dense", estimator::kAssumedCheck},  // of a DTensor's own part
};

std::vector<at::Tensor> results_of(const at::RecordFunction& function,
                                   const Assumptions::Call& call) {
  if (call.in_place.defined()) return {call.in_place};
  const auto& outputs = function.outputs();
  if (outputs.empty()) return {};
  if (outputs[0].isTensorList()) return outputs[0].toTensorVector();
  if (outputs[0].isTensor()) return {outputs[0].toTensor()};
  return {};
}

/// How many things topk chose from.
int64_t chosen_from(const at::RecordFunction& function) {
  const auto inputs = function.inputs();
  if (inputs.empty() || !inputs[0].isTensor() || inputs[0].toTensor().dim() < 2) return 0;
  return inputs[0].toTensor().size(-1);
}

/// The places that topk found, if it chose in each of several rows from `experts`: a router's
/// choices. Else an undefined tensor.
at::Tensor router_choices(const at::RecordFunction& function, int64_t experts) {
  const auto& outputs = function.outputs();
  if (outputs.size() < 2 || !outputs[1].isTensor()) return {};
  const at::Tensor places = outputs[1].toTensor();
  const bool are_choices = places.is_cuda() && places.dim() >= 2 && places.numel() > 0;
  return are_choices && places.size(-1) <= experts ? places : at::Tensor();
}

/// Whether it marks which experts were chosen: for each token, or for each choice (a one-hot).
bool marks_routes(const at::Tensor& tensor) {
  const bool is_mark = tensor.scalar_type() == at::kBool || tensor.scalar_type() == at::kLong;
  if (!is_mark || tensor.dim() < 2 || tensor.size(-1) == 0) return false;
  const int64_t rows = tensor.numel() / tensor.size(-1);
  return rows == last_routing.tokens || rows == last_routing.tokens * last_routing.choices;
}

/// How many tokens a counting operator counts; empty where it may count anything else.
std::optional<int64_t> counted_tokens(const at::RecordFunction& function) {
  const auto inputs = function.inputs();
  if (inputs.empty() || !inputs[0].isTensor()) return std::nullopt;
  const std::string_view op = function.name();
  const at::Tensor& first = inputs[0].toTensor();
  if (op == "aten::histc" || op == "aten::bincount") return first.numel();
  if (op == "aten::scatter_add_") {
    const bool counts = inputs.size() > 2 && inputs[2].isTensor() && first.dim() == 1 &&
                        c10::isIntegralType(first.scalar_type(), /*includeBool=*/false);
    return counts ? std::optional(inputs[2].toTensor().numel()) : std::nullopt;
  }
  const int64_t total = last_routing.tokens * last_routing.choices;
  return marks_routes(first) ? std::optional(total) : std::nullopt;
}

/// By row and choice, experts in order. Each goes to rows that follow each other: as none has more
/// tokens than there are rows, no row takes one twice.
std::vector<double> choices_of_rows(int64_t rows,
                                    int64_t of_each,
                                    const std::vector<int64_t>& tokens) {
  std::vector<double> choices(static_cast<size_t>(rows * of_each));
  int64_t place = 0;
  for (size_t expert = 0; expert < tokens.size(); ++expert) {
    for (int64_t token = 0; token < tokens[expert]; ++token, ++place) {
      choices[place % rows * of_each + place / rows] = static_cast<double>(expert);
    }
  }
  return choices;
}

std::string tokens_on_experts(int64_t tokens, int64_t experts) {
  return fmt::format("{} tokens on {} experts", tokens, experts);
}

}  // namespace

std::vector<int64_t> tokens_of_experts(int64_t total, int64_t experts, double fullest) {
  std::vector<int64_t> tokens(static_cast<size_t>(experts));
  if (experts == 0) return tokens;
  const double mean = static_cast<double>(total) / static_cast<double>(experts);
  int64_t left = total;
  size_t first_even = 0;
  if (fullest > 1 || experts == 1) {
    tokens[0] = experts == 1 ? total : std::min<int64_t>(total, std::llround(fullest * mean));
    left -= tokens[0];
    first_even = 1;
  }
  const auto others = static_cast<int64_t>(tokens.size() - first_even);
  for (size_t i = first_even; i < tokens.size(); ++i) {
    const auto place = static_cast<int64_t>(i - first_even);
    tokens[i] = left / others + (place < left % others ? 1 : 0);
  }
  return tokens;
}

const AssumptionRule* assumption_rule_of(const at::RecordFunction& function) {
  const std::string_view name = function.name();
  const auto* rule = std::find_if(std::begin(kRules),
                                  std::end(kRules),
                                  [&](const AssumptionRule& known) { return known.op == name; });
  return rule == std::end(kRules) ? nullptr : rule;
}

std::unique_ptr<Assumptions::Call> Assumptions::operator_started(const at::RecordFunction& function,
                                                                 const AssumptionRule& rule,
                                                                 const VirtualGpu& gpu) {
  if (rule.name == estimator::kAssumedCheck) {
    assume_check(function, gpu);
    return nullptr;
  }
  auto call = std::make_unique<Call>(Call{.name = rule.name});
  if (rule.name == kExpertTokens) call->counted_tokens = counted_tokens(function);
  const auto inputs = function.inputs();
  if (rule.name == kChoices) call->experts = chosen_from(function);
  if (rule.name == kFoundInf && inputs.size() > 1 && inputs[1].isTensor()) {
    call->in_place = inputs[1].toTensor();
  }
  return call;
}

void Assumptions::operator_finished(const at::RecordFunction& function,
                                    const Call& call,
                                    const VirtualGpu& gpu) {
  if (call.name == kChoices) {
    assume_choices(function, call, gpu);
  } else if (call.name == kExpertTokens) {
    assume_counts(function, call, gpu);
  } else {
    assume_number(function, call, gpu);
  }
}

void Assumptions::assume_check(const at::RecordFunction& function, const VirtualGpu& gpu) {
  const auto inputs = function.inputs();
  if (inputs.empty() || !inputs[0].isTensor()) return;
  const at::Tensor& asked = inputs[0].toTensor();
  const bool is_answer = asked.is_cuda() && asked.scalar_type() == at::kBool && asked.numel() == 1;
  if (!is_answer || is_known(asked, gpu) || !runs_check()) return;
  make_known(asked, {1}, ValueOrigin::kKernel, gpu);
  if (!is_known(asked, gpu)) return;  // a DTensor: its own part is asked for next
  note(estimator::kAssumedCheck, fmt::format("true, {}", python_line().text), function.name());
}

void Assumptions::assume_number(const at::RecordFunction& function,
                                const Call& call,
                                const VirtualGpu& gpu) {
  const auto number = std::find_if(values_.numbers.begin(),
                                   values_.numbers.end(),
                                   [&](const AssumedNumber& n) { return n.name == call.name; });
  if (number == values_.numbers.end()) return;
  for (const at::Tensor& result : results_of(function, call)) {
    if (!result.defined() || !result.is_cuda() || result.numel() != 1) continue;
    make_known(result, {number->value}, ValueOrigin::kHost, gpu);
    note(call.name, fmt::format("{}", number->value), function.name());
  }
}

void Assumptions::assume_choices(const at::RecordFunction& function,
                                 const Call& call,
                                 const VirtualGpu& gpu) {
  const at::Tensor places = router_choices(function, call.experts);
  if (!places.defined()) return;
  const int64_t of_each = places.size(-1);
  const int64_t rows = places.numel() / of_each;
  last_routing = {.tokens = rows, .choices = of_each};
  if (!values_.fullest_expert || is_known(places, gpu)) return;
  make_known(places,
             chosen_experts(rows, of_each, call.experts, function.name()),
             ValueOrigin::kHost,
             gpu);
}

std::vector<double> Assumptions::chosen_experts(int64_t tokens,
                                                int64_t choices,
                                                int64_t experts,
                                                const char* chooser) {
  // Not more than one of each row.
  const double most = static_cast<double>(experts) / static_cast<double>(choices);
  const int64_t total = tokens * choices;
  note(kExpertTokens, tokens_on_experts(total, experts), chooser);
  return choices_of_rows(
      tokens, choices, tokens_of_experts(total, experts, std::min(*values_.fullest_expert, most)));
}

void Assumptions::experts_chosen(const Routes& routes, const VirtualGpu& gpu) {
  last_routing = {.tokens = routes.tokens, .choices = routes.choices};
  const auto bytes = static_cast<uint64_t>(routes.tokens * routes.experts);
  if (!values_.fullest_expert || !gpu || bytes > gpu.largest_integer_bytes) return;
  const auto chosen = chosen_experts(routes.tokens, routes.choices, routes.experts, routes.chooser);
  std::vector<char> marks(bytes);
  for (size_t choice = 0; choice < chosen.size(); ++choice) {
    const size_t token = choice / static_cast<size_t>(routes.choices);
    marks[token * static_cast<size_t>(routes.experts) + static_cast<size_t>(chosen[choice])] = 1;
  }
  gpu.send(reinterpret_cast<void*>(routes.map), bytes, marks.data());
}

void Assumptions::assume_counts(const at::RecordFunction& function,
                                const Call& call,
                                const VirtualGpu& gpu) {
  if (!values_.fullest_expert) return;
  const auto total = call.counted_tokens;
  const auto results = results_of(function, call);
  if (!total || results.size() != 1 || !results[0].is_cuda() || results[0].dim() != 1) return;
  if (is_known(results[0], gpu)) return;  // the host has counted
  const auto tokens = tokens_of_experts(*total, results[0].numel(), *values_.fullest_expert);
  make_known(results[0], {tokens.begin(), tokens.end()}, ValueOrigin::kHost, gpu);
  note(kExpertTokens, tokens_on_experts(*total, results[0].numel()), function.name());
}

void Assumptions::note(const char* name, const std::string& value, const char* chooser) {
  const std::lock_guard lock(mutex_);
  ++noted_[{name, value, chooser}];
}

std::vector<estimator::AssumedRecord> Assumptions::records() const {
  const std::lock_guard lock(mutex_);
  std::vector<estimator::AssumedRecord> records;
  for (const auto& [key, count] : noted_) {
    const auto& [name, value, op] = key;
    records.push_back({name, value, op, count});
  }
  return records;
}

}  // namespace sim
