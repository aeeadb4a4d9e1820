#include "log/operation_names.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/printable.hpp"

namespace lotus::tool {
namespace {

int hex_value(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
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

raw_name_table::raw_name_table() : slots_(64), mask_(63) {}

std::uint32_t raw_name_table::add(std::string_view text, std::uint64_t hash) {
  if ((texts_.size() + 1) * 2 > slots_.size()) {
    std::vector<slot> old(slots_.size() * 2);
    old.swap(slots_);
    mask_ = slots_.size() - 1;
    for (const slot& s : old) {
      if (s.hash != 0) place(s);
    }
  }
  const auto id = static_cast<std::uint32_t>(texts_.size());
  texts_.emplace_back(text);
  place({hash, id});
  return id;
}

void raw_name_table::place(const slot& s) {
  std::size_t i = s.hash & mask_;
  while (slots_[i].hash != 0) i = (i + 1) & mask_;
  slots_[i] = s;
}

std::uint32_t name_table::id_of_decoded(const std::string& name) {
  const auto [entry, is_new] = by_name_.emplace(name, static_cast<std::uint32_t>(names_.size()));
  if (is_new) names_.push_back(name);
  return entry->second;
}

std::uint32_t name_table::add(std::string_view raw) {
  ids_.push_back(id_of_decoded(printable(decode_name(raw))));
  return ids_.back();
}

}  // namespace lotus::tool
