// Lists where this process has mapped code from files.
#ifndef LOTUS_WAITS_CODE_RANGES_HPP
#define LOTUS_WAITS_CODE_RANGES_HPP

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "lotus/base/function_ref.hpp"
#include "lotus/base/mappings.hpp"
#include "lotus/config.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Returns a hash of several numbers: `hash`, which is the hash of all numbers but the last,
/// combined with the last one, `number`.
inline std::uint64_t hash_with(std::uint64_t hash, std::uint64_t number) noexcept {
  hash = (hash ^ number) * 0x9E3779B97F4A7C15ULL;
  return hash ^ hash >> 32;
}

inline std::uint64_t hash_with(std::uint64_t hash, std::string_view text) noexcept {
  for (const char c : text) hash = hash_with(hash, static_cast<unsigned char>(c));
  return hash;
}

/// A part of a file that this process has mapped as code.
struct code_part {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t file_offset = 0;
  std::uint64_t file_begin = 0;  ///< address at which the beginning of the file is mapped
  std::string_view path;
};

/// Calls a function for every part of a file that is mapped as code, sorted by address.
LOTUS_DETAIL_COLD inline void for_each_code(function_ref<void(const code_part&)> each) noexcept {
  std::uint64_t path_before = 0;
  std::uint64_t file_begin = 0;
  for_each_mapping([&](std::string_view line) {
    char head[96] = {};
    std::memcpy(head, line.data(), line.size() < sizeof(head) ? line.size() : sizeof(head) - 1);
    unsigned long long begin = 0;
    unsigned long long end = 0;
    unsigned long long offset = 0;
    char rights[5] = "";
    // NOLINTNEXTLINE(cert-err34-c): the kernel's own text
    if (std::sscanf(head, "%llx-%llx %4s %llx", &begin, &end, rights, &offset) != 4) return false;
    const std::string_view path = mapped_path(line);
    if (path.empty()) return false;
    const std::uint64_t hash = hash_with(0, path);
    if (hash != path_before || offset == 0) {
      path_before = hash;
      file_begin = begin - offset;
    }
    if (rights[2] == 'x') each({begin, end, offset, file_begin, path});
    return false;
  });
}

/// The addresses at which this process has mapped code from files. Not thread-safe. Trivially
/// destructible.
class code_ranges {
 public:
  /// Reads where code is mapped now. Returns whether these places differ from those that the
  /// previous call found.
  bool read() noexcept {
    count_ = 0;
    std::uint64_t hash = 0;
    for_each_code([&](const code_part& part) {
      hash = hash_with(hash_with(hash_with(hash, part.begin), part.end), part.file_offset);
      hash = hash_with(hash, part.path);
      if (count_ > 0 && ranges_[count_ - 1].end == part.begin) {
        ranges_[count_ - 1].end = part.end;
      } else if (count_ < capacity) {
        ranges_[count_++] = {part.begin, part.end};
      }
    });
    const bool changed = hash != hash_;
    hash_ = hash;
    return changed;
  }

  bool contains(std::uint64_t address) const noexcept {
    // Most words of a stack are numbers below or above the addresses of all code, for which no
    // search is needed.
    if (count_ == 0 || address < ranges_[0].begin || address >= ranges_[count_ - 1].end) {
      return false;
    }
    std::size_t first = 0;
    std::size_t last = count_;
    while (first < last) {
      const std::size_t middle = first + (last - first) / 2;
      if (address < ranges_[middle].begin) {
        last = middle;
      } else if (address >= ranges_[middle].end) {
        first = middle + 1;
      } else {
        return true;
      }
    }
    return false;
  }

 private:
  /// Maximum number of ranges. Code in further ranges is ignored, so a recorded stack ends at the
  /// first call from such code.
  static constexpr std::size_t capacity = 1024;

  struct range {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
  };

  range ranges_[capacity] = {};
  std::size_t count_ = 0;
  std::uint64_t hash_ = 0;
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_WAITS_CODE_RANGES_HPP
