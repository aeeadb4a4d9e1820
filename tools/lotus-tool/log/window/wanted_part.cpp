#include "log/window/wanted_part.hpp"

#include <cmath>
#include <string_view>
#include <utility>

#include "base/errors.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"

namespace lotus::tool {
namespace {

std::optional<wanted_part> part_of_all;

constexpr std::string_view batch_word = "batch:";

}  // namespace

std::int64_t parse_duration_ns(const std::string& text, const std::string& option) {
  std::string_view number = text;
  double unit_ns = 1e9;
  const auto ends_in = [&number](std::string_view unit) {
    if (number.size() <= unit.size() || number.substr(number.size() - unit.size()) != unit) {
      return false;
    }
    number.remove_suffix(unit.size());
    return true;
  };
  if (ends_in("us")) {
    unit_ns = 1e3;
  } else if (ends_in("ms")) {
    unit_ns = 1e6;
  } else if (!ends_in("s") && ends_in("m")) {
    unit_ns = 60e9;
  }
  double value = 0;
  if (!read_whole(number, value) || !(value >= 0) || value * unit_ns > 9e18) {
    throw usage_error(option + ": '" + text + "' is not a time; write it as 300ms, 5s or 2m");
  }
  return static_cast<std::int64_t>(std::llround(value * unit_ns));
}

window_end parse_window_end(const std::string& text, const std::string& option) {
  window_end end;
  if (text.compare(0, batch_word.size(), batch_word) != 0) {
    end.after_ns = parse_duration_ns(text, option);
    return end;
  }
  std::string_view number = std::string_view(text).substr(batch_word.size());
  const std::size_t slash = number.find('/');
  bool good = true;
  if (slash != std::string_view::npos) {
    good = read_whole(number.substr(0, slash), end.epoch);
    number.remove_prefix(slash + 1);
  }
  if (!good || !read_whole(number, end.batch) || end.batch < 0) {
    throw usage_error(option + ": '" + text +
                      "' is no batch; write batch:INDEX or batch:EPOCH/INDEX");
  }
  return end;
}

void wanted_part::take(const std::string& option, const std::string& text) {
  if (option == "--last") {
    last_ns = parse_duration_ns(text, option);
    if (last_ns == 0) throw usage_error("--last: must be more than 0");
  } else {
    (option == "--from" ? from : to) = parse_window_end(text, option);
  }
  options += ' ' + option + ' ' + shell_word(text);
}

void read_only_part(std::optional<wanted_part> part) noexcept {
  part_of_all = std::move(part);
}

const std::optional<wanted_part>& part_to_read() noexcept {
  return part_of_all;
}

std::string part_options() {
  return part_of_all ? part_of_all->options : std::string();
}

}  // namespace lotus::tool
