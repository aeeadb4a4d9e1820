// Encodes records as blocks of a compact log, the binary alternative to text logs.
#ifndef LOTUS_FORMAT_COMPACT_FILLER_HPP
#define LOTUS_FORMAT_COMPACT_FILLER_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "lotus/config.hpp"
#include "lotus/format/compact_layout.hpp"
#include "lotus/format/drain.hpp"
#include "lotus/format/line.hpp"
#include "lotus/format/record_kinds.hpp"
#include "lotus/record/names.hpp"
#include "lotus/record/ring_layout.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// The state of a compact log's encoding after the blocks written so far: the code of each name,
/// and the last number of each code. A reader gets the same state from these blocks, so later
/// blocks can refer to it. All zeros is the initial state. Thread safety: none.
class compact_chain {
 public:
  struct entry {
    std::uint64_t key;  ///< kind and name; 0: the entry is unused
    std::uint32_t code;
    std::uint32_t unused;
    std::uint64_t last;  ///< number of the previous record with this kind and name
  };

  /// Whether the next block may refer to earlier blocks: the log must still end with the block that
  /// was encoded last, and fewer than max_blocks blocks may have been written since begin_anew().
  bool continues(const log_position& at) const noexcept {
    return blocks_ > 0 && blocks_ < max_blocks && at.inode == inode_ && at.length == length_;
  }
  void begin_anew() noexcept { std::memset(static_cast<void*>(this), 0, sizeof(*this)); }
  void appended(const log_position& at) noexcept {
    inode_ = at.inode;
    length_ = at.length;
    ++blocks_;
  }

  /// Returns the entry for a kind of record and a name, or an unused entry (key 0) if there is
  /// none; null if the table is full.
  entry* find(event_kind kind, std::uint32_t name, std::uint64_t& key) noexcept {
    key = key_of(kind, name);
    for (std::uint64_t i = home_of(kind, name);; ++i) {
      entry& e = entries_[i % slots];
      if (e.key == key) return &e;
      if (e.key == 0) return used_ < max_names ? &e : nullptr;
    }
  }
  /// Returns the code of an operation's name. For speed, looks only in the first slot of the hash
  /// table that may contain the name, and returns 0 if it is not there.
  LOTUS_DETAIL_ALWAYS_INLINE std::uint32_t code_of_operation(std::uint32_t name) const noexcept {
    const entry& e = entries_[home_of(event_kind::operation, name) % slots];
    return e.key == key_of(event_kind::operation, name) ? e.code : 0;
  }
  void take(entry& e, std::uint64_t key) noexcept { e = {key, first_named_code + used_++, 0, 0}; }

  /// For each kind of record without a name: the first number of the previous record of that kind.
  std::uint64_t last_of[first_named_code];
  std::uint64_t last_second;  ///< the second number of the previous record that has two numbers

 private:
  static constexpr std::uint64_t key_of(event_kind kind, std::uint32_t name) noexcept {
    return (std::uint64_t{1} << 63U) | (static_cast<std::uint64_t>(kind) << 32U) | name;
  }
  static constexpr std::uint64_t home_of(event_kind kind, std::uint32_t name) noexcept {
    return std::uint64_t{name} * 31 + static_cast<std::uint64_t>(kind);
  }

  static constexpr std::uint32_t slots = 1024;
  static constexpr std::uint32_t max_names = 700;
  /// After at most this number of blocks follows a block that refers to no earlier block. If a
  /// block is damaged, readers can continue only at the next such block.
  static constexpr std::uint32_t max_blocks = 64;

  std::uint64_t inode_;
  std::uint64_t length_;
  std::uint32_t blocks_;
  std::uint32_t used_;
  entry entries_[slots];
};

/// Encodes the records of each append as one block. The blocks are appended to the log with the
/// role log_role::side. The interface is that of line_filler, which formats text lines instead.
template <class Names>
class compact_filler {
 public:
  compact_filler(const tick_converter& clock, const Names& names, compact_chain& chain,
                 drain_buffer& buffer) noexcept
      : clock_{clock}, names_{names}, chain_{chain}, block_{buffer.text[0]} {
    static_assert(max_append_bytes >= 2 * max_record_bytes, "a block holds a record");
  }

  template <class Sink>
  int begin(Sink& sink, std::uint32_t loader) noexcept {
    if (const int error = sink.begin(log_role::side, loader); error != 0) return error;
    const bool anew = full_of_names_ || !chain_.continues(sink.position(log_role::side));
    if (anew) chain_.begin_anew();
    full_of_names_ = false;
    head_ = {};
    head_.flags = anew ? compact_begins_anew : std::uint8_t{0};
    head_.first_ns = INT64_MAX;
    head_.last_ns = INT64_MIN;
    end_ = block_ + sizeof(head_);
    return 0;
  }

  /// Adds a record to the block. Returns false if the buffer or the table of names is full.
  LOTUS_DETAIL_ALWAYS_INLINE bool add(const record& r) noexcept {
    if (static_cast<std::size_t>(block_ + max_append_bytes - end_) < max_record_bytes) {
      return false;
    }
    const record_kind& kind = kind_of(r.tag);
    std::uint64_t* last = &chain_.last_of[kind.code];
    char* p = end_;
    std::uint32_t code = kind.code;
    if (code == 0) {
      const std::uint32_t name = has_name(kind) ? name_of(kind, r.tag) : 0;
      std::uint64_t key = 0;
      compact_chain::entry* const e = chain_.find(kind.kind, name, key);
      if (LOTUS_DETAIL_UNLIKELY(e == nullptr)) {
        full_of_names_ = true;
        return false;
      }
      if (LOTUS_DETAIL_UNLIKELY(e->key == 0)) {
        chain_.take(*e, key);
        p = announce(p, kind, has_name(kind) ? names_(name) : kind.prefix);
      }
      last = &e->last;
      code = e->code;
    }
    end_ = put_record(put_varint(p, code), r, kind, *last);
    ++head_.records;
    head_.roles |= static_cast<std::uint8_t>(1U << static_cast<unsigned>(kind.role));
    if (!kind.side_begin.empty()) head_.roles |= side_bit;
    return true;
  }

  /// Adds consecutive records of operations, which are the most frequent kind, as long as their
  /// names already have codes. Stops at the first other record, or if the buffer is full, and
  /// returns the position of the first record that it did not add. The block is the same as with
  /// add(), but this function is faster, because it keeps its state in local variables: a write
  /// through a char pointer may alias any member, so the compiler would load members again after
  /// each write.
  std::uint64_t add_operations(ring_block& ring, std::size_t lane, std::uint64_t at,
                               std::uint64_t head) noexcept {
    if (lane != 0 || head_.records == 0) return at;
    const record* const slots = ring.slots();
    const std::uint64_t mask = ring.capacity - 1;
    const clock_segment clock = clock_.newest();
    const char* const last_begin = block_ + max_append_bytes - max_record_bytes;
    const std::uint64_t begin = at;
    std::int64_t first_ns = head_.first_ns;
    std::int64_t last_ns = head_.last_ns;
    std::int64_t time_before_ns = time_before_ns_;
    char* p = end_;
    for (; at != head && p <= last_begin; ++at) {
      const record& r = slots[at & mask];
      if (r.tag.kind() != event_kind::operation || r.begin_ticks < clock.start_ticks) break;
      const std::uint32_t code =
          chain_.code_of_operation(static_cast<std::uint32_t>(r.tag.value()));
      const std::int64_t start_ns = clock.to_ns(r.begin_ticks);
      const std::int64_t end_ns = clock.to_ns(r.end_ticks);
      if (code == 0 || start_ns < 0 || end_ns < start_ns) break;
      const std::uint64_t since =
          static_cast<std::uint64_t>(end_ns) - static_cast<std::uint64_t>(time_before_ns);
      p = put_operation(p, code, since, static_cast<std::uint64_t>(end_ns - start_ns));
      time_before_ns = end_ns;
      first_ns = std::min(first_ns, start_ns);
      last_ns = std::max(last_ns, end_ns);
    }
    if (at == begin) return at;
    end_ = p;
    head_.first_ns = first_ns;
    head_.last_ns = last_ns;
    time_before_ns_ = time_before_ns;
    head_.records += static_cast<std::uint32_t>(at - begin);
    head_.roles |= static_cast<std::uint8_t>(1U << static_cast<unsigned>(log_role::worker));
    return at;
  }

  /// Appends the block to the sink (the logs). Returns 0, or the sink's error if nothing was
  /// appended.
  template <class Sink>
  int append(Sink& sink, std::uint32_t) noexcept {
    if (head_.records == 0) return 0;
    std::memcpy(head_.magic, compact_block_magic, sizeof(head_.magic));
    head_.version = compact_version;
    head_.bytes = static_cast<std::uint32_t>(end_ - block_);
    std::memcpy(block_, &head_, sizeof(head_));
    const std::uint64_t checksum = block_checksum(block_, head_.bytes);
    std::memcpy(block_ + offsetof(compact_block_header, checksum), &checksum, sizeof(checksum));
    const int error = sink.append(log_role::side, block_, head_.bytes);
    if (error != 0) failed();
    return error;
  }

  template <class Sink>
  void committed(const Sink& sink) noexcept {
    if (head_.records > 0) chain_.appended(sink.position(log_role::side));
  }
  /// Called after a failed append. The next block will refer to no earlier block, because the last
  /// one may be missing in the log.
  void failed() noexcept { chain_.begin_anew(); }

 private:
  static constexpr std::uint8_t side_bit = 1U << static_cast<unsigned>(log_role::side);
  static constexpr std::size_t max_record_bytes = max_line_name_bytes + 1 + 80;

  /// @param since  ns from the end of the previous record to the end of this one, modulo 2^64.
  LOTUS_DETAIL_ALWAYS_INLINE static char* put_operation(char* p, std::uint32_t code,
                                                        std::uint64_t since,
                                                        std::uint64_t duration) noexcept {
    // The usual case takes at most five bytes, which are written as one word.
    if (LOTUS_DETAIL_LIKELY((since | duration / 2) < 0x2000 && code < 0x80)) {
      const std::uint64_t time = time_by_end(since);
      const std::uint64_t more_time = time > 0x7F ? 1 : 0;
      const std::uint64_t more_duration = duration > 0x7F ? 1 : 0;
      const std::uint64_t a = (time & 0x7FU) | more_time << 7U | (time >> 7U) << 8U;
      const std::uint64_t b = (duration & 0x7FU) | more_duration << 7U | (duration >> 7U) << 8U;
      const std::uint64_t word = code | a << 8U | b << (16 + 8 * more_time);
      std::memcpy(p, &word, sizeof(word));
      return p + 3 + more_time + more_duration;
    }
    return put_varint(put_time(put_varint(p, code), since, duration), duration);
  }

  LOTUS_DETAIL_COLD static char* announce(char* p, const record_kind& kind,
                                          std::string_view name) noexcept {
    p = put_varint(p, announcement_code);
    p = put_varint(p, static_cast<std::uint8_t>(kind.kind));
    p = put_varint(p, name.size());
    std::memcpy(p, name.data(), name.size());
    return p + name.size();
  }

  /// Writes a number as its difference from the previous number of the same code, because the
  /// difference usually needs fewer bytes.
  LOTUS_DETAIL_ALWAYS_INLINE static char* put_number(char* p, std::uint64_t number,
                                                     std::uint64_t& last) noexcept {
    p = put_varint(p, to_zigzag(wrapped_difference(number, last)));
    last = number;
    return p;
  }

  LOTUS_DETAIL_ALWAYS_INLINE char* put_record(char* p, const record& r, const record_kind& kind,
                                              std::uint64_t& last) noexcept {
    const bool lasts = kind.lasts();
    const tick_converter::span s =
        clock_.convert(r.begin_ticks, lasts ? r.end_ticks : r.begin_ticks);
    const std::int64_t start_ns = s.start_ns < 0 ? 0 : s.start_ns;
    std::int64_t duration_ns = s.duration_ns < 0 ? 0 : s.duration_ns;
    if (kind.duration == written_duration::measured_unlike_placeholder &&
        duration_ns == placeholder_ns) {
      ++duration_ns;
    }
    const auto time_ns = static_cast<std::int64_t>(static_cast<std::uint64_t>(start_ns) +
                                                   static_cast<std::uint64_t>(duration_ns));
    if (head_.records == 0) head_.base_ns = time_before_ns_ = time_ns;
    p = put_time(p,
                 static_cast<std::uint64_t>(time_ns) - static_cast<std::uint64_t>(time_before_ns_),
                 static_cast<std::uint64_t>(duration_ns));
    time_before_ns_ = time_ns;
    head_.first_ns = std::min(head_.first_ns, start_ns);
    head_.last_ns = std::max(head_.last_ns, time_ns);
    if (lasts) p = put_varint(p, static_cast<std::uint64_t>(duration_ns));
    if (LOTUS_DETAIL_LIKELY(kind.kind == event_kind::operation)) return p;
    return put_fields(p, r, kind, last);
  }

  char* put_fields(char* p, const record& r, const record_kind& kind,
                   std::uint64_t& last) noexcept {
    if (kind.fields[0].quantity == record_quantity::none) return p;
    p = put_field(p, r, kind.fields[0], last);
    if (kind.fields[1].quantity == record_quantity::none) return p;
    return put_field(p, r, kind.fields[1], chain_.last_second);
  }

  LOTUS_DETAIL_ALWAYS_INLINE static char* put_field(char* p, const record& r,
                                                    const record_field& field,
                                                    std::uint64_t& last) noexcept {
    const std::uint64_t number = number_of(field, r);
    switch (field.coding) {
      case field_coding::difference:
        return put_number(p, number, last);
      case field_coding::one_more:
        return put_varint(p, number == missing_number(field) ? 0 : number + 1);
      case field_coding::plain:
        break;
    }
    return put_varint(p, number);
  }

  const tick_converter& clock_;
  const Names& names_;
  compact_chain& chain_;
  char* const block_;
  char* end_ = nullptr;
  compact_block_header head_{};
  std::int64_t time_before_ns_ = 0;
  bool full_of_names_ = false;
};

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_FORMAT_COMPACT_FILLER_HPP
