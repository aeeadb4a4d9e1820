// Defines the layout of a block of a compact log, and the encoding of its numbers.
//
// A compact log consists of blocks. A block with the flag compact_begins_anew depends on no earlier
// block. Any other block uses the codes of names that were announced since the last block with that
// flag, and stores numbers as differences from those of the preceding records.
#ifndef LOTUS_FORMAT_COMPACT_LAYOUT_HPP
#define LOTUS_FORMAT_COMPACT_LAYOUT_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "lotus/config.hpp"
#include "lotus/format/record_kinds.hpp"
#include "lotus/format/varint.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

inline constexpr char compact_block_magic[4] = {'L', 'T', 'S', 'C'};
inline constexpr std::uint8_t compact_version = 2;
inline constexpr std::uint8_t compact_begins_anew = 1;
/// Each record begins with a code. Codes below this number stand for kinds of records without a
/// name. The others stand for a kind and a name, in the order in which the names are announced.
inline constexpr std::uint32_t first_named_code = 16;
/// Stands in place of a record's code if a new name is announced: the name follows, and then the
/// record with its code.
inline constexpr std::uint32_t announcement_code = 0;

constexpr bool code_fits(const record_kind& row) noexcept {
  if (has_name(row)) return row.code == 0;
  return row.code != announcement_code && row.code < first_named_code;
}
constexpr bool code_is_its_own(const record_kind& row) noexcept {
  for (const record_kind& other : record_kinds) {
    if (row.code != 0 && row.code == other.code && row.kind != other.kind) return false;
  }
  return true;
}
static_assert(row_checks::all(code_fits),
              "a kind without a name has a code from 1 to 15, by which compact blocks identify it");
static_assert(row_checks::all(code_is_its_own), "a code identifies one kind");

/// Kind of record for each code below first_named_code; event_kind::none for unused codes.
inline constexpr auto kind_by_code = [] {
  std::array<event_kind, first_named_code> kinds{};
  for (const record_kind& row : record_kinds) {
    if (row.code != 0) kinds[row.code] = row.kind;
  }
  return kinds;
}();

struct compact_block_header {
  char magic[4];
  std::uint32_t bytes;  ///< size of the block including this header
  std::uint8_t version;
  std::uint8_t flags;
  /// Bit i is set if the text format would write lines for the block's records to the log with
  /// log_role i.
  std::uint8_t roles;
  std::uint8_t unused;
  std::uint32_t records;
  /// Time in ns since the Unix epoch, relative to which the first record's time is stored.
  std::int64_t base_ns;
  std::int64_t first_ns;   ///< no record begins earlier (ns since the Unix epoch)
  std::int64_t last_ns;    ///< no record ends later (ns since the Unix epoch)
  std::uint64_t checksum;  ///< checksum of all other bytes of the block
};
static_assert(sizeof(compact_block_header) == 48 &&
                  std::is_trivially_copyable_v<compact_block_header>,
              "it stands in files");

/// Difference of two 64-bit numbers modulo 2^64, as a signed number.
constexpr std::int64_t wrapped_difference(std::uint64_t a, std::uint64_t b) noexcept {
  return static_cast<std::int64_t>(a - b);
}

/// Stored instead of a record's time if the record ends before the end of the previous record; then
/// the difference of the two ends follows, in ns.
inline constexpr std::uint64_t earlier_time = 3;

/// Encodes the time of a record that does not end earlier than the previous record.
/// @param since  ns from the end of the previous record to the end of this one.
constexpr std::uint64_t time_by_end(std::uint64_t since) noexcept {
  return since * 2;
}

/// Encodes a record's time: its end, or its start if that needs fewer bytes, as for a long span
/// that begins shortly after the end of the previous record. Returns the end of the written bytes,
/// which are at most 20.
/// @param since  ns from the end of the previous record to the end of this one, modulo 2^64.
inline char* put_time(char* out, std::uint64_t since, std::uint64_t duration) noexcept {
  if (since > INT64_MAX) return put_varint(put_varint(out, earlier_time), 0 - since);
  const std::uint64_t to_begin = since - duration;  // modulo 2^64
  return put_varint(out, to_begin < since / 2 ? to_begin * 4 + 1 : time_by_end(since));
}

/// Decodes a time that put_time() wrote, if it is not earlier_time. Returns the ns from the end of
/// the previous record to the end of this one.
constexpr std::uint64_t end_of_coded_time(std::uint64_t coded, std::uint64_t duration) noexcept {
  return (coded & 1U) == 0 ? coded >> 1U : (coded >> 2U) + duration;
}

/// Hashes words of 8 bytes. Two independent computations, each for every second word, keep the
/// processor's multiplier busy.
inline std::uint64_t mix_bytes(const char* bytes, std::size_t count) noexcept {
  constexpr std::uint64_t odd = 0x9E3779B97F4A7C15U;
  std::uint64_t sum = count;
  std::uint64_t other = ~sum;
  std::size_t at = 0;
  for (; count - at >= 16; at += 16) {
    std::uint64_t words[2];
    std::memcpy(words, bytes + at, 16);
    sum = (sum ^ words[0]) * odd;
    other = (other ^ words[1]) * odd;
    sum ^= sum >> 29U;
    other ^= other >> 29U;
  }
  sum = (sum ^ other) * odd;
  for (; count - at >= 8; at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes + at, 8);
    sum = (sum ^ word) * odd;
    sum ^= sum >> 29U;
  }
  std::uint64_t last = 0;
  if (at < count) std::memcpy(&last, bytes + at, count - at);
  sum = (sum ^ last) * odd;
  return sum ^ (sum >> 32U);
}

/// Returns the checksum of a block, with which readers detect damage. It does not protect against
/// deliberate changes.
inline std::uint64_t block_checksum(const char* block, std::size_t bytes) noexcept {
  constexpr std::size_t head = sizeof(compact_block_header);
  return mix_bytes(block, offsetof(compact_block_header, checksum)) * 3 +
         mix_bytes(block + head, bytes - head);
}

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_FORMAT_COMPACT_LAYOUT_HPP
