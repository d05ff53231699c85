// Which module and which direction operators and collectives are counted for.
#include <ATen/ops/cos.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/tanh.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include "tests/sim/recording/recorded_run.h"

namespace sim {
namespace {

using estimator::Direction;
using estimator::DirectionScope;
using estimator::ModuleScope;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

void backward_of(Recorder& recorder, const at::Tensor& output) {
  const DirectionScope direction(recorder, Direction::kBackward);
  torch::autograd::backward({output.sum()}, {});
}

TEST(Places, ForwardIsCountedForTheModuleThatIsEntered) {
  const at::Tensor tensor = at::ones({4, 4});
  const auto profile = RecordedRun().of([&](Recorder& recorder) {
    const DirectionScope direction(recorder, Direction::kForward);
    const ModuleScope layer(recorder, "layers.0");
    {
      const ModuleScope mlp(recorder, "mlp");
      at::mm(tensor, tensor);
    }
    at::relu(tensor);
  });
  EXPECT_EQ(only(profile, "aten::mm").module_kind, "mlp");
  EXPECT_EQ(only(profile, "aten::mm").direction, Direction::kForward);
  EXPECT_EQ(only(profile, "aten::mm").phase, "forward_backward");
  EXPECT_EQ(only(profile, "aten::relu").module_kind, "other");
}

TEST(Places, BackwardIsCountedForTheModuleThatMadeTheNode) {
  const at::Tensor weight = at::ones({4, 4}).requires_grad_();
  const auto profile = RecordedRun().of([&](Recorder& recorder) {
    at::Tensor hidden;
    {
      const DirectionScope direction(recorder, Direction::kForward);
      {
        const ModuleScope attention(recorder, "self_attention");
        hidden = at::mm(weight, weight);
      }
      const ModuleScope mlp(recorder, "mlp");
      hidden = at::tanh(hidden);
    }
    backward_of(recorder, hidden);
  });
  const auto products = operators_named(profile, "aten::mm");
  ASSERT_EQ(products.size(), 2u);
  EXPECT_EQ(products[1].direction, Direction::kBackward);
  EXPECT_EQ(products[1].module_kind, "attention");
  EXPECT_EQ(products[1].executed_count, 2);  // one for each operand
  EXPECT_EQ(only(profile, "aten::tanh_backward").module_kind, "mlp");
}

struct Doubled : torch::autograd::Function<Doubled> {
  static at::Tensor forward(AutogradContext*, const at::Tensor& input) { return at::mul(input, 2); }
  static variable_list backward(AutogradContext*, variable_list gradients) {
    return {at::cos(gradients[0])};  // an operator that nothing else here uses
  }
};

TEST(Places, BackwardOfACustomFunctionIsCountedForItsModule) {
  const at::Tensor weight = at::ones({4}).requires_grad_();
  const auto profile = RecordedRun().of([&](Recorder& recorder) {
    at::Tensor output;
    {
      const ModuleScope embedding(recorder, "embedding");
      output = Doubled::apply(weight);
    }
    {
      const ModuleScope head(recorder, "head");
      output = at::tanh(output);
    }
    backward_of(recorder, output);
  });
  EXPECT_EQ(only(profile, "aten::cos").module_kind, "embedding");
  EXPECT_EQ(only(profile, "aten::cos").direction, Direction::kBackward);
}

/// Recomputes tanh(sin(x)) in backward, as activation checkpoints do: with a nested backward.
struct Checkpoint : torch::autograd::Function<Checkpoint> {
  static at::Tensor segment(Recorder& recorder, const at::Tensor& input) {
    at::Tensor output;
    {
      const ModuleScope attention(recorder, "self_attention");
      output = at::sin(input);
    }
    const ModuleScope mlp(recorder, "mlp");
    return at::tanh(output);
  }

  static at::Tensor forward(AutogradContext* context, const at::Tensor& input, int64_t recorder) {
    context->save_for_backward({input});
    context->saved_data["recorder"] = recorder;
    return segment(*reinterpret_cast<Recorder*>(recorder), input);
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    auto& recorder = *reinterpret_cast<Recorder*>(context->saved_data["recorder"].toInt());
    const at::Tensor input = context->get_saved_variables()[0].detach().requires_grad_();
    at::Tensor output;
    {
      const DirectionScope direction(recorder, Direction::kRecompute);
      const c10::AutoGradMode with_gradients(true);
      output = segment(recorder, input);
    }
    torch::autograd::backward({output}, {gradients[0]});
    return {input.grad(), at::Tensor()};
  }
};

TEST(Places, RecomputeIsItsOwnDirectionAndItsNestedBackwardIsBackward) {
  const at::Tensor weight = at::ones({4}).requires_grad_();
  const auto profile = RecordedRun().of([&](Recorder& recorder) {
    at::Tensor output;
    {
      const DirectionScope direction(recorder, Direction::kForward);
      output = Checkpoint::apply(weight, reinterpret_cast<int64_t>(&recorder));
    }
    backward_of(recorder, output);
  });
  const auto sines = operators_named(profile, "aten::sin");
  ASSERT_EQ(sines.size(), 2u);
  EXPECT_EQ(sines[0].direction, Direction::kForward);
  EXPECT_EQ(sines[1].direction, Direction::kRecompute);
  EXPECT_EQ(sines[1].module_kind, "attention");
  EXPECT_EQ(only(profile, "aten::cos").direction, Direction::kBackward);  // d sin
  EXPECT_EQ(only(profile, "aten::cos").module_kind, "attention");
  EXPECT_EQ(only(profile, "aten::tanh_backward").module_kind, "mlp");
}

TEST(Places, NodesAreBackwardWithoutBeingAnnounced) {
  const at::Tensor weight = at::ones({4}).requires_grad_();
  const auto profile = RecordedRun().of([&](Recorder& recorder) {
    const DirectionScope direction(recorder, Direction::kRecompute);
    torch::autograd::backward({at::tanh(weight).sum()}, {});
  });
  EXPECT_EQ(only(profile, "aten::tanh").direction, Direction::kRecompute);
  EXPECT_EQ(only(profile, "aten::tanh_backward").direction, Direction::kBackward);
}

TEST(Places, AccumulatedGradientsAreOfTheirOwnKind) {
  at::Tensor weight = at::ones({4}).requires_grad_();
  weight.mutable_grad() = at::ones({4});
  const auto profile =
      RecordedRun().of([&](Recorder& recorder) { backward_of(recorder, at::tanh(weight)); });
  EXPECT_EQ(only(profile, "aten::add_").module_kind, "gradients");
  EXPECT_EQ(only(profile, "aten::add_").direction, Direction::kBackward);
}

TEST(Places, WhereNoDirectionIsAnnouncedThePhaseDecides) {
  const at::Tensor tensor = at::ones({4});
  const auto direction_in = [&](const std::string& phase) {
    const auto profile = RecordedRun{.phase = phase}.of([&](Recorder&) { at::tanh(tensor); });
    return only(profile, "aten::tanh").direction;
  };
  EXPECT_EQ(direction_in("iteration_1.forward_backward"), Direction::kReduceGradients);
  EXPECT_EQ(direction_in("iteration_1.optimizer_step"), Direction::kOptimizerStep);
}

const estimator::CollectiveCall kAllReduce = {.kind = estimator::CollectiveKind::kAllReduce,
                                              .group = estimator::GroupKind::kTensor,
                                              .group_size = 8,
                                              .dtype = "BFloat16",
                                              .bytes = 1024};

TEST(Places, EqualCollectivesOfAllLayersAreOneRecord) {
  const auto profile = RecordedRun().of([&](Recorder& recorder) {
    const DirectionScope direction(recorder, Direction::kForward);
    for (const char* layer : {"layers.0", "layers.1"}) {
      const ModuleScope scope(recorder, layer);
      const ModuleScope mlp(recorder, "mlp");
      recorder.on_collective(kAllReduce);
    }
  });
  ASSERT_EQ(profile.collectives.size(), 1u);
  EXPECT_EQ(profile.collectives[0].call, kAllReduce);
  EXPECT_EQ(profile.collectives[0].module, "layers.*.mlp");
  EXPECT_EQ(profile.collectives[0].direction, Direction::kForward);
  EXPECT_EQ(profile.collectives[0].phase, "forward_backward");
  EXPECT_EQ(profile.collectives[0].executed_count, 2);
}

}  // namespace
}  // namespace sim
