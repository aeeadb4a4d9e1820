// Names of operations: decodes the library's escapes, and assigns small numbers to names.
#ifndef LOTUS_TOOL_LOG_OPERATION_NAMES_HPP
#define LOTUS_TOOL_LOG_OPERATION_NAMES_HPP

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace lotus::tool {

/// Decodes the log's escapes: %XX becomes the byte XX; a '%' without two hexadecimal digits after
/// it stays (PyTorch's Lotus escapes nothing).
std::string decode_name(std::string_view raw);

/// Assigns a number to every distinct text: 0, 1, 2, … in order of first appearance. Texts are
/// copied. Not thread-safe.
class raw_name_table {
 public:
  raw_name_table();

  std::uint32_t id(std::string_view text) {
    const std::uint64_t hash = hash_of(text);
    for (std::size_t i = hash & mask_;; i = (i + 1) & mask_) {
      const slot& s = slots_[i];
      if (s.hash == hash && same(texts_[s.id], text)) return s.id;
      if (s.hash == 0) return add(text, hash);
    }
  }

 private:
  struct slot {
    std::uint64_t hash = 0;  // 0: unused
    std::uint32_t id = 0;
  };

  static bool same(const std::string& a, std::string_view b) noexcept {
    return a.size() == b.size() && equal(a.data(), b.data(), a.size());
  }

  /// Same as memcmp() == 0 without the call, because names are short.
  static bool equal(const char* a, const char* b, std::size_t n) noexcept {
    if (n < 8) {
      for (; n > 0; --n, ++a, ++b) {
        if (*a != *b) return false;
      }
      return true;
    }
    std::uint64_t x = 0;
    std::uint64_t y = 0;
    for (std::size_t at = 0; at + 8 < n; at += 8) {
      std::memcpy(&x, a + at, 8);
      std::memcpy(&y, b + at, 8);
      if (x != y) return false;
    }
    std::memcpy(&x, a + n - 8, 8);  // the last eight bytes, some perhaps for the second time
    std::memcpy(&y, b + n - 8, 8);
    return x == y;
  }

  /// A multiplicative hash over words of 8 bytes, designed for short names.
  static std::uint64_t hash_of(std::string_view text) noexcept {
    std::uint64_t head = 0;
    std::uint64_t tail = 0;
    const std::size_t n = text.size();
    if (n >= 8) {
      std::memcpy(&head, text.data(), 8);
      std::memcpy(&tail, text.data() + n - 8, 8);
      std::uint64_t middle = 0;
      for (std::size_t at = 8; at + 8 < n; at += 8) {
        std::memcpy(&middle, text.data() + at, 8);
        head = (head ^ middle) * 0x9E3779B97F4A7C15U;
        head ^= head >> 29U;
      }
    } else {
      for (const char c : text) head = head << 8U | static_cast<unsigned char>(c);
    }
    std::uint64_t h = (head ^ n) * 0x9E3779B97F4A7C15U;
    h = (h ^ (h >> 32U) ^ tail) * 0xD6E8FEB86659FD93U;
    h ^= h >> 32U;
    return h == 0 ? 1 : h;
  }

  std::uint32_t add(std::string_view text, std::uint64_t hash);
  void place(const slot& s);

  std::vector<slot> slots_;
  std::size_t mask_ = 0;
  std::vector<std::string> texts_;
};

/// Assigns a number to every distinct name by its meaning: two raw names that decode to the same
/// text share a number. Not thread-safe.
class name_table {
 public:
  /// @param raw  the name as in the log.
  std::uint32_t id(std::string_view raw) {
    const std::uint32_t n = raws_.id(raw);
    return n < ids_.size() ? ids_[n] : add(raw);
  }

  /// @param name  a decoded name, from name() of another table.
  std::uint32_t id_of_decoded(const std::string& name);

  /// The decoded name, valid UTF-8.
  const std::string& name(std::uint32_t id) const { return names_[id]; }
  std::size_t size() const noexcept { return names_.size(); }

 private:
  std::uint32_t add(std::string_view raw);

  raw_name_table raws_;
  std::vector<std::uint32_t> ids_;  // by number of the raw name
  std::vector<std::string> names_;
  std::unordered_map<std::string, std::uint32_t> by_name_;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_LOG_OPERATION_NAMES_HPP
