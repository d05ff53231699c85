#include "sim/virtual_gpu/cuda/cubin.h"

#include <elf.h>

#include <cstdint>
#include <cstring>
#include <string_view>

namespace virtual_gpu {
namespace {

// A cubin is an ELF file. A kernel's section .nv.info.NAME is a list of attributes, each two bytes
// (format, attribute) and two more, which are its value or, in one format, the size of the value
// that follows. Not documented; `cuobjdump -elf` shows it.
constexpr std::string_view kInfoPrefix = ".nv.info.";
constexpr uint8_t kSizedFormat = 4;
constexpr uint8_t kParameterInfo = 0x17;       // EIATTR_KPARAM_INFO
constexpr uint8_t kLargeParameterInfo = 0x45;  // EIATTR_KPARAM_INFO_V2

struct Attribute {
  uint8_t format;
  uint8_t kind;
  uint16_t size;
};

struct ParameterInfo {
  uint32_t index;
  uint16_t ordinal;
  uint16_t offset;
  uint32_t facts;  // the size is in the upper 14 bits, of a large one in the lower 16
};

template <typename Struct>
Struct read(const char* bytes) {
  Struct value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

ParameterBytes parameters_of(const char* info, size_t info_bytes) {
  ParameterBytes parameters;
  const char* const end = info + info_bytes;
  while (end - info >= static_cast<ptrdiff_t>(sizeof(Attribute))) {
    const auto attribute = read<Attribute>(info);
    info += sizeof attribute;
    if (attribute.format != kSizedFormat) continue;
    const bool is_large = attribute.kind == kLargeParameterInfo;
    if (is_large || attribute.kind == kParameterInfo) {
      const auto parameter = read<ParameterInfo>(info);
      if (parameter.ordinal >= parameters.size()) parameters.resize(parameter.ordinal + 1);
      parameters[parameter.ordinal] = is_large ? parameter.facts & 0xffff : parameter.facts >> 18;
    }
    info += attribute.size;
  }
  return parameters;
}

}  // namespace

std::map<std::string, ParameterBytes> parameters_in(const void* image) {
  std::map<std::string, ParameterBytes> found;
  if (image == nullptr || std::memcmp(image, ELFMAG, SELFMAG) != 0) return found;
  const char* const file = static_cast<const char*>(image);
  const auto header = read<Elf64_Ehdr>(file);
  const auto section = [&](size_t index) {
    return read<Elf64_Shdr>(file + header.e_shoff + index * header.e_shentsize);
  };
  const char* const names = file + section(header.e_shstrndx).sh_offset;
  for (size_t i = 0; i < header.e_shnum; ++i) {
    const Elf64_Shdr info = section(i);
    const std::string_view name = names + info.sh_name;
    if (!name.starts_with(kInfoPrefix)) continue;
    found.emplace(name.substr(kInfoPrefix.size()),
                  parameters_of(file + info.sh_offset, info.sh_size));
  }
  return found;
}

}  // namespace virtual_gpu
