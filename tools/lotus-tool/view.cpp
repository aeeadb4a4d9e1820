#include "view.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "errors.hpp"
#include "names.hpp"
#include "run_model.hpp"

namespace lotus::tool {
namespace {

constexpr std::string_view batch_word = "batch:";

/// The whole of `text` as a number; false when it is none.
template <class Number>
bool read_whole(std::string_view text, Number& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size();
}

/// Null when the run has no such batch.
const batch* look_for_batch(const window_end& wanted, const run_batches& batches) {
  for (const batch& b : batches.all()) {
    if (b.index == wanted.batch && b.epoch == wanted.epoch) return &b;
  }
  return nullptr;
}

const batch& find_batch(const window_end& wanted, const run_batches& batches) {
  if (const batch* const found = look_for_batch(wanted, batches)) return *found;
  throw usage_error("there is no batch " + std::to_string(wanted.batch) + " in epoch " +
                    std::to_string(wanted.epoch));
}

/// From the batch's first record to the end of its last one, its step included.
std::pair<std::int64_t, std::int64_t> span_of(const batch& b, const run_batches& batches) {
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  std::int64_t last = std::numeric_limits<std::int64_t>::min();
  for (const record_number n : {b.preprocessed, b.wait, b.consumed, b.queued}) {
    if (const batch_record* const r = batches.record(n)) {
      first = std::min(first, r->start_ns);
      last = std::max(last, r->start_ns + batches.step_ns(n).value_or(r->duration_ns));
    }
  }
  return {first, last};
}

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
    throw usage_error(option + ": '" + text + "' is no time; write seconds, or 300ms, 5s, 2m");
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

bool has_window(const view_options& options, const run_batches& batches) {
  const auto has = [&](const std::optional<window_end>& end) {
    return !end || end->after_ns || look_for_batch(*end, batches) != nullptr;
  };
  return has(options.from) && has(options.to);
}

view::view(const view_options& options, const run_batches& batches, std::int64_t first_ns,
           std::int64_t last_ns)
    : simple_(options.ops.empty() && !options.only_slowest), ops_(options.ops) {
  const auto after = [first_ns](std::int64_t ns) {
    return ns > INT64_MAX - first_ns ? INT64_MAX : first_ns + ns;
  };
  if (options.last_ns) from_ns_ = last_ns - *options.last_ns;
  if (options.from) {
    from_ns_ = std::max(from_ns_, options.from->after_ns
                                      ? after(*options.from->after_ns)
                                      : span_of(find_batch(*options.from, batches), batches).first);
  }
  if (options.to) {
    to_ns_ = options.to->after_ns ? after(*options.to->after_ns)
                                  : span_of(find_batch(*options.to, batches), batches).second;
  }
  if (from_ns_ > to_ns_) throw usage_error("--to: lies before --from");
  if (options.only_slowest) choose_slowest(*options.only_slowest, batches);
}

void view::choose_slowest(std::size_t n, const run_batches& batches) {
  chosen_ = true;
  chosen_batches_.assign(batches.all().size(), false);
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < batches.all().size(); ++i) {
    const batch_record* const made = batches.record(batches.all()[i].preprocessed);
    if (made != nullptr && has_time(made->start_ns, made->end_ns())) places.push_back(i);
  }
  const auto slower = [&](std::size_t a, std::size_t b) {
    return batches.preprocess_ns(batches.all()[a]) > batches.preprocess_ns(batches.all()[b]);
  };
  std::stable_sort(places.begin(), places.end(), slower);
  places.resize(std::min(n, places.size()));
  for (const std::size_t place : places) {
    chosen_batches_[place] = true;
    const batch_record& made = *batches.record(batches.all()[place].preprocessed);
    if (made.file >= chosen_spans_.size()) chosen_spans_.resize(made.file + 1);
    chosen_spans_[made.file].emplace_back(made.start_ns, made.end_ns());
  }
  for (auto& spans : chosen_spans_) std::sort(spans.begin(), spans.end());
}

bool view::has_name(std::uint32_t name, const name_table& names) {
  if (ops_.empty()) return true;
  if (name >= name_known_.size()) name_known_.resize(names.size(), -1);
  if (name_known_[name] < 0) {
    const std::string& full = names.name(name);
    const bool wanted = std::any_of(ops_.begin(), ops_.end(), [&full](const std::string& op) {
      return full == op || (full.size() == op.size() + 1 && full.compare(1, op.size(), op) == 0);
    });
    name_known_[name] = wanted ? 1 : 0;
    name_found_ = name_found_ || wanted;
  }
  return name_known_[name] > 0;
}

bool view::is_in_chosen_batch(std::size_t file, std::int64_t start_ns, std::int64_t end_ns) const {
  if (!chosen_) return true;
  if (file >= chosen_spans_.size()) return false;
  const auto& spans = chosen_spans_[file];
  auto at = std::upper_bound(spans.begin(), spans.end(), start_ns,
                             [](std::int64_t t, const auto& span) { return t < span.first; });
  if (at == spans.begin()) return false;
  --at;
  return end_ns <= at->second;
}

}  // namespace lotus::tool
