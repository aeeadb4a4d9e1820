#include "sampling/read/unnamed_functions.hpp"

#include <elfutils/libdw.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "sampling/read/variable_names.hpp"

namespace lotus::tool {
namespace {

constexpr std::uint64_t word_bytes = 8;
// What a word refers to if that is in another file.
constexpr std::uint64_t other_file = 1;
constexpr std::uint64_t class_table = 2;  // the virtual table of a kind of type information

#if defined(__x86_64__)
constexpr std::uint32_t relative = R_X86_64_RELATIVE;
constexpr std::uint32_t absolute = R_X86_64_64;
#else
constexpr std::uint32_t relative = R_AARCH64_RELATIVE;
constexpr std::uint32_t absolute = R_AARCH64_ABS64;
#endif

/// Whether a symbol is the virtual table of a class of the C++ ABI whose objects are type
/// information (Itanium C++ ABI, 2.9.5).
bool is_class_table(std::string_view symbol) noexcept {
  return symbol.rfind("_ZTVN10__cxxabiv1", 0) == 0;
}

/// Calls `each` for all sections of an ELF file.
template <class Each>
void for_each_section(Elf* elf, const Each& each) {
  Elf_Scn* section = nullptr;
  while (elf != nullptr && (section = elf_nextscn(elf, section)) != nullptr) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) != nullptr) each(section, header);
  }
}

}  // namespace

std::uint64_t unnamed_functions::begin_of(std::uint64_t address) {
  if (!begins_read_) read_begins();
  const auto after = std::upper_bound(begins_.begin(), begins_.end(), address);
  return after == begins_.begin() ? 0 : *(after - 1);
}

std::string unnamed_functions::virtual_name(std::uint64_t begin) {
  if (!tables_read_) read_virtual_tables();
  const auto [first, last] = entries_.equal_range(begin);
  const table_entry* base = nullptr;
  for (auto at = first; at != last; ++at) {
    const table_entry& one = at->second;
    if (base == nullptr || is_derived(base->type, one.type)) base = &one;
  }
  if (base == nullptr) return {};
  const bool is_inherited = std::all_of(first, last, [&](const auto& one) {
    return one.second.type == base->type || is_derived(one.second.type, base->type);
  });
  const std::string name = demangled(types_[base->type].name);
  if (!is_inherited || name.empty()) return {};
  constexpr std::size_t run = 2;  // after two destructors
  const bool is_thread = name.rfind("std::thread::_State_impl<", 0) == 0;
  if (is_thread && base->index == run) return name + "::_M_run";
  return name + "::(virtual function " + std::to_string(base->index) + ')';
}

/// Reads the addresses at which functions begin from the unwind table .eh_frame (Linux Standard
/// Base, 10.6.1). Supports only the encoding that compilers use: each address as its distance, in
/// 32 bits, from the place where it is stored.
void unnamed_functions::read_begins() {
  begins_read_ = true;
  GElf_Ehdr file;
  std::size_t names = 0;
  if (elf_ == nullptr || gelf_getehdr(elf_, &file) == nullptr ||
      elf_getshdrstrndx(elf_, &names) != 0) {
    return;
  }
  for_each_section(elf_, [&](Elf_Scn* from, const GElf_Shdr& header) {
    const char* const name = elf_strptr(elf_, names, header.sh_name);
    if (name == nullptr || std::string_view(name) != ".eh_frame") return;
    Elf_Data* const data = elf_rawdata(from, nullptr);
    if (data == nullptr || data->d_buf == nullptr) return;
    const auto* const bytes = static_cast<const std::uint8_t*>(data->d_buf);
    Dwarf_CFI_Entry entry;
    Dwarf_Off next = 0;
    for (Dwarf_Off at = 0;
         dwarf_next_cfi(file.e_ident, data, true, at, &next, &entry) == 0 && next > at; at = next) {
      std::int32_t distance = 0;
      if (dwarf_cfi_cie_p(&entry) ||
          entry.fde.end - entry.fde.start < static_cast<std::ptrdiff_t>(sizeof distance)) {
        continue;
      }
      std::memcpy(&distance, entry.fde.start, sizeof distance);
      begins_.push_back(header.sh_addr + static_cast<std::uint64_t>(entry.fde.start - bytes) +
                        static_cast<std::uint64_t>(std::int64_t{distance}));
    }
  });
  std::sort(begins_.begin(), begins_.end());
}

bool unnamed_functions::is_begin(std::uint64_t address) const {
  return std::binary_search(begins_.begin(), begins_.end(), address);
}

void unnamed_functions::read_sections() {
  GElf_Ehdr file;
  // The linker stores addresses in a program that cannot be moved; otherwise it may leave them to
  // relocations, of which those in the compact form do not say what they add.
  const bool is_fixed = gelf_getehdr(elf_, &file) != nullptr && file.e_type == ET_EXEC;
  for_each_section(elf_, [&](Elf_Scn* section, const GElf_Shdr& header) {
    const bool has_data = header.sh_type == SHT_PROGBITS && (header.sh_flags & SHF_ALLOC) != 0 &&
                          (header.sh_flags & SHF_EXECINSTR) == 0;
    const Elf_Data* const data = has_data ? elf_rawdata(section, nullptr) : nullptr;
    if (data == nullptr || data->d_buf == nullptr) return;
    sections_.push_back({header.sh_addr, data->d_size, static_cast<const char*>(data->d_buf),
                         is_fixed || (header.sh_flags & SHF_WRITE) != 0});
  });
  std::sort(sections_.begin(), sections_.end(),
            [](const data_section& a, const data_section& b) { return a.begin < b.begin; });
}

/// Reads which words the dynamic linker sets to addresses.
void unnamed_functions::read_relocations() {
  for_each_section(elf_, [&](Elf_Scn* section, const GElf_Shdr& header) {
    if (header.sh_type != SHT_RELA || header.sh_entsize == 0) return;
    Elf_Data* const data = elf_getdata(section, nullptr);
    Elf_Scn* const symbols = elf_getscn(elf_, header.sh_link);
    Elf_Data* const of_symbols = symbols == nullptr ? nullptr : elf_getdata(symbols, nullptr);
    GElf_Shdr table{};
    if (data == nullptr || (symbols != nullptr && gelf_getshdr(symbols, &table) == nullptr)) return;
    for (std::size_t i = 0; i < data->d_size / header.sh_entsize; ++i) {
      GElf_Rela one;
      if (gelf_getrela(data, static_cast<int>(i), &one) == nullptr) return;
      const auto kind = static_cast<std::uint32_t>(GELF_R_TYPE(one.r_info));
      if (kind == relative) {
        relocated_[one.r_offset] = static_cast<std::uint64_t>(one.r_addend);
        continue;
      }
      GElf_Sym symbol;
      if (of_symbols == nullptr ||
          gelf_getsym(of_symbols, static_cast<int>(GELF_R_SYM(one.r_info)), &symbol) == nullptr) {
        continue;
      }
      const char* const text = elf_strptr(elf_, table.sh_link, symbol.st_name);
      const bool is_table = text != nullptr && is_class_table(text);
      // A program that cannot be moved has copies of these tables.
      if (is_table && symbol.st_value != 0) {
        type_tables_.push_back(symbol.st_value + 2 * word_bytes);
      }
      if (kind != absolute) continue;
      const std::uint64_t defined = symbol.st_value + static_cast<std::uint64_t>(one.r_addend);
      relocated_[one.r_offset] = symbol.st_shndx != SHN_UNDEF ? defined
                                 : is_table                   ? class_table
                                                              : other_file;
    }
  });
  type_tables_.push_back(class_table);
}

/// Adds to relocated_ the words without relocations that point into the file.
void unnamed_functions::read_pointers() {
  if (sections_.empty() || begins_.empty()) return;
  const std::uint64_t first = std::min(sections_.front().begin, begins_.front());
  const std::uint64_t last =
      std::max(sections_.back().begin + sections_.back().bytes, begins_.back() + 1);
  for (const data_section& of : sections_) {
    if (!of.may_point) continue;
    const std::uint64_t skipped = (word_bytes - of.begin % word_bytes) % word_bytes;
    for (std::uint64_t at = skipped; at + word_bytes <= of.bytes; at += word_bytes) {
      std::uint64_t value = 0;
      std::memcpy(&value, of.data + at, sizeof value);
      if (value >= first && value < last) relocated_.try_emplace(of.begin + at, value);
    }
  }
}

/// Returns the word at an address; nullopt if the file has no data there.
std::optional<std::uint64_t> unnamed_functions::word_at(std::uint64_t address) const {
  const auto known = relocated_.find(address);
  if (known != relocated_.end()) return known->second;
  for (const data_section& of : sections_) {
    if (address < of.begin || address - of.begin + word_bytes > of.bytes) continue;
    std::uint64_t value = 0;
    std::memcpy(&value, of.data + (address - of.begin), sizeof value);
    return value;
  }
  return std::nullopt;
}

/// Returns the name of a type at an address; "" if there is none.
std::string unnamed_functions::text_at(std::uint64_t address) const {
  for (const data_section& of : sections_) {
    if (address < of.begin || address - of.begin >= of.bytes) continue;
    const char* const text = of.data + (address - of.begin);
    std::string name(text, ::strnlen(text, of.bytes - (address - of.begin)));
    // The names of types that another file may define too begin with this character.
    if (!name.empty() && name.front() == '*') name.erase(0, 1);
    return name;
  }
  return {};
}

/// Whether a virtual table is that of type information. In a static program, it is in the file, and
/// its own type information says so.
/// @param table  address of the first function in the table, or class_table.
bool unnamed_functions::describes_type(std::uint64_t table) const {
  if (std::find(type_tables_.begin(), type_tables_.end(), table) != type_tables_.end()) return true;
  const auto of = table > 2 * word_bytes ? word_at(table - word_bytes) : std::nullopt;
  const auto name = of ? word_at(*of + word_bytes) : std::nullopt;
  return name && text_at(*name).rfind("N10__cxxabiv1", 0) == 0;
}

void unnamed_functions::read_virtual_tables() {
  tables_read_ = true;
  if (!begins_read_) read_begins();
  if (elf_ == nullptr) return;
  read_sections();
  read_relocations();
  read_pointers();
  for (const auto& [address, table] : relocated_) {
    if (!describes_type(table)) continue;
    const auto name = word_at(address + word_bytes);
    if (name) types_[address].name = text_at(*name);
  }
  for (auto& [address, of] : types_) {
    // The base follows the name, or the number of bases with their flags.
    for (const std::uint64_t at : {2 * word_bytes, 3 * word_bytes}) {
      const auto base = word_at(address + at);
      if (base && types_.count(*base) != 0 && of.base == 0) of.base = *base;
      constexpr std::uint64_t flags = 4;
      if (at == 2 * word_bytes && (!base || (*base & UINT32_MAX) >= flags || *base >> 36U != 0))
        break;
    }
  }
  // Before the functions of a table are the type information and, before that, the distance to the
  // beginning of the object. It is 0, unless the table is that of a second base.
  for (const auto& [address, type] : relocated_) {
    if (types_.count(type) != 0 && word_at(address - word_bytes) == std::uint64_t{0}) {
      add_table(address + word_bytes, type);
    }
  }
}

/// @param first  address of the first function in the table.
void unnamed_functions::add_table(std::uint64_t first, std::uint64_t type) {
  // An abstract class has no destructors in its table. The next table begins with a zero too, which
  // its type information follows.
  std::size_t zeros = 0;
  for (std::size_t i = 0;; ++i) {
    const auto function = word_at(first + i * word_bytes);
    if (!function) return;
    if (*function == 0 && ++zeros <= 2) {
      const auto next = word_at(first + (i + 1) * word_bytes);
      if (next && types_.count(*next) == 0) continue;
    }
    if (*function != other_file && !is_begin(*function)) return;
    if (*function != other_file) entries_.emplace(*function, table_entry{type, i});
  }
}

bool unnamed_functions::is_derived(std::uint64_t type, std::uint64_t from) const {
  constexpr int max_depth = 64;  // a damaged file may have a cycle
  for (int depth = 0; depth < max_depth; ++depth) {
    const auto found = types_.find(type);
    if (found == types_.end() || found->second.base == 0) return false;
    type = found->second.base;
    if (type == from) return true;
  }
  return false;
}

}  // namespace lotus::tool
