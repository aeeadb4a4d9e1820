// Decodes the library's escapes in names of operations, and assigns small numbers to names.
#ifndef LOTUS_TOOL_LOG_OPERATION_NAMES_HPP
#define LOTUS_TOOL_LOG_OPERATION_NAMES_HPP

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lotus::tool {

/// Decodes the escapes of a log: %XX becomes the byte XX. Keeps a '%' without two hexadecimal
/// digits after it, because the original Lotus for PyTorch does not escape names.
std::string decode_name(std::string_view raw);

/// Assigns a number to every distinct text: 0, 1, 2, … in the order of first appearance. Texts are
/// copied; the copies keep their addresses as long as the table exists, even if the table is moved.
/// In a table of a million names of 16 bytes, each name takes about 45 bytes. Not thread-safe.
class raw_name_table {
 public:
  raw_name_table() = default;
  raw_name_table(const raw_name_table&) = delete;
  raw_name_table& operator=(const raw_name_table&) = delete;
  raw_name_table(raw_name_table&& other) noexcept { swap(other); }
  raw_name_table& operator=(raw_name_table&& other) noexcept {
    raw_name_table taken(std::move(other));
    swap(taken);
    return *this;
  }
  ~raw_name_table() = default;

  std::uint32_t id(std::string_view text) {
    const std::uint32_t hash = hash_of(text);
    const std::uint32_t known = find(text, hash);
    return known != none ? known : add(text, hash);
  }

  static constexpr std::uint32_t none = UINT32_MAX;

  /// Returns the number of the text; `none` if the table does not contain the text.
  std::uint32_t find(std::string_view text) const noexcept { return find(text, hash_of(text)); }

  /// Whether the number `id` (below size()) is that of the text.
  bool has(std::uint32_t id, std::string_view text) const noexcept {
    return same(this->text(id), text);
  }

  std::string_view text(std::uint32_t id) const noexcept {
    std::uint32_t bytes = 0;
    std::memcpy(&bytes, texts_[id], sizeof bytes);
    return {texts_[id] + sizeof bytes, bytes};
  }
  std::size_t size() const noexcept { return texts_.size(); }

 private:
  struct slot {
    std::uint32_t hash = 0;
    std::uint32_t id = none;  // none: the slot is unused
  };

  std::uint32_t find(std::string_view text, std::uint32_t hash) const noexcept {
    if (slots_.empty()) return none;
    for (std::size_t i = hash & mask_;; i = (i + 1) & mask_) {
      const slot& s = slots_[i];
      if (s.id == none) return none;
      if (s.hash == hash && same(this->text(s.id), text)) return s.id;
    }
  }

  static bool same(std::string_view a, std::string_view b) noexcept {
    return a.size() == b.size() && equal(a.data(), b.data(), a.size());
  }

  /// Like memcmp() == 0, but without the cost of a function call, which is high for short names.
  static bool equal(const char* a, const char* b, std::size_t n) noexcept {
    if (n < 8) return short_text(a, n) == short_text(b, n);
    std::uint64_t x = 0;
    std::uint64_t y = 0;
    for (std::size_t at = 0; at + 8 < n; at += 8) {
      std::memcpy(&x, a + at, 8);
      std::memcpy(&y, b + at, 8);
      if (x != y) return false;
    }
    // Compare the last eight bytes of both texts. They may overlap with bytes that the loop has
    // already compared, which does no harm.
    std::memcpy(&x, a + n - 8, 8);
    std::memcpy(&y, b + n - 8, 8);
    return x == y;
  }

  /// Returns the bytes of a text of fewer than 8 bytes as a number. Texts of the same length have
  /// the same number only if they are equal. For 4 to 7 bytes, some occur twice in the number.
  static std::uint64_t short_text(const char* p, std::size_t n) noexcept {
    if (n >= 4) {
      std::uint32_t head = 0;
      std::uint32_t tail = 0;
      std::memcpy(&head, p, 4);
      std::memcpy(&tail, p + n - 4, 4);
      return head | std::uint64_t{tail} << 32U;
    }
    if (n == 0) return 0;
    const auto byte = [p](std::size_t at) {
      return std::uint64_t{static_cast<unsigned char>(p[at])};
    };
    return byte(0) | byte(n / 2) << 8U | byte(n - 1) << 16U;
  }

  /// A multiplicative hash over words of 8 bytes, designed for short names.
  static std::uint32_t hash_of(std::string_view text) noexcept {
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
      head = short_text(text.data(), n);
    }
    std::uint64_t h = (head ^ n) * 0x9E3779B97F4A7C15U;
    h = (h ^ (h >> 32U) ^ tail) * 0xD6E8FEB86659FD93U;
    return static_cast<std::uint32_t>(h ^ (h >> 32U));
  }

  std::uint32_t add(std::string_view text, std::uint32_t hash);
  void swap(raw_name_table& other) noexcept;
  void place(const slot& s) noexcept;
  const char* keep(std::string_view text);

  std::vector<slot> slots_;
  std::size_t mask_ = 0;
  // For each number, a pointer to its text: four bytes with the length, then the characters.
  std::vector<const char*> texts_;
  std::vector<std::unique_ptr<char[]>> pages_;  // NOLINT(modernize-avoid-c-arrays)
  char* free_ = nullptr;                        // first unused byte in the last page
  std::size_t left_ = 0;                        // number of unused bytes in the last page
};

/// Assigns a number to every distinct decoded name: two raw names that decode to the same name
/// share a number. Not thread-safe.
class name_table {
 public:
  /// Returns the number of a name, and assigns a new number if the table does not contain the name.
  /// @param raw  the name as it is in the log, with escapes.
  std::uint32_t id(std::string_view raw) {
    // Operations follow each other in the same order again and again.
    if (last_ < after_.size()) {
      const std::uint32_t expected = after_[last_];
      if (expected != raw_name_table::none && names_.has(expected, raw)) return last_ = expected;
    }
    const std::uint32_t n = names_.find(raw);
    if (n == raw_name_table::none || !means_itself_[n]) return id_of_other(raw);
    if (last_ < after_.size()) after_[last_] = n;
    last_ = n;
    if (n >= after_.size() && n < max_followed) after_.resize(n + 1, raw_name_table::none);
    return n;
  }

  /// Returns the number of a name; raw_name_table::none if the table does not contain the name.
  /// @param raw  the name as it is in the log, with escapes.
  std::uint32_t find(std::string_view raw) const {
    const std::uint32_t n = names_.find(raw);
    return n != raw_name_table::none && means_itself_[n] ? n : find_other(raw);
  }

  /// Like id(), but for a name without escapes.
  /// @param name  a decoded name, as returned by name() of another table.
  std::uint32_t id_of_decoded(std::string_view name);

  /// Returns the decoded name, which is valid UTF-8. The text stays valid as long as the table
  /// exists, even if the table is moved.
  std::string_view name(std::uint32_t id) const noexcept { return names_.text(id); }
  std::size_t size() const noexcept { return names_.size(); }

 private:
  static constexpr std::uint32_t max_followed = 1024;

  std::uint32_t id_of_other(std::string_view raw);
  std::uint32_t find_other(std::string_view raw) const;

  raw_name_table names_;            // decoded names
  std::vector<bool> means_itself_;  // by number: whether the name as raw text decodes to itself
  raw_name_table others_;           // raw names that decode to a different text
  // Indexed by the number of a raw name in others_: the number of its decoded name in names_.
  std::vector<std::uint32_t> ids_;
  // For each of the first `max_followed` names that mean themselves: the name that id() was asked
  // for after it; `none` if unknown.
  std::vector<std::uint32_t> after_;
  std::uint32_t last_ = raw_name_table::none;  // the last name that id() returned
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_LOG_OPERATION_NAMES_HPP
