#include "sim/virtual_gpu/kernels/cubin.h"

#include <elf.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "sim/virtual_gpu/bytes.h"

namespace virtual_gpu {
namespace {

// A cubin is an ELF file. A kernel's section .nv.info.NAME is a list of attributes, each two bytes
// (format, attribute) and two more, which are its value or, in one format, the size of the value
// that follows; .nv.info is a list for all kernels. Not documented; `cuobjdump -elf` shows it.
constexpr std::string_view kInfo = ".nv.info";
constexpr std::string_view kInfoPrefix = ".nv.info.";
constexpr uint8_t kSizedFormat = 4;
constexpr uint8_t kParameterInfo = 0x17;       // EIATTR_KPARAM_INFO
constexpr uint8_t kLargeParameterInfo = 0x45;  // EIATTR_KPARAM_INFO_V2
constexpr uint8_t kRegisterCount = 0x2f;       // EIATTR_REGCOUNT
constexpr uint32_t kMostRegisters = 255;       // of a thread

// A kernel's static shared memory is the section .nv.shared.NAME. Where the code names what the
// device reserves of each block (from capability 9.0 on), that section has it, too.
constexpr std::string_view kSharedPrefix = ".nv.shared.";
constexpr std::string_view kReservedShared = ".nv.shared.reserved.0";
constexpr uint64_t kReservedSharedBytes = 1024;
constexpr uint64_t kMostSharedBytes = 1024 * 1024;  // more than any device has

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

struct RegisterCount {
  uint32_t symbol;
  uint32_t registers;
};

/// Up to the zero that ends it; "" behind the end.
std::string_view c_string_at(std::string_view bytes, uint64_t offset) {
  if (offset > bytes.size()) return {};
  const std::string_view text = bytes.substr(offset);
  return text.substr(0, text.find('\0'));
}

/// Calls `visit(attribute, place of its value)` for each attribute that has a value behind it.
template <typename Visit>
void visit_sized(std::string_view info, Visit visit) {
  uint64_t position = 0;
  while (const auto attribute = read_at<Attribute>(info, position)) {
    position += sizeof *attribute;
    if (attribute->format != kSizedFormat) continue;
    visit(*attribute, position);
    position += attribute->size;
  }
}

/// None of a damaged list: one that is known in part would hide where a kernel writes.
std::optional<ParameterBytes> parameters_of(std::string_view info) {
  ParameterBytes parameters;
  bool is_whole = true;
  visit_sized(info, [&](const Attribute& attribute, uint64_t place) {
    const bool is_large = attribute.kind == kLargeParameterInfo;
    if (!is_large && attribute.kind != kParameterInfo) return;
    const auto parameter = read_at<ParameterInfo>(info, place);
    is_whole = is_whole && parameter;
    if (!is_whole) return;
    if (parameter->ordinal >= parameters.size()) parameters.resize(parameter->ordinal + 1);
    parameters[parameter->ordinal] = is_large ? parameter->facts & 0xffff : parameter->facts >> 18;
  });
  return is_whole ? std::optional(parameters) : std::nullopt;
}

/// An ELF file's sections, by name; damaged ones are missing.
class Sections {
 public:
  Sections(std::string_view file, const Elf64_Ehdr& header) : file_(file), header_(header) {
    const auto names = content(at(header.e_shstrndx));
    if (!names) return;
    for (uint64_t i = 0; i < header.e_shnum; ++i) {
      const auto section = at(i);
      if (!section) break;
      by_name_.emplace(c_string_at(*names, section->sh_name), *section);
    }
  }

  const std::map<std::string_view, Elf64_Shdr>& by_name() const { return by_name_; }
  std::optional<std::string_view> content(const std::optional<Elf64_Shdr>& section) const {
    return section ? part_of(file_, section->sh_offset, section->sh_size) : std::nullopt;
  }
  std::optional<Elf64_Shdr> find(std::string_view name) const {
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? std::nullopt : std::optional(found->second);
  }
  std::string_view symbol_name(uint32_t index) const {
    const auto table = find(".symtab");
    const auto symbols = content(table);
    const auto names = table ? content(at(table->sh_link)) : std::nullopt;
    if (!symbols || !names) return {};
    const auto symbol = read_at<Elf64_Sym>(*symbols, index * sizeof(Elf64_Sym));
    return symbol ? c_string_at(*names, symbol->st_name) : std::string_view();
  }

 private:
  std::optional<Elf64_Shdr> at(uint64_t index) const {
    return read_at<Elf64_Shdr>(file_, header_.e_shoff + index * header_.e_shentsize);
  }

  std::string_view file_;
  Elf64_Ehdr header_;
  std::map<std::string_view, Elf64_Shdr> by_name_;
};

int static_shared_bytes(const Sections& sections, const std::string& kernel) {
  const auto section = sections.find(std::string(kSharedPrefix) + kernel);
  if (!section) return 0;
  const uint64_t reserved = sections.find(kReservedShared) ? kReservedSharedBytes : 0;
  const uint64_t bytes = std::min<uint64_t>(section->sh_size, kMostSharedBytes);
  return static_cast<int>(bytes - std::min(bytes, reserved));
}

void add_needs(const Sections& sections, KernelCodes& kernels) {
  const auto info = sections.content(sections.find(kInfo));
  if (!info) return;
  visit_sized(*info, [&](const Attribute& attribute, uint64_t place) {
    if (attribute.kind != kRegisterCount) return;
    const auto count = read_at<RegisterCount>(*info, place);
    if (!count || count->registers > kMostRegisters) return;
    const auto kernel = kernels.find(sections.symbol_name(count->symbol));
    if (kernel == kernels.end()) return;
    kernel->second.needs = {.registers_per_thread = static_cast<int>(count->registers),
                            .static_shared_bytes = static_shared_bytes(sections, kernel->first)};
  });
}

}  // namespace

KernelCodes kernels_in(std::string_view image) {
  KernelCodes found;
  if (!image.starts_with(ELFMAG)) return found;
  const auto header = read_at<Elf64_Ehdr>(image, 0);
  if (!header) return found;
  const Sections sections(image, *header);
  for (const auto& [name, section] : sections.by_name()) {
    const auto info = sections.content(section);
    if (!name.starts_with(kInfoPrefix) || !info) continue;
    found[std::string(name.substr(kInfoPrefix.size()))] = {.parameter_bytes = parameters_of(*info),
                                                           .needs = std::nullopt};
  }
  add_needs(sections, found);
  return found;
}

}  // namespace virtual_gpu
