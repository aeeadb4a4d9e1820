#include "commands/bundle/scrubber.hpp"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "base/printable.hpp"
#include "log/log_line.hpp"
#include "log/operation_names.hpp"
#include "log/side_line.hpp"

namespace lotus::tool {
namespace {

constexpr std::size_t max_line = 300;

/// Whether a value of an information file cannot be a secret, because it is a number, a version, or
/// a word that the library itself writes.
bool is_harmless(std::string_view value) {
  if (value == "switches" || value == "batches" || value == "off") return true;
  return std::all_of(value.begin(), value.end(), [](char c) {
    return (c >= '0' && c <= '9') || c == ' ' || c == '.' || c == '-';
  });
}

std::string removed(std::string_view what) {
  return "(removed, " + std::to_string(what.size()) + " bytes)";
}

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' ||
         (static_cast<unsigned char>(c) & 0x80U) != 0;
}

/// Whether `text` contains `word` at position `at`, and not as a part of a longer word.
bool is_at(const std::string& text, std::size_t at, const std::string& word) {
  if (word.empty() || text.compare(at, word.size(), word) != 0) return false;
  const bool begins = at == 0 || !is_word(word.front()) || !is_word(text[at - 1]);
  const std::size_t end = at + word.size();
  return begins && (end == text.size() || !is_word(word.back()) || !is_word(text[end]));
}

}  // namespace

void scrubber::forget(const std::string& word, const std::string& replacement) {
  if (!word.empty()) forgotten_.emplace(word, replacement);
}

std::string scrubber::name(std::string_view encoded) {
  if (!hide_names_ || encoded.empty()) return std::string(encoded);
  const auto known = aliases_.find(encoded);
  if (known != aliases_.end()) return known->second;
  std::string alias = "S" + std::to_string(aliases_.size() + 1);
  aliases_.emplace(encoded, alias);
  // Commands print a name decoded, with or without the S that begins it in logs, or with
  // unprintable bytes as %XX. text() must replace all these forms.
  const std::string decoded = decode_name(std::string(encoded));
  for (const std::string& shown : {decoded, printable_line(decoded), std::string(encoded)}) {
    forget(shown, alias);
    if (shown.size() > 1) forget(shown.substr(1), alias);
  }
  return alias;
}

std::string scrubber::info_line(std::string_view line) {
  const std::size_t blank = line.find(' ');
  if (line.find_first_not_of(' ') == std::string_view::npos) return {};
  const std::string_view key = line.substr(0, blank);
  const std::string_view value = blank == std::string_view::npos ? "" : line.substr(blank + 1);
  const bool is_key = key.size() < 20 && std::all_of(key.begin(), key.end(),
                                                     [](char c) { return c >= 'a' && c <= 'z'; });
  if (!is_key) return removed(line);
  if (key == "thread") {
    const std::size_t behind = value.find(' ');
    if (behind == std::string_view::npos || !is_harmless(value.substr(0, behind))) {
      return "thread " + removed(value);
    }
    return "thread " + std::string(value.substr(0, behind + 1)) + name(value.substr(behind + 1));
  }
  if (is_harmless(value)) return std::string(line);
  if (key == "host") forget(decode_name(std::string(value)).substr(1), "(host)");
  return std::string(key) + ' ' + removed(value);
}

std::string scrubber::log_line(std::string_view line) {
  tool::log_line record;
  if (parse_line(line, record) != nullptr) {
    // A malformed line may be the reason for the bug report, so it is kept unless names must be
    // hidden.
    return hide_names_ ? "(malformed) " + removed(line)
                       : "(malformed) " + printable_line(line.substr(0, max_line));
  }
  std::string text;
  const std::string alias = record.kind == record_kind::op ? name(record.name) : "";
  if (!alias.empty()) record.name = alias;
  append_text(record, text);
  text.resize(text.size() - 1);
  return text;
}

std::string scrubber::side_line(std::string_view line) {
  tool::side_line record;
  if (parse_line(line, record) != nullptr) return "(malformed) " + removed(line);
  const std::string kept = record.kind == event_kind::arguments
                               ? "S(arguments%2C " + std::to_string(record.name.size()) + " bytes)"
                               : name(record.name);
  record.name = kept;
  std::string text;
  append_text(record, text);
  text.resize(text.size() - 1);
  return text;
}

std::string scrubber::text(const std::string& printed) const {
  std::string scrubbed;
  for (std::size_t at = 0; at < printed.size();) {
    const std::pair<const std::string, std::string>* longest = nullptr;
    for (const auto& word : forgotten_) {
      const bool longer = longest == nullptr || word.first.size() > longest->first.size();
      if (longer && is_at(printed, at, word.first)) longest = &word;
    }
    if (longest == nullptr) {
      scrubbed += printed[at++];
    } else {
      scrubbed += longest->second;
      at += longest->first.size();
    }
  }
  return scrubbed;
}

}  // namespace lotus::tool
