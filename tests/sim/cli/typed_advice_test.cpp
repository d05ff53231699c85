// Advice is what the user gets: its flags are typed after what the user typed, and give the bytes
// and seconds that it names.
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <random>
#include <sstream>

#include "estimator/base/fields.h"
#include "estimator/what_if/advice.h"
#include "estimator/what_if/max_micro_batch.h"
#include "sim/cli/input/plan_options.h"
#include "sim/cli/values/plan_flag_table.h"
#include "tests/estimator/what_if/fake_ranks.h"

namespace sim {
namespace {

using estimator::Advice;
using estimator::ClusterEstimate;
using estimator::Plan;

using Arguments = std::vector<std::string>;

struct Typed {
  Arguments arguments;
  Environment environment;
};

PlanInput parse(const Typed& typed) {
  CLI::App app;
  PlanOptions options;
  options.add_to(app);
  Arguments reversed(typed.arguments.rbegin(), typed.arguments.rend());  // as CLI11 takes them
  app.parse(reversed);
  return options.resolve(typed.environment);
}

const PlanFlag* find_flag(const std::string& name) {
  for (const PlanFlagGroup& group : plan_flag_groups()) {
    for (const PlanFlag& flag : group.flags) {
      for (const std::string& one : flag.said.names) {
        if (one == name) return &flag;
      }
    }
  }
  return nullptr;
}

/// Takes out a flag that says something of the same key, with its value.
void take_out(Arguments& arguments, const std::string& path) {
  for (std::size_t i = 0; i < arguments.size();) {
    const PlanFlag* flag = find_flag(arguments[i]);
    const bool same = flag != nullptr && flag->path == path;
    const auto from = arguments.begin() + static_cast<std::ptrdiff_t>(i);
    if (same) arguments.erase(from, from + (flag->is_switch() ? 1 : 2));
    i += same ? 0 : 1;
  }
}

/// The flags after those of the user, in whose place they come where both say the same key.
Typed with_flags(Typed typed, const std::string& flags) {
  Arguments more;
  std::istringstream words(flags);
  for (std::string word; words >> word;) {
    if (const PlanFlag* flag = find_flag(word)) take_out(typed.arguments, flag->path);
    more.push_back(word);
  }
  typed.arguments.insert(typed.arguments.end(), more.begin(), more.end());
  return typed;
}

/// Differs, in its last digits, for plans that differ in anything.
int64_t fingerprint(const Plan& plan) {
  constexpr int64_t kSmall = 1 << 20;
  return static_cast<int64_t>(std::hash<std::string>()(to_json(plan).dump()) % kSmall);
}

/// Needs less where a change of any kind is made, and most on the first stage.
int64_t peak_bytes(const Plan& plan, int64_t stage) {
  const estimator::ParallelConfig& p = plan.parallelism;
  const estimator::TrainingConfig& t = plan.training;
  const double gib = static_cast<double>(int64_t{1} << 30);
  const double state =
      (p.zero_stage > 0 || t.optimizer_cpu_offload ? 150 : 260) * gib /
      static_cast<double>(p.tensor * p.pipeline * (plan.model.has_experts() ? p.expert : 1));
  const double wide = t.dtype == estimator::Dtype::kFp32 ? 2 : 1;
  const double scores = t.attention == estimator::Attention::kUnfused ? 2 : 1;
  const double kept = t.recompute == estimator::Recompute::kFull ? 0.1 : 1;
  const double activations = 9 * gib * wide * scores * kept *
                             static_cast<double>(t.micro_batch_size) /
                             static_cast<double>(p.context * (p.sequence_parallel ? p.tensor : 1));
  return static_cast<int64_t>(stage == 0 ? state + activations : state / 2) + fingerprint(plan);
}

double forward_seconds(const Plan& plan) {
  return (0.01 + 1e-3 * static_cast<double>(plan.training.micro_batch_size)) *
         (1 + 1e-9 * static_cast<double>(fingerprint(plan)));
}

class AnyPlan {
 public:
  explicit AnyPlan(int seed) : random_(static_cast<unsigned>(seed)) {}

  Typed typed() {
    Typed typed;
    Arguments& a = typed.arguments;
    const auto add = [&](const std::string& flag, const std::string& value) {
      a.insert(a.end(), {flag, value});
    };
    const bool experts = one_in(3);
    add("--model", experts ? "mixtral-8x7b" : any({"llama2-7b", "llama3-8b", "mistral-7b"}));
    add("--gpu", any({"a100-sxm-40", "h100-sxm", "rtx4090", "v100-sxm2-32"}));
    const std::string nodes = any({"1", "2", "4"});
    if (one_in(4)) {
      typed.environment["WORLD_SIZE"] = std::to_string(8 * std::stoi(nodes));
    } else {
      add("--nodes", nodes);
    }
    const std::string tensor = any({"1", "2", "4"}), pipeline = any({"1", "1", "2", "4"});
    if (one_in(2) || tensor != "1") add("--tp", tensor);
    if (pipeline != "1") add("--pp", pipeline);
    if (one_in(4)) add("--cp", "2");
    if (experts && one_in(2)) add("--ep", any({"2", "4"}));
    if (experts && one_in(3)) add("--etp", "1");
    if (experts || one_in(2)) a.push_back("--sp");
    if (one_in(3)) a.push_back("--use-distributed-optimizer");
    add("--micro-batch-size", any({"1", "2", "4", "8"}));
    if (one_in(2)) add("--gbs", any({"64", "128"}));
    if (one_in(3))
      add("--dp", std::to_string(8 * std::stoi(nodes) / std::stoi(tensor) / std::stoi(pipeline)));
    add("--seq-length", any({"2048", "4096"}));
    if (one_in(4)) add("--attention-backend", any({"unfused", "flash"}));
    if (one_in(5)) a.push_back("--fp32");
    if (one_in(5)) a.push_back("--recompute-activations");
    if (one_in(6)) typed.environment["PYTORCH_CUDA_ALLOC_CONF"] = "max_split_size_mb:512";
    if (pipeline == "2" && one_in(2)) add("--num-layers-per-stage", experts ? "15,17" : "15,17");
    if (pipeline == "4" && one_in(2)) add("--decoder-first-pipeline-num-layers", "5");
    return typed;
  }

 private:
  bool one_in(unsigned n) { return random_() % n == 0; }
  std::string any(const std::vector<std::string>& of) { return of[random_() % of.size()]; }

  std::mt19937 random_;
};

/// The plan, where the rules allow what was typed.
std::optional<PlanInput> parse_if_allowed(const Typed& typed) {
  try {
    return parse(typed);
  } catch (const estimator::UserError&) {
    return std::nullopt;
  }
}

void expect_it_is_what_the_user_gets(const Advice& advice,
                                     const ClusterEstimate& before,
                                     const Typed& typed,
                                     estimator::FakeRanks& ranks) {
  SCOPED_TRACE(advice.text + "; " + advice.flags);
  const PlanInput input = parse(with_flags(typed, advice.flags));
  const ClusterEstimate after = ranks.estimate(input.plan);
  EXPECT_EQ(advice.gain_bytes, before.verdict.peak_bytes - after.verdict.peak_bytes);
  if (!advice.gain_seconds) return;
  EXPECT_EQ(advice.gain_seconds, before.time.iteration_seconds - after.time.iteration_seconds);
}

TEST(TypedAdvice, GivesTheBytesAndSecondsThatItNames) {
  estimator::FakeRanks ranks(peak_bytes, forward_seconds);
  int plans = 0, advised = 0, timed = 0;
  for (int seed = 0; plans < 30; ++seed) {
    ASSERT_LT(seed, 3000);
    const Typed typed = AnyPlan(seed).typed();
    const std::optional<PlanInput> input = parse_if_allowed(typed);
    if (!input) continue;
    const ClusterEstimate before = ranks.estimate(input->plan);
    if (before.verdict.fits()) continue;
    ++plans;
    std::string line;
    for (const std::string& word : typed.arguments) line += word + " ";
    SCOPED_TRACE(line);
    for (const Advice& advice : estimator::advise(input->spec, before, ranks.runner())) {
      expect_it_is_what_the_user_gets(advice, before, typed, ranks);
      ++advised;
      timed += advice.gain_seconds.has_value();
    }
  }
  EXPECT_GT(advised, 45);
  EXPECT_GT(timed, 30);
}

TEST(TypedAdvice, KeepsTheWorldAndTheGlobalBatch) {
  const Typed typed{{"--model",
                     "mixtral-8x7b",
                     "--gpu",
                     "h100-sxm",
                     "--nodes",
                     "2",
                     "--sp",
                     "--tp",
                     "2",
                     "--seq-length",
                     "4096"},
                    {}};
  estimator::FakeRanks ranks(peak_bytes, forward_seconds);
  const PlanInput input = parse(typed);
  bool found = false;
  for (const Advice& advice :
       estimator::advise(input.spec, ranks.estimate(input.plan), ranks.runner())) {
    const Plan plan = parse(with_flags(typed, advice.flags)).plan;
    EXPECT_EQ(plan.world_size(), 16) << advice.flags;
    EXPECT_EQ(plan.global_batch_size(), input.plan.global_batch_size()) << advice.flags;
    found = found || plan.parallelism.expert > input.plan.parallelism.expert;
  }
  EXPECT_TRUE(found);
}

TEST(TypedMaxMicroBatch, IsAPlanThatIsAllowed) {
  for (int seed = 0; seed < 60; ++seed) {
    const Typed typed = AnyPlan(seed).typed();
    const std::optional<PlanInput> input = parse_if_allowed(typed);
    if (!input) continue;
    estimator::FakeRanks ranks(peak_bytes);
    const estimator::MaxMicroBatch answer =
        estimator::find_max_micro_batch(input->spec, ranks.runner());
    if (!answer.micro_batch_size) continue;
    const Plan plan =
        parse(with_flags(typed, "--mbs " + std::to_string(*answer.micro_batch_size))).plan;
    EXPECT_EQ(plan.micro_batches(), answer.micro_batches);
    EXPECT_EQ(plan.global_batch_size(), answer.global_batch_size);
    EXPECT_TRUE(ranks.estimate(plan).verdict.fits());
  }
}

}  // namespace
}  // namespace sim
