// Names of operations: undoing the library's escapes, and small numbers for names.
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

/// Undoes the log's escapes: %XX becomes the byte XX; a '%' that two hexadecimal digits do not
/// follow stays (PyTorch's Lotus escapes nothing).
std::string decode_name(std::string_view raw);

/// Gives every distinct text a number: 0, 1, 2, … in order of first appearance. Texts are copied.
/// Not thread-safe.
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
    std::uint64_t hash = 0;  // 0: free
    std::uint32_t id = 0;
  };

  static bool same(const std::string& a, std::string_view b) noexcept {
    return a.size() == b.size() && equal(a.data(), b.data(), a.size());
  }

  /// As memcmp() == 0, without the call: names are short.
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
    std::memcpy(&x, a + n - 8, 8);  // the last eight, whatever of them was compared already
    std::memcpy(&y, b + n - 8, 8);
    return x == y;
  }

  /// A multiplicative hash over words of 8 bytes, made for short names.
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

/// Gives every distinct name a number, by what it means: two raw names that decode to the same
/// text share one. Not thread-safe.
class name_table {
 public:
  /// @param raw  as it stands in the log.
  std::uint32_t id(std::string_view raw) {
    const std::uint32_t n = raws_.id(raw);
    return n < ids_.size() ? ids_[n] : add(raw);
  }

  /// @param name  as name() tells it, of another table.
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
