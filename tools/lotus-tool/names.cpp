#include "names.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lotus::tool {
namespace {

int hex_value(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

void append_escaped(std::string& out, unsigned char byte) {
  constexpr std::string_view hex = "0123456789ABCDEF";
  out += '%';
  out += hex[byte >> 4U];
  out += hex[byte & 15U];
}

/// Length of the well-formed UTF-8 sequence that `text` begins with (Unicode 15, table 3-7:
/// no overlong forms, no surrogates, nothing above U+10FFFF); 0 when it begins with none.
std::size_t utf8_length(std::string_view text) noexcept {
  const auto byte = [text](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const auto continues = [&byte](std::size_t i) { return (byte(i) & 0xC0U) == 0x80U; };
  const unsigned first = byte(0);
  if (first < 0x80U) return 1;
  if (first >= 0xC2U && first <= 0xDFU) return continues(1) ? 2 : 0;
  if (first >= 0xE0U && first <= 0xEFU) {
    const unsigned low = first == 0xE0U ? 0xA0U : 0x80U;
    const unsigned high = first == 0xEDU ? 0x9FU : 0xBFU;
    return byte(1) >= low && byte(1) <= high && continues(2) ? 3 : 0;
  }
  if (first >= 0xF0U && first <= 0xF4U) {
    const unsigned low = first == 0xF0U ? 0x90U : 0x80U;
    const unsigned high = first == 0xF4U ? 0x8FU : 0xBFU;
    return byte(1) >= low && byte(1) <= high && continues(2) && continues(3) ? 4 : 0;
  }
  return 0;
}

std::string printable_where(std::string_view text, bool controls) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t n = utf8_length(text);
    const auto first = static_cast<unsigned char>(text.front());
    // C1 controls (U+0080..U+009F) steer some terminals just as C0 does.
    const bool c1 = n == 2 && first == 0xC2U && static_cast<unsigned char>(text[1]) < 0xA0U;
    if (n == 0 || (!controls && (first < 0x20U || first == 0x7FU || c1))) {
      append_escaped(out, first);
      text.remove_prefix(1);
      if (c1) {
        append_escaped(out, static_cast<unsigned char>(text.front()));
        text.remove_prefix(1);
      }
    } else {
      out += text.substr(0, n);
      text.remove_prefix(n);
    }
  }
  return out;
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

std::string printable(std::string_view text) {
  return printable_where(text, true);
}

std::string printable_line(std::string_view text) {
  return printable_where(text, false);
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

std::uint32_t name_table::add(std::string_view raw) {
  const auto [entry, is_new] =
      by_name_.emplace(printable(decode_name(raw)), static_cast<std::uint32_t>(names_.size()));
  if (is_new) names_.push_back(entry->first);
  ids_.push_back(entry->second);
  return entry->second;
}

}  // namespace lotus::tool
