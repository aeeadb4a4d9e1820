#include "sampling/read/variable_names.hpp"

#include <cxxabi.h>
#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <sstream>
#include <system_error>

namespace lotus::tool {

std::string demangled(const std::string& mangled) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status), std::free);
  return status == 0 && text ? text.get() : "";
}

namespace {

std::string readable(const std::string& name) {
  // Otherwise a variable of C with the name m would be called unsigned long.
  const std::string text = name.rfind("_Z", 0) == 0 ? demangled(name) : "";
  return text.empty() ? name : text;
}

constexpr const char* distance_text = " (+0x";

/// Turns the name of a static variable of a lambda, such as "f(int)::{lambda()#1}::operator()()
/// const::m", into "f(int)::m".
std::string without_lambdas(const std::string& name) {
  const std::size_t first = name.find("{lambda(");
  if (first == std::string::npos || name.find('<') < first) return name;
  return name.substr(0, first) + name.substr(name.rfind("::") + 2);
}

/// An ELF file, open for reading.
class elf_file {
 public:
  explicit elf_file(const std::string& path) {
    std::error_code error;
    // Open only a regular file, because opening a pipe would block.
    if (!std::filesystem::is_regular_file(path, error)) return;
    elf_version(EV_CURRENT);
    fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd_ >= 0) elf_ = elf_begin(fd_, ELF_C_READ, nullptr);
  }
  elf_file(const elf_file&) = delete;
  elf_file& operator=(const elf_file&) = delete;
  ~elf_file() {
    if (elf_ != nullptr) elf_end(elf_);
    if (fd_ >= 0) ::close(fd_);
  }
  Elf* get() const noexcept { return elf_; }

 private:
  int fd_ = -1;
  Elf* elf_ = nullptr;
};

/// Returns the virtual address at which the first byte of the file is mapped, according to its
/// program headers. Symbol addresses are converted to distances from it.
std::uint64_t first_address(Elf* elf) {
  std::size_t count = 0;
  if (elf_getphdrnum(elf, &count) != 0) return 0;
  for (std::size_t i = 0; i < count; ++i) {
    GElf_Phdr part;
    if (gelf_getphdr(elf, static_cast<int>(i), &part) == nullptr || part.p_type != PT_LOAD) {
      continue;
    }
    return part.p_vaddr >= part.p_offset ? part.p_vaddr - part.p_offset : 0;
  }
  return 0;
}

}  // namespace

std::vector<variable_names::variable> variable_names::read(const std::string& module_path) {
  std::vector<variable> found;
  const elf_file file(module_path);
  if (file.get() == nullptr) return found;
  const std::uint64_t first = first_address(file.get());
  Elf_Scn* section = nullptr;
  while ((section = elf_nextscn(file.get(), section)) != nullptr) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr || header.sh_entsize == 0) continue;
    if (header.sh_type != SHT_SYMTAB && header.sh_type != SHT_DYNSYM) continue;
    Elf_Data* const data = elf_getdata(section, nullptr);
    const std::uint64_t count = data == nullptr ? 0 : data->d_size / header.sh_entsize;
    for (std::uint64_t i = 0; i < count; ++i) {
      GElf_Sym symbol;
      if (gelf_getsym(data, static_cast<int>(i), &symbol) == nullptr) break;
      if (GELF_ST_TYPE(symbol.st_info) != STT_OBJECT || symbol.st_shndx == SHN_UNDEF) continue;
      if (symbol.st_value < first) continue;
      const char* const name = elf_strptr(file.get(), header.sh_link, symbol.st_name);
      if (name != nullptr) found.push_back({symbol.st_value - first, symbol.st_size, name});
    }
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const variable& a, const variable& b) { return a.begin < b.begin; });
  return found;
}

std::string variable_names::find(const std::string& module_path, std::uint64_t distance) {
  const auto [module, fresh] = modules_.try_emplace(module_path);
  if (fresh) module->second = read(module_path);
  const std::vector<variable>& all = module->second;
  auto at =
      std::upper_bound(all.begin(), all.end(), distance,
                       [](std::uint64_t wanted, const variable& v) { return wanted < v.begin; });
  if (at != all.begin() && distance - (at - 1)->begin < (at - 1)->bytes) {
    const variable& v = *(at - 1);
    const std::uint64_t inside = distance - v.begin;
    // A short name can be made to stand for a text of gigabytes.
    if (!demangler_) demangler_ = std::make_unique<guarded_reader>(read_budget{}, readable);
    std::ostringstream text;
    text << demangler_->ask(v.name).value_or(v.name);
    if (inside != 0) text << distance_text << std::hex << inside << ')';
    return without_lambdas(text.str());
  }
  return {};
}

void variable_names::drop_distances(const std::vector<std::string*>& names) {
  std::map<std::string, std::set<std::string>> parts;
  const auto variable_of = [](const std::string& name) {
    return name.substr(0, name.rfind(distance_text));
  };
  for (const std::string* const name : names) parts[variable_of(*name)].insert(*name);
  for (std::string* const name : names) {
    const std::string variable = variable_of(*name);
    if (parts[variable].size() == 1) *name = variable;
  }
}

std::string variable_names::at(const std::string& module_path, std::uint64_t distance) {
  std::string name = find(module_path, distance);
  return name.empty() ? unknown(module_path, distance) : name;
}

std::string variable_names::unknown(const std::string& module_path, std::uint64_t distance) {
  std::ostringstream text;
  text << std::filesystem::path(module_path).filename().string() << "+0x" << std::hex << distance;
  return text.str();
}

}  // namespace lotus::tool
