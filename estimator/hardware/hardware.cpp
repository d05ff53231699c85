#include "estimator/hardware/hardware.h"

#include <fmt/format.h>

#include <algorithm>
#include <regex>
#include <stdexcept>
#include <string>
#include <string_view>

#include "estimator/base/database.h"
#include "estimator/base/errors.h"

namespace onerank_data {
extern const std::string_view gpus_json;
extern const std::string_view links_json;
}  // namespace onerank_data

namespace estimator {
namespace {

/// "H100 80GB HBM3" of "NVIDIA H100 80GB HBM3", "H100" of "DGX-H100".
std::string_view without_vendor(std::string_view name) {
  for (const std::string_view vendor : {"NVIDIA ", "Tesla ", "GeForce ", "DGX ", "HGX "}) {
    if (name.size() > vendor.size() && same_name(name.substr(0, vendor.size()), vendor)) {
      name.remove_prefix(vendor.size());
    }
  }
  return name;
}

/// "h100-sxm-80" of "h100-sxm5-80gb": without the generation of the socket and the unit. "gb200" of
/// "gb200-nvl72": without the rack that it always stands in.
std::string without_generations(std::string_view name) {
  static const std::regex socket("(sxm)[2-6]", std::regex::icase),
      unit("([0-9]) ?gb?$", std::regex::icase), rack("[-_ ]?nvl(72|144)$", std::regex::icase);
  const std::string of_socket = std::regex_replace(std::string(name), socket, "$1");
  return std::regex_replace(std::regex_replace(of_socket, unit, "$1"), rack, "");
}

std::optional<double> rate(const PeakFlops& peak, Dtype dtype) {
  switch (dtype) {
    case Dtype::kBf16:
      return peak.bf16;
    case Dtype::kFp16:
      return peak.fp16;
    case Dtype::kFp32:
      return peak.fp32;
  }
  throw std::logic_error("unknown dtype");
}

}  // namespace

bool Gpu::supports(Dtype dtype) const { return rate(peak_flops_per_second, dtype).has_value(); }

double Gpu::peak_flops(Dtype dtype) const {
  const std::optional<double> peak = rate(peak_flops_per_second, dtype);
  if (!peak) {
    throw UserError(
        {.what = fmt::format("the GPU has no {} rate", to_string(dtype)),
         .where = fmt::format("cluster.gpu = {}, training.dtype = {}", id, to_string(dtype)),
         .help = "use fp16 or fp32"});
  }
  return *peak;
}

const std::vector<Gpu>& gpus() {
  static const auto rows = read_database<Gpu>(onerank_data::gpus_json, "gpus.json");
  return rows;
}

const std::vector<Link>& links() {
  static const auto rows = read_database<Link>(onerank_data::links_json, "links.json");
  return rows;
}

/// Null when there is none.
const Gpu* gpu_with_id(const std::string& id) {
  const auto found =
      std::find_if(gpus().begin(), gpus().end(), [&](const Gpu& gpu) { return gpu.id == id; });
  return found == gpus().end() ? nullptr : &*found;
}

const Gpu* find_gpu(const std::string& name) {
  if (const Gpu* gpu = gpu_with_id(name)) return gpu;
  const std::string_view model = without_vendor(name);
  for (const std::string& wanted : {std::string(model), without_generations(model)}) {
    for (const Gpu& gpu : gpus()) {
      if (is_called(wanted, gpu.id, gpu.aliases)) return &gpu;
      if (same_name(wanted, without_vendor(gpu.cuda_name))) return &gpu;
    }
  }
  return nullptr;
}

Source source_of_rate(const Gpu& gpu) {
  return gpu.rates_as ? Source::kAssumed : Source::kPublished;
}

std::string note_of_rate(const Gpu& gpu, const std::string& note) {
  if (!gpu.rates_as) return note;
  return fmt::format("no rate is published for this GPU: {}'s share of peak; {}",
                     measured_gpu(*gpu.rates_as).cuda_name,
                     note);
}

const Gpu& measured_gpu(const std::string& id) {
  const Gpu* gpu = gpu_with_id(id);
  if (gpu == nullptr) throw std::logic_error("a data file names an unknown GPU: " + id);
  return *gpu;
}

double multiprocessors_over(const Gpu& gpu, const std::string& measured_on) {
  return static_cast<double>(gpu.multiprocessors) /
         static_cast<double>(measured_gpu(measured_on).multiprocessors);
}

const Link* find_link(const std::string& name) {
  for (const Link& link : links()) {
    if (same_name(link.id, name)) return &link;
  }
  return nullptr;
}

std::vector<std::string> gpu_names() {
  std::vector<std::string> names;
  for (const Gpu& gpu : gpus()) {
    names.push_back(gpu.id);
    names.insert(names.end(), gpu.aliases.begin(), gpu.aliases.end());
  }
  return names;
}

std::string gpu_help(const std::string& name) {
  if (name.empty()) return "give --gpu h100, see `onerank list gpus`";
  return suggestion(without_vendor(name), gpu_names(), "see `onerank list gpus`");
}

std::string link_help(const std::string& name) {
  std::vector<std::string> names;
  for (const Link& link : links()) names.push_back(link.id);
  return suggestion(name, names, "see `onerank list links`");
}

}  // namespace estimator
