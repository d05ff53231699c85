#include "estimator/cluster/estimate_notes.h"

#include <fmt/format.h>

#include <algorithm>

#include "estimator/base/contains.h"
#include "estimator/base/database.h"
#include "estimator/base/fields.h"
#include "estimator/base/units.h"
#include "estimator/cluster/plan_notes.h"
#include "estimator/communication/collective_fit.h"
#include "estimator/compute/gpu_variation.h"
#include "estimator/plan/attention_choice.h"
#include "estimator/plan/frameworks.h"
#include "estimator/plan/megatron_core.h"
#include "estimator/step/stage_time.h"

namespace onerank_data {
extern const std::string_view model_gaps_json;
}

namespace estimator {

/// What models have by their config.json, and no plan can say.
struct ModelGap {
  std::vector<std::string> models;
  std::string what;
  std::string source;
  int64_t beyond_sequence = 0;
  bool in_transformers = false;
  bool of_packed_qkv = false;
};
template <class Visitor>
void visit_fields(Visitor& visit, ModelGap& gap) {
  visit("models", gap.models, "names of presets");
  visit("what", gap.what, "what it is, and how the real run differs");
  visit("source", gap.source, "where it is from");
  visit("beyond_sequence", gap.beyond_sequence, "only in longer sequences than this");
  visit("in_transformers",
        gap.in_transformers,
        "only in frameworks whose layers are those of Hugging Face transformers");
  visit("of_packed_qkv", gap.of_packed_qkv, "of every model with this key, also without a name");
}

namespace {

void note_launch(std::vector<std::string>& notes, const Link& link) {
  const CollectiveFit& fit = collective_fit();
  const LaunchFloor& floor = fit.floor(link);
  const std::string source = fit.sources.json().value(floor.source, floor.source);
  notes.push_back(
      fmt::format("collectives over {} take {:g} us longer than in NCCL's own model ({} {})",
                  link.id,
                  floor.microseconds,
                  floor.assumed ? "as on other links in" : "fitted to",
                  source));
}

void note_measured(std::vector<std::string>& notes, const Fabric& fabric) {
  for (const MeasuredCollective& curve : fabric.measured) {
    const bool fits = curve.device == fabric.gpu_cuda_name;
    notes.push_back(fmt::format(
        "{}: {} over {} ranks of {} machines with {}; {}",
        curve.origin,
        to_string(curve.kind),
        curve.ranks,
        curve.machines,
        curve.device,
        fits ? "used in place of the model for such groups" : "not used: the plan has other GPUs"));
  }
}

void note_overlap(std::vector<std::string>& notes, const Plan& plan) {
  const ParallelConfig& p = plan.parallelism;
  const bool ring = p.context > 1 && p.context_comm == ContextComm::kP2p;
  const bool data_overlaps =
      plan.replicas() > 1 && (p.overlap_grad_reduce || p.overlap_param_gather);
  if (ring) {
    notes.push_back(
        "context ranks: each message of the ring overlaps with one step of attention; the last "
        "rank of the ring, which holds most, stands for the others");
  }
  if (p.tp_comm_overlap) {
    notes.push_back(
        "tensor ranks: each all-gather and reduce-scatter of attention and MLP overlaps with a "
        "matrix product, as TransformerEngine's user buffers do by default (initialize_ub); it "
        "goes in one chunk for each rank, of which one is not hidden");
  }
  if (ring || data_overlaps) {
    notes.push_back(
        "a collective that overlaps with compute uses one multiprocessor for each of its channels "
        "(measured on four GPUs: 19 % of the compute on average, arXiv 2507.03114)");
  }
  if (data_overlaps || (plan.replicas() > 1 && p.divides_gradients())) {
    notes.push_back(
        "groups share a port (a GPU's NVLink, its share of the NICs) fairly: the data ranks' calls "
        "and those of the work that they overlap with take longer if the port is too slow for "
        "both");
  }
  if (p.overlap_param_gather && gathers_in_turn(plan)) {
    notes.push_back(
        "without virtual stages Megatron-LM begins a stage's overlapped gathers of parameters when "
        "its first input has come: the stages gather one after the other");
  }
}

void note_determinism(std::vector<std::string>& notes, const Plan& plan) {
  if (!plan.training.deterministic_mode) return;
  std::string note = "deterministic mode: attention's backward adds in a fixed order";
  if (traits_of(plan.training.framework).rings_when_deterministic) note += ", NCCL uses only rings";
  if (plan.training.fills_empty_tensors()) note += ", PyTorch fills new tensors";
  if (writes_score_gradient(plan)) {
    note += ", cuDNN (before 9.25) writes the gradient of all attention scores";
  }
  notes.push_back(note);
}

void note_slowest_gpu(std::vector<std::string>& notes, const Plan& plan) {
  const double slowdown = slowest_gpu_slowdown(plan);
  if (slowdown == 1) return;
  const TaggedNumber deviation = gpu_deviation(plan);
  notes.push_back(
      fmt::format("ranks wait for the slowest of {} GPUs, whose arithmetic takes {:.1f} % longer "
                  "than a usual GPU's (standard deviation of the GPUs: {:g} %, {}: {})",
                  plan.world_size(),
                  100 * (slowdown - 1),
                  100 * deviation.value,
                  to_string(deviation.source),
                  deviation.note));
}

void note_offload(std::vector<std::string>& notes, const Plan& plan) {
  if (!plan.training.optimizer_cpu_offload) return;
  notes.push_back(
      "optimizer offload: each GPU has its own link to the host, the two directions do not slow "
      "each other (on one machine with A100 copies to the GPU fell from 25 to 11 GB/s while copies "
      "from it ran: forums.developer.nvidia.com/t/352186), and memory that is not page-locked is "
      "as fast");
  notes.push_back(fmt::format(
      "optimizer offload: the {} ranks of a machine share its CPUs evenly, all of their cores "
      "(OMP_NUM_THREADS; torchrun sets 1)",
      plan.cluster.gpus_per_node));
  notes.push_back(
      "optimizer offload: the optimizer that Megatron-LM first builds over whole parameters is "
      "freed by Python's garbage collector before the first iteration");
}

void note_experts(std::vector<std::string>& notes, const Plan& plan) {
  if (!plan.model.has_experts()) return;
  notes.push_back(
      "routers load experts evenly; real ones do not, and ranks of popular experts then need more "
      "memory, and others wait for them");
}

void note_profiles(std::vector<std::string>& notes,
                   const Gpu& gpu,
                   const std::vector<const RankProfile*>& profiles) {
  const auto any = [&](auto predicate) {
    return std::any_of(
        profiles.begin(), profiles.end(), [&](const RankProfile* p) { return predicate(*p); });
  };
  if (any([](const RankProfile& p) { return p.micro_batches.executed < p.micro_batches.total; })) {
    notes.push_back(
        "memory repeats from micro-batch to micro-batch: ranks ran fewer of them than the plan "
        "has");
  }
  if (any([](const RankProfile& p) { return p.limit_lifted; })) {
    notes.push_back(
        "ranks that ran out of memory were run again without the limit; their peaks are what they "
        "would need");
  }
  for (const RankProfile* profile : profiles) {
    if (profile->device.kind == DeviceKind::kCpu) {
      notes.push_back(
          fmt::format("rank {} ran on a CPU: its kernels and their memory are not those of {}",
                      profile->rank,
                      gpu.id));
    } else if (profile->device.name != gpu.cuda_name) {
      notes.push_back(fmt::format(
          "rank {} ran on {} and stands for {}", profile->rank, profile->device.name, gpu.id));
    }
  }
}

bool concerns(const ModelGap& gap, const Plan& plan) {
  const bool in_transformers = traits_of(plan.training.framework).gelu_new_of_operators;
  const bool is_named = contains(gap.models, plan.model_preset);
  return (is_named || (gap.of_packed_qkv && plan.model.packed_qkv)) &&
         (in_transformers || !gap.in_transformers) && plan.sequence_length() > gap.beyond_sequence;
}

std::vector<std::string> gaps_of_the_model(const Plan& plan) {
  static const auto rows =
      read_database<ModelGap>(onerank_data::model_gaps_json, "model_gaps.json");
  const std::string name = plan.model_preset.empty() ? "the model" : plan.model_preset;
  std::vector<std::string> gaps;
  for (const ModelGap& gap : rows) {
    if (concerns(gap, plan)) gaps.push_back(fmt::format("{}: {}", name, gap.what));
  }
  return gaps;
}

}  // namespace

std::vector<std::string> communication_assumptions(const ClusterConfig& cluster,
                                                   const Fabric& fabric) {
  std::vector<std::string> notes;
  if (cluster.world_size() == 1) return notes;
  const Gpu& gpu = gpu_of(cluster);
  if (fabric.intra.id == gpu.default_intra_link) {
    notes.push_back(
        fmt::format("link inside a machine: {}, the usual one of {}", fabric.intra.id, gpu.id));
  }
  note_launch(notes, fabric.intra);
  if (cluster.world_size() > fabric.domain_gpus) {
    if (fabric.intra.spans_machines && fabric.domain_gpus < gpu.nvlink_domain_gpus) {
      notes.push_back(fmt::format("the job has {} of the {} GPUs of each of its NVLink domains",
                                  fabric.domain_gpus,
                                  gpu.nvlink_domain_gpus));
    }
    if (fabric.inter.id == gpu.default_inter_link) {
      notes.push_back(fmt::format("NIC: {}, the usual one of {}", fabric.inter.id, gpu.id));
    }
    notes.push_back(fmt::format("NICs for each GPU: {:g}, shared fairly", fabric.nics_per_gpu));
    notes.push_back("hosts whose CPUs are not AMD's, on which NCCL's model posts half as fast");
    if (fabric.pod_gpus == 0) notes.push_back("a network without oversubscription");
    note_launch(notes, fabric.inter);
  }
  note_measured(notes, fabric);
  return notes;
}

std::vector<std::string> assumptions_of(const Plan& plan,
                                        const Gpu& gpu,
                                        const Fabric& fabric,
                                        const std::vector<const RankProfile*>& profiles) {
  std::vector<std::string> notes = plan_notes(plan);
  notes.push_back(fmt::format(
      "CUDA context of {}: {} ({})", gpu.id, format_gib(gpu.context_bytes), gpu.context_source));
  for (std::string& note : communication_assumptions(plan.cluster, fabric)) {
    notes.push_back(std::move(note));
  }
  if (plan.world_size() > 1) {
    notes.push_back(
        "NCCL opens the channels and buffers of the published graphs (NVIDIA/nccl issues 1197, "
        "1685)");
  }
  note_slowest_gpu(notes, plan);
  note_overlap(notes, plan);
  note_determinism(notes, plan);
  note_offload(notes, plan);
  note_experts(notes, plan);
  note_profiles(notes, gpu, profiles);
  return notes;
}

std::vector<std::string> gaps_of(const Plan& plan) {
  std::vector<std::string> gaps = {
      "GPUs and machines that are unusually slow, because of faults, heat or other programs",
      "logging and evaluation",
      "compute and sends between stages that slow each other when they overlap",
      "overlap of FSDP2's calls with calls on another port for which kernels wait (they count as "
      "exposed)",
      "sends between stages and data-parallel calls that share a port, except a chunk's last send",
      "congestion of the network beyond fair shares, and hops from rail to rail",
      "kernels fused beyond those of the shard, and tuned kernels for single shapes",
      "fragmentation that builds up after the second iteration",
      "memory of cuDNN plans, of other libraries, and of other processes on the GPU",
  };
  for (std::string& gap : gaps_of_the_model(plan)) gaps.push_back(std::move(gap));
  return gaps;
}

}  // namespace estimator
