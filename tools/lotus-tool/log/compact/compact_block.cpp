#include "log/compact/compact_block.hpp"

#include <cstring>

#include "lotus/folder/log_appender.hpp"

namespace lotus::tool {

using lotus::detail::event_kind;
using lotus::detail::field_coding;
using lotus::detail::written_duration;

std::optional<std::size_t> find_block(std::string_view bytes,
                                      lotus::detail::compact_block_header& header) noexcept {
  if (bytes.size() < sizeof(header)) return std::nullopt;
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (std::memcmp(header.magic, lotus::detail::compact_block_magic, sizeof(header.magic)) != 0 ||
      header.bytes < sizeof(header) || header.bytes > lotus::detail::max_append_bytes) {
    return 0;
  }
  if (bytes.size() < header.bytes) return std::nullopt;
  const bool whole = lotus::detail::block_checksum(bytes.data(), header.bytes) == header.checksum;
  return whole ? std::size_t{header.bytes} : 0;
}

bool compact_decoder::begin(const lotus::detail::compact_block_header& header,
                            std::string_view block) noexcept {
  error_ = nullptr;
  left_ = 0;
  if ((header.flags & lotus::detail::compact_begins_anew) != 0) {
    names_.clear();
    operations_.clear();
    last_of_ = {};
    last_second_ = 0;
    knows_ = true;
  }
  if (!knows_) return false;
  if (header.version != lotus::detail::compact_version) {
    return fail(header.version > lotus::detail::compact_version
                    ? "a block of a newer lotus: read it with the lotus-tool of that version"
                    : "a block of an older lotus: read it with the lotus-tool of that version");
  }
  at_ = block.data() + sizeof(header);
  end_ = block.data() + header.bytes;
  left_ = header.records;
  time_ns_ = static_cast<std::uint64_t>(header.base_ns);
  return true;
}

bool compact_decoder::fail(const char* why) noexcept {
  error_ = why;
  left_ = 0;
  knows_ = false;
  return false;
}

bool compact_decoder::take(std::uint64_t& value) noexcept {
  const char* const next = lotus::detail::take_varint(at_, end_, value);
  at_ = next != nullptr ? next : end_;
  return next != nullptr;
}

bool compact_decoder::take_difference(std::uint64_t& last) noexcept {
  std::uint64_t difference = 0;
  if (!take(difference)) return false;
  last += static_cast<std::uint64_t>(lotus::detail::from_zigzag(difference));
  return true;
}

bool compact_decoder::announce() {
  std::uint64_t kind = 0;
  std::uint64_t bytes = 0;
  if (!take(kind) || !take(bytes) || bytes > static_cast<std::size_t>(end_ - at_)) {
    return fail("a name that does not end");
  }
  const std::string_view text(at_, bytes);
  const auto event = static_cast<event_kind>(kind);
  const bool lost = event == event_kind::none;
  if (kind > 255 || !lotus::detail::is_line_start(text) ||
      (!lost && !lotus::detail::has_name(lotus::detail::kind_of(event)))) {
    return fail("a name that this kind of record cannot have");
  }
  names_.push_back({event, std::string(text.substr(0, text.size() - 1)), 0});
  if (names_.size() <= 0x80 - lotus::detail::first_named_code) {
    operations_.push_back(event == event_kind::operation ? &names_.back().name : nullptr);
  }
  at_ += bytes;
  return true;
}

bool compact_decoder::next_of_any(compact_record& record) {
  std::uint64_t code = 0;
  while (true) {
    if (!take(code)) return fail("a record that does not end");
    if (code != lotus::detail::announcement_code) break;
    if (!announce()) return false;
  }
  --left_;
  return read_record(code, record);
}

bool compact_decoder::read_record(std::uint64_t code, compact_record& record) noexcept {
  std::uint64_t* last = nullptr;
  if (code < lotus::detail::first_named_code) {
    record.kind = lotus::detail::kind_by_code[code];
    record.name = {};
    last = &last_of_[code];
    if (record.kind == event_kind::none) return fail("an unknown kind");
  } else {
    if (code - lotus::detail::first_named_code >= names_.size()) return fail("an unknown name");
    named& of = names_[code - lotus::detail::first_named_code];
    record.kind = of.kind;
    record.name = of.name;
    last = &of.last;
  }
  const lotus::detail::record_kind& row = lotus::detail::kind_of(record.kind);
  std::uint64_t coded = 0;
  std::uint64_t earlier = 0;
  std::uint64_t duration = 0;
  if (!take(coded) || (coded == lotus::detail::earlier_time && !take(earlier)) ||
      (row.lasts() && !take(duration))) {
    return fail("a record that does not end");
  }
  if (!go_on(coded, earlier, duration)) return false;
  constexpr std::uint64_t most = INT64_MAX - lotus::detail::placeholder_ns;
  if (time_ns_ > most) return fail("an impossible time");
  record.start_ns = static_cast<std::int64_t>(time_ns_ - duration);
  record.duration_ns = row.duration == written_duration::placeholder
                           ? lotus::detail::placeholder_ns
                           : static_cast<std::int64_t>(duration);
  record.numbers[0] = record.numbers[1] = 0;
  return record.kind == event_kind::operation || read_fields(record, *last) ||
         fail("a record that does not end");
}

bool compact_decoder::read_fields(compact_record& record, std::uint64_t& last) noexcept {
  std::uint64_t* before = &last;
  std::uint64_t* to = record.numbers;
  for (const lotus::detail::record_field& field : lotus::detail::kind_of(record.kind).fields) {
    if (field.quantity == lotus::detail::record_quantity::none) break;
    switch (field.coding) {
      case field_coding::difference:
        if (!take_difference(*before)) return false;
        *to = *before;
        break;
      case field_coding::plain:
        if (!take(*to)) return false;
        break;
      case field_coding::one_more:
        if (!take(*to)) return false;
        *to = *to == 0 ? lotus::detail::missing_number(field) : *to - 1;
        break;
    }
    if (*to > lotus::detail::max_of(field)) return false;
    before = &last_second_;
    ++to;
  }
  return true;
}

}  // namespace lotus::tool
