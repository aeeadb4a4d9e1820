// Formats records as the text lines of a Lotus log.
#ifndef LOTUS_FORMAT_LINE_HPP
#define LOTUS_FORMAT_LINE_HPP

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "lotus/base/clock.hpp"
#include "lotus/base/lock.hpp"
#include "lotus/config.hpp"
#include "lotus/format/record_kinds.hpp"
#include "lotus/record/names.hpp"
#include "lotus/record/record.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// Maximum size of one line: its name, its numbers, the prefix of a side-log line, and the bytes
/// that put_number() writes after the end of a number.
inline constexpr std::size_t max_line_bytes = 16 + max_line_name_bytes + 1 + 75;

/// Whether `text` has the form of the beginning of an operation's line: a name in the form that
/// write_line_name() writes, and a comma.
inline bool is_line_start(std::string_view text) noexcept {
  if (text.size() < 2 || text.size() > max_line_name_bytes + 1) return false;
  if (text.front() != 'S' || text.back() != ',' || text.substr(0, 6) == "SBatch") return false;
  const auto is_hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'F'); };
  for (std::size_t i = 1; i + 1 < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c < 0x20 || c >= 0x7f || c == ',' || c == '"') return false;
    // An escape sequence such as %2C must end before the last byte, which is the comma.
    if (c == '%' && !(i + 3 < text.size() && is_hex(text[i + 1]) && is_hex(text[i + 2]))) {
      return false;
    }
  }
  return true;
}

/// Converts ticks to ns since the Unix epoch during one drain, with a copy of the map's newest
/// segment. Construct it after the heads of the ring (see lane_heads) were read. Then no record
/// before these heads needs a segment that is added to the map later.
class tick_converter {
 public:
  /// @param guard  held while `map` is read; null if no other thread uses the map.
  tick_converter(const clock_map& map, mutex* guard) noexcept : map_{map}, guard_{guard} {
    if (guard_ != nullptr) guard_->lock();
    newest_ = map_.current();
    if (guard_ != nullptr) guard_->unlock();
  }

  struct span {
    std::int64_t start_ns;
    std::int64_t duration_ns;
  };

  /// Returns the newest segment of the map, which is valid for all ticks from its start on.
  const clock_segment& newest() const noexcept { return newest_; }

  LOTUS_DETAIL_ALWAYS_INLINE span convert(std::uint64_t begin_ticks,
                                          std::uint64_t end_ticks) const noexcept {
    if (LOTUS_DETAIL_LIKELY(begin_ticks >= newest_.start_ticks)) {
      const std::int64_t start_ns = newest_.to_ns(begin_ticks);
      return {start_ns, difference(newest_.to_ns(end_ticks), start_ns)};
    }
    const clock_segment b = segment(begin_ticks);
    const clock_segment e = segment(end_ticks);
    const std::int64_t start_ns = b.to_ns(begin_ticks);
    return {start_ns, difference(difference(e.to_ns(end_ticks), e.jumped_ns),
                                 difference(start_ns, b.jumped_ns))};
  }

 private:
  /// Returns a - b modulo 2^64. A signed subtraction could overflow, because a damaged ring file
  /// may contain any values.
  static std::int64_t difference(std::int64_t a, std::int64_t b) noexcept {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
  }

  LOTUS_DETAIL_COLD clock_segment segment(std::uint64_t ticks) const noexcept {
    if (ticks >= newest_.start_ticks) return newest_;
    if (guard_ != nullptr) guard_->lock();
    const clock_segment found = map_.at(ticks);
    if (guard_ != nullptr) guard_->unlock();
    return found;
  }

  const clock_map& map_;
  mutex* guard_;
  clock_segment newest_{};
};

/// Returns the eight decimal digits of a number below 10^8 as characters, the first in the lowest
/// byte. Computes groups of four digits, then of two, then single digits, all groups in one
/// multiplication: (x * 10486) >> 20 divides by 100 exactly below 10^4, and (x * 103) >> 10 divides
/// by 10 exactly below 100 (a test checks every group).
LOTUS_DETAIL_ALWAYS_INLINE std::uint64_t eight_digits(std::uint32_t below_1e8) noexcept {
  const std::uint64_t fours =
      below_1e8 / 10'000 | (static_cast<std::uint64_t>(below_1e8 % 10'000) << 32);
  const std::uint64_t hundreds = ((fours * 10'486) >> 20) & 0x0000007F'0000007FU;
  const std::uint64_t twos = hundreds | ((fours - hundreds * 100) << 16);
  const std::uint64_t tens = ((twos * 103) >> 10) & 0x000F000F'000F000FU;
  return (tens | ((twos - tens * 10) << 8)) + 0x30303030'30303030U;
}

/// Returns the number of decimal digits of a number below 10^9. 1233 / 4096 is just below log10(2).
LOTUS_DETAIL_ALWAYS_INLINE unsigned digit_count(std::uint32_t below_1e9) noexcept {
  constexpr std::uint32_t powers[] = {1,       10,        100,        1'000,       10'000,
                                      100'000, 1'000'000, 10'000'000, 100'000'000, 1'000'000'000};
  const auto bits = static_cast<unsigned>(32 - __builtin_clz(below_1e9 | 1));
  const unsigned guess = (bits * 1233) >> 12;
  return guess + (below_1e9 >= powers[guess] ? 1 : 0);
}

/// Writes a number below 10^8 without leading zeros, and returns the end of the text. Always writes
/// 8 bytes; those after the end are undefined.
LOTUS_DETAIL_ALWAYS_INLINE char* put_number_below_1e8(char* out, std::uint32_t value) noexcept {
  // The digits are counted before they are computed, so that the processor knows early where the
  // next text begins, and can continue there.
  const unsigned count = value == 0 ? 1 : digit_count(value);
  const std::uint64_t digits = eight_digits(value) >> (8 * (8 - count));
  std::memcpy(out, &digits, 8);
  return out + count;
}

/// Writes `value` in decimal and returns the end of the text. Up to 24 bytes from `out` on may be
/// overwritten, even if the text is shorter.
LOTUS_DETAIL_ALWAYS_INLINE char* put_number(char* out, std::uint64_t value) noexcept {
  constexpr std::uint64_t e8 = 100'000'000;
  std::uint64_t rest[2];
  int groups = 0;
  for (; LOTUS_DETAIL_UNLIKELY(value >= e8); value /= e8) {
    // A 64-bit number has at most two groups of eight digits after its first digits.
    // NOLINTNEXTLINE(clang-analyzer-security.ArrayBound)
    rest[groups++] = eight_digits(static_cast<std::uint32_t>(value % e8));
  }
  out = put_number_below_1e8(out, static_cast<std::uint32_t>(value));
  for (; LOTUS_DETAIL_UNLIKELY(groups > 0); out += 8) std::memcpy(out, &rest[--groups], 8);
  return out;
}

/// Like put_number(), for code that runs rarely: this function is not inlined.
LOTUS_DETAIL_COLD inline char* put_number_slow(char* out, std::uint64_t value) noexcept {
  return put_number(out, value);
}

/// Copies a text without a function call if it has 8 to 32 bytes; other lengths work too.
LOTUS_DETAIL_ALWAYS_INLINE void copy_short(char* out, const char* text,
                                           std::size_t bytes) noexcept {
  if (LOTUS_DETAIL_LIKELY(bytes >= 8 && bytes <= 32)) {
    // Copies the first and the last `step` bytes, which overlap in the middle or meet there.
    const std::size_t step = bytes >= 16 ? 16 : 8;
    if (step == 16) {
      std::memcpy(out, text, 16);
      std::memcpy(out + bytes - 16, text + bytes - 16, 16);
    } else {
      std::memcpy(out, text, 8);
      std::memcpy(out + bytes - 8, text + bytes - 8, 8);
    }
  } else {
    std::memcpy(out, text, bytes);
  }
}

/// Formats records as lines of text logs. Each drain uses an object of its own.
class line_formatter {
 public:
  explicit line_formatter(const tick_converter& clock) noexcept : clock_{clock} {}

  /// Writes one line and returns its end. `out` must have space for max_line_bytes.
  /// @param name  beginning of the line, with the comma, if the record has a name; otherwise empty.
  LOTUS_DETAIL_ALWAYS_INLINE char* format(const record& r, std::string_view name,
                                          char* out) noexcept {
    const record_kind& kind = kind_of(r.tag);
    tick_converter::span s = clock_.convert(r.begin_ticks, r.end_ticks);
    const std::string_view start = has_name(kind) ? name : kind.prefix;
    copy_short(out, start.data(), start.size());
    out += start.size();
    if (kind.value == record_value::number) {
      out = put_number(out, r.tag.value());
      *out++ = ',';
      s.duration_ns = batch_duration_ns(kind.duration, s.duration_ns);
    }
    out = put_start(out, static_cast<std::uint64_t>(s.start_ns < 0 ? 0 : s.start_ns));
    *out++ = ',';
    out = put_number(out, static_cast<std::uint64_t>(s.duration_ns < 0 ? 0 : s.duration_ns));
    *out++ = '\n';
    return out;
  }

  /// Writes the record's line for the side log, "<kind>,<name>,<time>,<a>,<b>", and returns the
  /// line's end. Call this only for kinds that have a line in the side log. `out` and `name` are as
  /// in format().
  char* format_side_line(const record& r, std::string_view name, char* out) noexcept {
    const record_kind& kind = kind_of(r.tag);
    const tick_converter::span s =
        clock_.convert(r.begin_ticks, kind.lasts() ? r.end_ticks : r.begin_ticks);
    copy_short(out, kind.side_begin.data(), kind.side_begin.size());
    out += kind.side_begin.size();
    if (!name.empty()) copy_short(out, name.data(), name.size());
    out += name.size();
    out = put_start(out, static_cast<std::uint64_t>(s.start_ns < 0 ? 0 : s.start_ns));
    *out++ = ',';
    out = kind.lasts() ? put_number_slow(
                             out, static_cast<std::uint64_t>(s.duration_ns < 0 ? 0 : s.duration_ns))
                       : put_column(out, r, kind.columns[0]);
    *out++ = ',';
    out = put_column(out, r, kind.columns[1]);
    *out++ = '\n';
    return out;
  }

 private:
  /// Returns the duration for a batch's line. A measured wait of exactly 1000 ns becomes 1001 ns,
  /// because 1000 ns marks a batch that arrived out of order.
  static constexpr std::int64_t batch_duration_ns(written_duration duration,
                                                  std::int64_t measured_ns) noexcept {
    switch (duration) {
      case written_duration::measured:
        return measured_ns;
      case written_duration::measured_unlike_placeholder:
        return measured_ns == placeholder_ns ? placeholder_ns + 1 : measured_ns;
      case written_duration::placeholder:
      case written_duration::none:
        break;
    }
    return placeholder_ns;
  }

  static char* put_column(char* out, const record& r, const record_field& field) noexcept {
    if (field.quantity == record_quantity::none) {
      *out = '0';
      return out + 1;
    }
    std::uint64_t number = number_of(field, r);
    switch (field.type) {
      case field_type::natural_or_none:
        if (number == missing_number(field)) return out;
        break;
      case field_type::integer:
        if (static_cast<std::int64_t>(number) >= 0) break;
        *out++ = '-';
        number = 0 - number;
        break;
      case field_type::natural:
      case field_type::bits:
        break;
    }
    return put_number_slow(out, number);
  }

  /// Writes a start time and returns the end of the text. Stores the digits of the time's whole
  /// seconds for the next call, because consecutive records nearly always begin in the same second.
  LOTUS_DETAIL_ALWAYS_INLINE char* put_start(char* out, std::uint64_t ns) noexcept {
    std::uint64_t fraction = ns - second_start_ns_;
    if (LOTUS_DETAIL_UNLIKELY(fraction >= 1'000'000'000)) {
      second_start_ns_ = ns / 1'000'000'000 * 1'000'000'000;
      fraction = ns - second_start_ns_;
      second_bytes_ = static_cast<std::size_t>(
          put_number_slow(second_, second_start_ns_ / 1'000'000'000) - second_);
      if (ns < 1'000'000'000) second_bytes_ = 0;
    }
    if (LOTUS_DETAIL_UNLIKELY(second_bytes_ == 0)) return put_number_slow(out, ns);
    // Copying 16 bytes takes one move instruction; the digits below overwrite the excess bytes.
    std::memcpy(out, second_, 16);
    out += second_bytes_;
    const auto f = static_cast<std::uint32_t>(fraction);
    *out = static_cast<char>('0' + f / 100'000'000);
    const std::uint64_t digits = eight_digits(f % 100'000'000);
    std::memcpy(out + 1, &digits, 8);
    return out + 9;
  }

  const tick_converter& clock_;
  std::uint64_t second_start_ns_ = ~std::uint64_t{0} / 2;
  std::size_t second_bytes_ = 0;
  char second_[24] = {};
};

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_FORMAT_LINE_HPP
