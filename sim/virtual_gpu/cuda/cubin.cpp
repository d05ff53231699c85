#include "sim/virtual_gpu/cuda/cubin.h"

#include <elf.h>

#include <cstdint>
#include <utility>

#include "sim/virtual_gpu/bytes.h"

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

/// Up to the zero that ends it; "" behind the end.
std::string_view c_string_at(std::string_view bytes, uint64_t offset) {
  if (offset > bytes.size()) return {};
  const std::string_view text = bytes.substr(offset);
  return text.substr(0, text.find('\0'));
}

/// None of a damaged list: one that is known in part would hide where a kernel writes.
std::optional<ParameterBytes> parameters_of(std::string_view info) {
  ParameterBytes parameters;
  uint64_t position = 0;
  while (const auto attribute = read_at<Attribute>(info, position)) {
    position += sizeof *attribute;
    if (attribute->format != kSizedFormat) continue;
    const bool is_large = attribute->kind == kLargeParameterInfo;
    if (is_large || attribute->kind == kParameterInfo) {
      const auto parameter = read_at<ParameterInfo>(info, position);
      if (!parameter) return std::nullopt;
      if (parameter->ordinal >= parameters.size()) parameters.resize(parameter->ordinal + 1);
      parameters[parameter->ordinal] =
          is_large ? parameter->facts & 0xffff : parameter->facts >> 18;
    }
    position += attribute->size;
  }
  return parameters;
}

/// The sections of an ELF file.
class Sections {
 public:
  Sections(std::string_view file, const Elf64_Ehdr& header) : file_(file), header_(header) {}

  std::optional<Elf64_Shdr> at(uint64_t index) const {
    return read_at<Elf64_Shdr>(file_, header_.e_shoff + index * header_.e_shentsize);
  }
  std::optional<std::string_view> content(const std::optional<Elf64_Shdr>& section) const {
    return section ? part_of(file_, section->sh_offset, section->sh_size) : std::nullopt;
  }

 private:
  std::string_view file_;
  Elf64_Ehdr header_;
};

}  // namespace

std::map<std::string, ParameterBytes> parameters_in(std::string_view image) {
  std::map<std::string, ParameterBytes> found;
  if (!image.starts_with(ELFMAG)) return found;
  const auto header = read_at<Elf64_Ehdr>(image, 0);
  if (!header) return found;
  const Sections sections(image, *header);
  const auto names = sections.content(sections.at(header->e_shstrndx));
  if (!names) return found;
  for (uint64_t i = 0; i < header->e_shnum; ++i) {
    const auto section = sections.at(i);
    if (!section) break;
    const std::string_view name = c_string_at(*names, section->sh_name);
    const auto info = sections.content(section);
    if (!name.starts_with(kInfoPrefix) || !info) continue;
    if (auto parameters = parameters_of(*info)) {
      found.emplace(name.substr(kInfoPrefix.size()), std::move(*parameters));
    }
  }
  return found;
}

}  // namespace virtual_gpu
