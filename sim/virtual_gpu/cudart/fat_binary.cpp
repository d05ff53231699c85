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
      images.push_back({.is_ptx = image->kind == kPtx,
                        .architecture = static_cast<int>(image->architecture),
                        .is_for_that_one_only = (image->flags & kArchitectureSpecific) != 0});
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

std::optional<CodeVersion> FatBinary::version_for(const CapabilityFacts& facts) const {
  std::call_once(once_, [this] { read_images(); });
  const int device = architecture(facts);
  std::optional<CodeVersion> best_cubin;
  std::optional<CodeVersion> best_ptx;
  for (const CodeImage& image : images_) {
    if (image.architecture > device) continue;
    if (image.is_for_that_one_only && image.architecture != device) continue;
    if (image.is_ptx) {  // compiled for the device when it is loaded
      if (!best_ptx || image.architecture > best_ptx->ptx) {
        best_ptx = {.binary = device, .ptx = image.architecture};
      }
    } else if (image.architecture / 10 == facts.major) {  // a cubin runs within its major version
      if (!best_cubin || image.architecture > best_cubin->binary) {
        best_cubin = {.binary = image.architecture, .ptx = image.architecture};
      }
    }
  }
  return best_cubin ? best_cubin : best_ptx;
}

}  // namespace virtual_gpu
