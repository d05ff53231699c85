#include "sim/virtual_gpu/kernels/fat_binary.h"

#include <cstdint>

#include "sim/virtual_gpu/bytes.h"
#include "sim/virtual_gpu/kernels/ptx.h"

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
  uint32_t packed_bytes;  // without what fills up the image
  uint32_t unused[2];
  uint32_t architecture;
  uint64_t unused_name;
  uint64_t flags;
  uint64_t unused_more;
  uint64_t unpacked_bytes;
};

constexpr uint16_t kPtx = 1;
constexpr uint16_t kCubin = 2;
constexpr uint64_t kArchitectureSpecific = 0x100000;
constexpr uint64_t kPackedInAnotherWay = 0x1000;
constexpr uint64_t kPackedByLz4 = 0x2000;
constexpr uint64_t kPackedByZstd = 0x8000;

Packing packing_of(const ImageHeader& image) {
  if ((image.flags & kPackedByZstd) != 0) return Packing::kZstd;
  if ((image.flags & kPackedByLz4) != 0) return Packing::kLz4;
  return (image.flags & kPackedInAnotherWay) != 0 ? Packing::kUnknown : Packing::kNone;
}

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
      const Packing packing = packing_of(*image);
      const bool is_packed = packing != Packing::kNone;
      const auto content = part_of(container,
                                   position + image->header_bytes,
                                   is_packed ? image->packed_bytes : image->image_bytes);
      images.push_back({.is_ptx = image->kind == kPtx,
                        .architecture = static_cast<int>(image->architecture),
                        .is_for_that_one_only = (image->flags & kArchitectureSpecific) != 0,
                        .packing = packing,
                        .unpacked_bytes = is_packed ? image->unpacked_bytes : image->image_bytes,
                        .content = content.value_or(std::string_view())});
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

void FatBinary::read_kernels(const CodeImage& image) const {
  std::string unpacked_content;
  std::string_view content = image.content;
  if (image.packing != Packing::kNone) {
    unpacked_content =
        unpacked(image.packing, image.content, image.unpacked_bytes).value_or(std::string());
    content = unpacked_content;
  }
  kernels_ = image.is_ptx ? kernels_in_ptx(content) : kernels_in(content);
}

const KernelCode* FatBinary::code_of(std::string_view kernel, const CapabilityFacts& facts) const {
  const CodeImage* const image = best_for(facts);
  if (image == nullptr) return nullptr;
  // A process has one kind of device.
  std::call_once(kernels_once_, [&] { read_kernels(*image); });
  const auto found = kernels_.find(kernel);
  return found == kernels_.end() ? nullptr : &found->second;
}

std::optional<KernelNeeds> FatBinary::needs_of(std::string_view kernel,
                                               const CapabilityFacts& facts) const {
  const CodeImage* const image = best_for(facts);
  if (image == nullptr || image->packing != Packing::kNone) return std::nullopt;
  const KernelCode* const code = code_of(kernel, facts);
  return code == nullptr ? std::nullopt : code->needs;
}

}  // namespace virtual_gpu
