#include "sim/cli/commands/command_guides.h"

#include <algorithm>
#include <stdexcept>

namespace sim {
namespace {

using Names = std::vector<std::string>;

/// What most plans say.
Names plan_flags(const Names& more) {
  Names flags = {"--model",
                 "--gpu",
                 "--nodes",
                 "--gpus",
                 "--tp",
                 "--pp",
                 "--cp",
                 "--ep",
                 "--zero-stage",
                 "--mbs",
                 "--gbs",
                 "--seq",
                 "--recompute-granularity"};
  flags.insert(flags.end(), more.begin(), more.end());
  return flags;
}

std::vector<CommandGuide> make_guides() {
  return {
      {"estimate",
       plan_flags({"--headroom",
                   "--advice",
                   "--write-plan",
                   "--sources",
                   "--timeline",
                   "--trace",
                   "--html",
                   "--formulas",
                   "--format"}),
       {"onerank estimate llama3-8b-8xh100",
        "onerank estimate --model llama3-8b --gpu h100 --nodes 1 --tp 2 --zero-stage 1 --gbs 128",
        "onerank estimate --model 13b --gpu a100 --nodes 4 --tp 8 --formulas",
        "onerank estimate pretrain_gpt.sh --gpu h100 --nodes 16"}},
      {"check",
       plan_flags({"--headroom", "--health", "--too-close", "--json"}),
       {"onerank check --model llama3-8b --gpu h100 --nodes 1 --tp 2 --zero-stage 1",
        "onerank check llama3-70b-256xh100 --headroom 5% && sbatch job.sh",
        "onerank check plans/*.json"}},
      {"search",
       {"--model",
        "--gpu",
        "--gpus",
        "--max-gpus",
        "--seq",
        "--gbs",
        "--mbs",
        "--framework",
        "--top",
        "--format"},
       {"onerank search --model llama3-70b --gpu h100 --gpus 64 --gbs 512",
        "onerank search --model llama3-70b --gpu h100 --max-gpus 128 --gbs 512"}},
      {"sweep",
       plan_flags({"--format", "--output"}),
       {"onerank sweep --model llama3-8b --gpu h100 --nodes 1 --tp 1,2,4 --seq 4k,8k",
        "onerank sweep llama3-8b-8xh100 --mbs 1,2,4 --format csv"}},
      {"diff",
       plan_flags({"--format"}),
       {"onerank diff llama3-8b-8xh100 llama3-8b-8xh100-fsdp",
        "onerank diff llama3-8b-8xh100 --mbs 1,2"}},
      {"run",
       plan_flags(
           {"--rank", "--modules", "--peak-snapshot", "--memory-history", "--output", "--format"}),
       {"onerank run --model llama3-8b --gpu h100 --nodes 1 --tp 2 --rank 3 --modules",
        "WORLD_SIZE=1024 RANK=17 onerank run --model llama3-70b --tp 8 --pp 4 --gpu h100-sxm"}},
      {"roofline", plan_flags({"--format"}), {"onerank roofline llama3-8b-8xh100"}},
      {"calibrate", {}, {"onerank calibrate --output this-gpu.json"}},
      {"verify",
       {"--model",
        "--gpu",
        "--gpus",
        "--tp",
        "--pp",
        "--cp",
        "--ep",
        "--zero-stage",
        "--mbs",
        "--gbs",
        "--seq",
        "--timeout",
        "--format"},
       {"onerank verify --model gpt2 --gpu h100 --gpus 4 --tp 2 --pp 2 --seq 64"}},
      {"memory",
       {},
       {"onerank run llama3-8b-8xh100 --peak-snapshot peak.jsonl",
        "onerank memory peak.jsonl --by module --depth 3"}},
      {"allocators",
       plan_flags({"--setting", "--format"}),
       {"onerank allocators llama3-8b-8xh100",
        "onerank allocators --model gpt2 --gpu a100 --nodes 1 --setting max_split_size_mb:128"}},
      {"comm",
       {"--gpu",
        "--nodes",
        "--gpus-per-node",
        "--inter-link",
        "--nics-per-node",
        "--ranks-per-node",
        "--minbytes",
        "--maxbytes",
        "--algorithm",
        "--measured",
        "--format"},
       {"onerank comm all_reduce --gpu h100-sxm --nodes 4 -b 1M -e 8G"}},
      {"exec",
       {"--gpu",
        "--world-size",
        "--rank",
        "--ranks",
        "--steps",
        "--memory",
        "--output",
        "--peak-snapshot",
        "--memory-history",
        "--timeline",
        "--roofline",
        "--json"},
       {"onerank exec --gpu h100-sxm --world-size 64 --rank 17 --steps 2 -- python train.py",
        "onerank exec --gpu a100 --memory-history history.pickle -- python train.py"}},
      {"import",
       plan_flags({"--output", "--ignore", "--verbose"}),
       {"onerank import pretrain_gpt.sh --gpu h100 --nodes 16 -o plan.json"}},
      {"schema", {}, {"onerank schema plan"}},
      {"list", {}, {"onerank list gpus", "onerank list plans", "onerank list options --json"}},
      {"completion",
       {},
       {"onerank completion bash > ~/.local/share/bash-completion/completions/onerank"}},
      {"man", {}, {"onerank man | man -l -"}},
  };
}

}  // namespace

const std::vector<CommandGuide>& command_guides() {
  static const std::vector<CommandGuide> guides = make_guides();
  return guides;
}

const CommandGuide& guide_of(std::string_view command) {
  const auto& guides = command_guides();
  const auto guide = std::find_if(
      guides.begin(), guides.end(), [&](const auto& one) { return one.command == command; });
  if (guide == guides.end()) throw std::logic_error("a subcommand has no guide");
  return *guide;
}

}  // namespace sim
