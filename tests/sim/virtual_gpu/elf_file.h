// Cubins made by hand.
#pragma once

#include <elf.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace virtual_gpu {

/// An ELF file's sections, by name and content; the first one holds the names.
class ElfFile {
 public:
  ElfFile() { add("", ""); }
  void add(const std::string& name, const std::string& content, uint64_t bytes_without = 0) {
    Elf64_Shdr section{};
    section.sh_name = static_cast<uint32_t>(names_.size());
    section.sh_offset = contents_.size();
    section.sh_size = content.size() + bytes_without;
    names_ += name + '\0';
    contents_ += content;
    sections_.push_back(section);
  }
  /// The strings of the symbol table are the section behind it.
  void link_last() { sections_.back().sh_link = static_cast<uint32_t>(sections_.size()); }

  std::string file() {
    sections_[0].sh_offset = contents_.size();
    sections_[0].sh_size = names_.size();
    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_shoff = sizeof header;
    header.e_shentsize = sizeof(Elf64_Shdr);
    header.e_shnum = static_cast<uint16_t>(sections_.size());
    const uint64_t start = sizeof header + sections_.size() * sizeof(Elf64_Shdr);
    std::string file(reinterpret_cast<const char*>(&header), sizeof header);
    for (Elf64_Shdr section : sections_) {
      section.sh_offset += start;
      file.append(reinterpret_cast<const char*>(&section), sizeof section);
    }
    return file + contents_ + names_;
  }

 private:
  std::vector<Elf64_Shdr> sections_;
  std::string names_, contents_;
};

template <typename Value>
std::string bytes_of(const Value& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

/// A cubin with one kernel, whose parameters have these sizes.
inline std::string cubin_with(const std::string& kernel, const std::vector<uint32_t>& sizes) {
  std::string info;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const struct {
      uint8_t format = 4, kind = 0x17;
      uint16_t size = 12;
      uint32_t index = 0;
      uint16_t ordinal, offset = 0;
      uint32_t facts;
    } parameter{.ordinal = static_cast<uint16_t>(i), .facts = sizes[i] << 18};
    info += bytes_of(parameter);
  }
  ElfFile elf;
  elf.add(".nv.info." + kernel, info);
  return elf.file();
}

}  // namespace virtual_gpu
