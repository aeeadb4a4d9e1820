#include "waits/data/wait_files.hpp"

#include <cxxabi.h>
#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include "base/diagnostics.hpp"
#include "base/guarded_reader.hpp"
#include "log/folder/log_files.hpp"
#include "lotus/folder/hidden_files.hpp"
#include "waits/data/process_files.hpp"
#include "waits/data/stack_files.hpp"

namespace lotus::tool {
namespace {

/// Maximum number of samples of a run that are kept: each takes up to 310 bytes with what is
/// derived from it.
constexpr std::size_t max_wait_samples = std::size_t{1} << 18U;

/// Finds the names of global variables in the symbol tables of modules (ELF programs and
/// libraries). Reads each module only once. Not thread-safe.
class variable_names {
 public:
  /// Returns the demangled name of the variable that contains the address. If the variable begins
  /// before the address, a text such as "+0x40" follows. If no variable is found, returns the
  /// module's name and the distance.
  /// @param distance  distance in bytes between the address and the start of the mapped module.
  std::string at(const std::string& module_path, std::uint64_t distance);

 private:
  struct variable {
    std::uint64_t begin = 0;
    std::uint64_t bytes = 0;
    std::string name;
  };
  static std::vector<variable> read(const std::string& module_path);

  // The key is the path of the module; variables are sorted by address.
  std::map<std::string, std::vector<variable>> modules_;
  std::unique_ptr<guarded_reader> demangler_;
};

struct free_memory {
  void operator()(void* p) const noexcept { std::free(p); }  // NOLINT: C code allocated the memory
};

std::string demangle(const std::string& name) {
  int status = 0;
  const std::unique_ptr<char, free_memory> text(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status));
  return status == 0 && text ? text.get() : name;
}

std::string hexadecimal(std::uint64_t number) {
  std::ostringstream text;
  text << "0x" << std::hex << number;
  return text.str();
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

std::string variable_names::at(const std::string& module_path, std::uint64_t distance) {
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
    if (!demangler_) demangler_ = std::make_unique<guarded_reader>(read_budget{}, demangle);
    return demangler_->ask(v.name).value_or(v.name) +
           (inside == 0 ? "" : '+' + hexadecimal(inside));
  }
  return std::filesystem::path(module_path).filename().string() + '+' + hexadecimal(distance);
}

/// The samples of all processes of a run. If there are many, keeps only each second one of them,
/// each fourth and so on, and lets it stand for the time of those that are left out. Shares stay
/// exact within 0.2 percentage points, and memory stays bounded.
class limited_samples {
 public:
  process_waits& of(const std::string& ending) {
    process_waits& process = by_ending_[ending];
    process.ending = ending;
    return process;
  }

  void add(process_waits& to, wait_sample sample) {
    if (seen_++ % every_ != 0) return;
    sample.ns = times(sample.ns, every_);
    to.samples.push_back(std::move(sample));
    if (++kept_ > max_wait_samples) halve();
  }

  /// Returns the processes that have samples, with the samples sorted by time and thread.
  std::vector<process_waits> take() {
    std::vector<process_waits> all;
    for (auto& [ending, process] : by_ending_) {
      std::stable_sort(process.samples.begin(), process.samples.end(),
                       [](const wait_sample& a, const wait_sample& b) {
                         return std::tie(a.time_ns, a.tid) < std::tie(b.time_ns, b.tid);
                       });
      if (!process.samples.empty()) all.push_back(std::move(process));
    }
    return all;
  }

 private:
  static std::int64_t times(std::int64_t ns, std::int64_t factor) {
    std::int64_t product = 0;
    return __builtin_mul_overflow(ns, factor, &product) ? ns : product;
  }

  void halve() {
    every_ *= 2;
    kept_ = 0;
    for (auto& [ending, process] : by_ending_) {
      std::vector<wait_sample>& samples = process.samples;
      for (std::size_t i = 0; i < samples.size(); i += 2) {
        samples[i].ns = times(samples[i].ns, 2);
        if (i > 0) samples[i / 2] = std::move(samples[i]);
      }
      samples.resize((samples.size() + 1) / 2);
      kept_ += samples.size();
    }
  }

  std::map<std::string, process_waits> by_ending_;
  std::int64_t every_ = 1;
  std::int64_t seen_ = 0;
  std::size_t kept_ = 0;
};

/// Parses the lines of a file with wait samples and stores the samples in `to`.
class line_reader {
 public:
  line_reader(process_waits& to, limited_samples& samples, variable_names& variables)
      : to_(to), samples_(samples), variables_(variables) {}

  /// Parses one line. Returns false if the line is damaged.
  bool take_line(std::string_view line) {
    const std::string_view kind = take(line, ',');
    if (kind == "look") return parse_sample(line);
    std::uint64_t id = 0;
    if (!read_number(take(line, ','), id) || id == 0) return false;
    // The lines that follow refer to the newest 512 objects, which have the largest numbers.
    if (objects_.size() > UINT16_MAX) objects_.erase(objects_.begin());
    if (named_.size() > UINT16_MAX) named_.erase(named_.begin());
    if (kind == "object") {
      objects_[id] = line;
      return !line.empty();
    }
    std::uint64_t address = 0;
    std::uint64_t base = 0;
    if (kind != "variable" || !read_number(take(line, ','), address, 16) ||
        !read_number(take(line, ','), base, 16) || base > address || line.empty()) {
      return false;
    }
    objects_[id] = variables_.at(std::string(line), address - base);
    named_[address] = objects_[id];
    return true;
  }

  /// Sets the missing names of variables in samples. A name may be missing because the line with
  /// the name came after the sample.
  void name_all() {
    for (wait_sample& sample : to_.samples) {
      const auto known = named_.find(sample.address);
      if (sample.what.empty() && known != named_.end()) sample.what = known->second;
    }
  }

 private:
  bool parse_sample(std::string_view line) {
    wait_sample sample;
    std::uint64_t object = 0;
    if (!read_number(take(line, ','), sample.time_ns) ||
        !read_number(take(line, ','), sample.tid) || !read_reason(take(line, ','), sample.reason) ||
        !read_number(take(line, ','), object) ||
        !read_number(take(line, ','), sample.address, 16) ||
        !read_number(take(line, ','), sample.holder) || !read_number(line, sample.ns)) {
      return false;
    }
    const auto known = objects_.find(object);
    if (known != objects_.end()) sample.what = known->second;
    samples_.add(to_, std::move(sample));
    return true;
  }

  process_waits& to_;
  limited_samples& samples_;
  variable_names& variables_;
  std::map<std::uint64_t, std::string> objects_;
  std::map<std::uint64_t, std::string> named_;  // names of variables by address
};

}  // namespace

bool read_reason(std::string_view word, wait_reason& reason) {
  for (std::size_t i = 0; i < lotus::detail::wait_reasons; ++i) {
    if (word != lotus::detail::wait_reason_words[i]) continue;
    reason = static_cast<wait_reason>(i);
    return true;
  }
  return false;
}

std::vector<process_waits> read_waits(const run_files& run, diagnostic_log& diagnostics) {
  limited_samples samples;
  variable_names variables;
  for (const process_file& file :
       files_of_processes(run, lotus::detail::waits_file_start, diagnostics)) {
    line_reader lines(samples.of(file.ending), samples, variables);
    read_whole_lines(file.path, "not a wait sample; ", diagnostics,
                     [&lines](std::string_view line) { return lines.take_line(line); });
    lines.name_all();
  }
  std::vector<process_waits> all = samples.take();
  find_stacks(run, all, diagnostics);
  return all;
}

}  // namespace lotus::tool
