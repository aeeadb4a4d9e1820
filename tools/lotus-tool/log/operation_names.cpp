#include "log/operation_names.hpp"

#include <algorithm>

#include "base/printable.hpp"

namespace lotus::tool {
namespace {

int hex_value(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

/// Returns true if decode_name() certainly returns `text` unchanged; false if this is unknown.
bool is_plain(std::string_view text) noexcept {
  return std::none_of(text.begin(), text.end(),
                      [](char c) { return c == '%' || static_cast<unsigned char>(c) >= 0x80U; });
}

}  // namespace

std::string decode_name(std::string_view raw) {
  std::string out;
  out.reserve(raw.size());
  for (std::size_t i = 0; i < raw.size(); ++i) {
    if (raw[i] == '%' && i + 2 < raw.size()) {
      const int high = hex_value(raw[i + 1]);
      const int low = hex_value(raw[i + 2]);
      if (high >= 0 && low >= 0) {
        out += static_cast<char>(high * 16 + low);
        i += 2;
        continue;
      }
    }
    out += raw[i];
  }
  return out;
}

std::uint32_t raw_name_table::add(std::string_view text, std::uint32_t hash) {
  // Enlarge the hash table if the new text would fill more than three quarters of its slots.
  if ((texts_.size() + 1) * 4 > slots_.size() * 3) {
    std::vector<slot> old(std::max<std::size_t>(slots_.size() * 2, 64));
    old.swap(slots_);
    mask_ = slots_.size() - 1;
    for (const slot& s : old) {
      if (s.id != none) place(s);
    }
  }
  const auto id = static_cast<std::uint32_t>(texts_.size());
  texts_.push_back(keep(text));
  place({hash, id});
  return id;
}

void raw_name_table::swap(raw_name_table& other) noexcept {
  std::swap(slots_, other.slots_);
  std::swap(mask_, other.mask_);
  std::swap(texts_, other.texts_);
  std::swap(pages_, other.pages_);
  std::swap(free_, other.free_);
  std::swap(left_, other.left_);
}

void raw_name_table::place(const slot& s) noexcept {
  std::size_t i = s.hash & mask_;
  while (slots_[i].id != none) i = (i + 1) & mask_;
  slots_[i] = s;
}

const char* raw_name_table::keep(std::string_view text) {
  constexpr std::size_t page_bytes = std::size_t{64} << 10U;
  const auto bytes = static_cast<std::uint32_t>(text.size());
  const std::size_t wanted = sizeof bytes + text.size();
  if (wanted > left_) {
    // The first block of memory is small, because a run has a table for each log, and most have few
    // names.
    const std::size_t page = pages_.empty() ? std::size_t{1} << 10U : page_bytes;
    left_ = std::max(wanted, page);
    pages_.emplace_back(new char[left_]);
    free_ = pages_.back().get();
  }
  char* const kept = free_;
  std::memcpy(kept, &bytes, sizeof bytes);
  if (!text.empty()) std::memcpy(kept + sizeof bytes, text.data(), text.size());
  free_ += wanted;
  left_ -= wanted;
  return kept;
}

std::uint32_t name_table::id_of_decoded(std::string_view name) {
  const std::uint32_t id = names_.id(name);
  if (id == means_itself_.size()) {
    means_itself_.push_back(is_plain(name) || printable(decode_name(name)) == name);
  }
  return id;
}

std::uint32_t name_table::find_other(std::string_view raw) const {
  if (is_plain(raw)) return names_.find(raw);
  if (const std::uint32_t n = others_.find(raw); n != raw_name_table::none) return ids_[n];
  return names_.find(printable(decode_name(raw)));
}

std::uint32_t name_table::id_of_other(std::string_view raw) {
  if (is_plain(raw)) return id_of_decoded(raw);
  if (const std::uint32_t n = others_.find(raw); n != raw_name_table::none) return ids_[n];
  const std::string name = printable(decode_name(raw));
  const std::uint32_t id = id_of_decoded(name);
  if (raw != name) {
    others_.id(raw);
    ids_.push_back(id);
  }
  return id;
}

}  // namespace lotus::tool
