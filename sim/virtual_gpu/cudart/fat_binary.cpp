#include "sim/virtual_gpu/cudart/fat_binary.h"

#include <cstdint>

#include "sim/virtual_gpu/bytes.h"

namespace virtual_gpu {
namespace {

// The format is not documented; this is what `cuobjdump` finds in every version of CUDA so far.
constexpr uint32_t kWrapperMagic = 0x466243b1;
constexpr uint32_t kContainerMagic = 0xba55ed50;

struct Wrapper {
  uint32_t magic;
  uint32_t version;
  const char* container;
};

struct ContainerHeader {
  uint32_t magic;
  uint16_t version;
  uint16_t header_bytes;
  uint64_t images_bytes;
};

struct ImageHeader {
  uint16_t kind;  // 1 is PTX, 2 a cubin
  uint16_t version;
  uint32_t header_bytes;
  uint64_t image_bytes;
  uint32_t unused[3];
  uint32_t architecture;
  uint64_t unused_name;
  uint64_t flags;
};

constexpr uint16_t kPtx = 1;
constexpr uint16_t kCubin = 2;
constexpr uint64_t kArchitectureSpecific = 0x100000;
constexpr uint64_t kCompressed = 0x1000 | 0x2000 | 0x8000;  // by one of three methods

}  // namespace

std::vector<CodeImage> images_in(std::string_view container) {
  std::vector<CodeImage> images;
  const auto header = read_at<ContainerHeader>(container, 0);
  if (!header || header->magic != kContainerMagic) return images;
  uint64_t position = header->header_bytes;
  while (const auto image = read_at<ImageHeader>(container, position)) {
    // Damaged: where the next one begins is not known.
    if (image->header_bytes < sizeof *image || image->image_bytes > container.size()) break;
    if (image->kind == kPtx || image->kind == kCubin) {
      const auto content = part_of(container, position + image->header_bytes, image->image_bytes);
      const bool is_readable = content && (image->flags & kCompressed) == 0;
      images.push_back({.is_ptx = image->kind == kPtx,
                        .architecture = static_cast<int>(image->architecture),
                        .is_for_that_one_only = (image->flags & kArchitectureSpecific) != 0,
                        .content = is_readable ? *content : std::string_view()});
    }
    position += image->header_bytes + image->image_bytes;
  }
  return images;
}

void FatBinary::read_images() const {
  constexpr size_t kUnknown = PTRDIFF_MAX;  // only the headers tell where it ends
  const auto wrapper = read_at<Wrapper>({static_cast<const char*>(wrapper_), kUnknown}, 0);
  if (wrapper->magic != kWrapperMagic) return;
  const auto header = read_at<ContainerHeader>({wrapper->container, kUnknown}, 0);
  images_ = images_in({wrapper->container, header->header_bytes + header->images_bytes});
}

const CodeImage* FatBinary::best_for(const CapabilityFacts& facts) const {
  std::call_once(once_, [this] { read_images(); });
  const int device = architecture(facts);
  const CodeImage* best_cubin = nullptr;
  const CodeImage* best_ptx = nullptr;
  for (const CodeImage& image : images_) {
    if (image.architecture > device) continue;
    if (image.is_for_that_one_only && image.architecture != device) continue;
    // A cubin runs within its major version.
    if (!image.is_ptx && image.architecture / 10 != facts.major) continue;
    const CodeImage*& best = image.is_ptx ? best_ptx : best_cubin;
    if (best == nullptr || image.architecture > best->architecture) best = &image;
  }
  return best_cubin != nullptr ? best_cubin : best_ptx;
}

std::optional<CodeVersion> FatBinary::version_for(const CapabilityFacts& facts) const {
  const CodeImage* const image = best_for(facts);
  if (image == nullptr) return std::nullopt;
  // PTX is compiled for the device when it is loaded.
  return CodeVersion{.binary = image->is_ptx ? architecture(facts) : image->architecture,
                     .ptx = image->architecture};
}

std::optional<KernelNeeds> FatBinary::needs_of(const std::string& kernel,
                                               const CapabilityFacts& facts) const {
  const CodeImage* const image = best_for(facts);
  if (image == nullptr) return std::nullopt;
  // A process has one kind of device.
  std::call_once(kernels_once_, [&] { kernels_ = kernels_in(image->content); });
  const auto found = kernels_.find(kernel);
  return found == kernels_.end() ? std::nullopt : found->second.needs;
}

}  // namespace virtual_gpu
