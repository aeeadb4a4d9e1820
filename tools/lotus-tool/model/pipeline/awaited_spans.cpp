#include "model/pipeline/awaited_spans.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "model/pipeline/off_cpu.hpp"

namespace lotus::tool {

namespace {

/// A batch with more parts than this is not divided, but its number repeats. The limit also bounds
/// the work for logs that were made to take long.
constexpr std::size_t most_parts = 512;

}  // namespace

awaited_spans::awaited_spans(const run_data& run, const std::vector<bool>& is_segmented)
    : run_(run), is_forked_(is_segmented.size()) {
  const std::vector<preprocessing_span>& spans = run.batches.preprocessing_spans();
  struct count {
    std::size_t all = 0;
    std::size_t forked = 0;
  };
  std::map<stage_id, count> stages;
  std::vector<std::pair<span_number, span_number>> found;  // a span, and one inside it
  const auto counts = [&](span_number n) { return is_segmented[n] && spans[n].file; };
  for (const batch& b : run.batches.all()) {
    for (span_number n = b.first_span; n < b.first_span + b.spans; ++n) {
      if (!counts(n) || spans[n].of_item) continue;
      ++stages[spans[n].stage].all;
      if (is_forked_[n]) continue;
      std::size_t others = 0;
      for (span_number m = n + 1; m < b.first_span + b.spans && others <= most_parts; ++m) {
        if (spans[m].start_ns >= spans[n].end_ns()) break;  // the spans are sorted by start
        const bool is_part = counts(m) && !spans[m].of_item && !is_forked_[m] &&
                             spans[m].end_ns() <= spans[n].end_ns() &&
                             spans[m].stage != spans[n].stage && spans[m].file != spans[n].file;
        if (!is_part) {
          ++others;
          continue;
        }
        is_forked_[m] = true;
        ++stages[spans[m].stage].forked;
        found.emplace_back(n, m);
      }
    }
  }
  // A few spans of a stage may lie inside another one by chance.
  constexpr double nearly_all = 0.9;
  for (const auto& [outer, inner] : found) {
    const count& of = stages[spans[inner].stage];
    is_forked_[inner] = static_cast<double>(of.forked) >= nearly_all * static_cast<double>(of.all);
    if (is_forked_[inner]) of_[outer].push_back(inner);
  }
  for (auto at = of_.begin(); at != of_.end();) {
    if (at->second.size() <= most_parts) {
      ++at;
      continue;
    }
    for (const span_number inner : at->second) is_forked_[inner] = false;
    at = of_.erase(at);
  }
  find_items();
}

void awaited_spans::find_items() {
  const std::vector<preprocessing_span>& spans = run_.batches.preprocessing_spans();
  for (const batch& b : run_.batches.all()) {
    optional_span last;
    for (span_number n = b.first_span; n < b.first_span + b.spans; ++n) {
      if (spans[n].of_item && (!last || spans[n].end_ns() > spans[*last].end_ns())) last = n;
    }
    for (span_number n = b.first_span; last && n < b.first_span + b.spans; ++n) {
      const preprocessing_span& s = spans[n];
      const std::int64_t until_ns = spans[*last].end_ns();
      if (s.of_item || s.file == spans[*last].file) continue;
      if (until_ns <= s.start_ns || until_ns > s.end_ns()) continue;
      // Without CPU times, it is unknown whether the thread works meanwhile.
      const bool is_known = run_.side.off_cpu_of(s.file, s.stage == preprocess_stage) != nullptr;
      const bool waits = 2 * blocked_ns(n, s.start_ns, until_ns) > until_ns - s.start_ns;
      if (is_known && waits) last_items_.emplace(n, *last);
    }
  }
}

optional_span awaited_spans::last_item(span_number n) const {
  const auto at = last_items_.find(n);
  return at == last_items_.end() ? optional_span() : optional_span(at->second);
}

const std::vector<span_number>& awaited_spans::of(span_number n) const {
  static const std::vector<span_number> none;
  const auto at = of_.find(n);
  return at == of_.end() ? none : at->second;
}

std::int64_t awaited_spans::blocked_ns(span_number n, std::int64_t from_ns,
                                       std::int64_t until_ns) const {
  const preprocessing_span& s = run_.batches.preprocessing_spans()[n];
  const off_cpu_time* const off = run_.side.off_cpu_of(s.file, s.stage == preprocess_stage);
  const std::int64_t wall_ns = until_ns - from_ns;
  if (off == nullptr) return wall_ns;
  const cpu_split split = off->split(from_ns, until_ns);
  return split.blocked_ns.value_or(wall_ns - split.cpu_ns);
}

std::int64_t awaited_spans::waited_ns(span_number n) const {
  const std::vector<preprocessing_span>& spans = run_.batches.preprocessing_spans();
  if (const optional_span item = last_item(n)) {
    return blocked_ns(n, spans[n].start_ns, spans[*item].end_ns());
  }
  std::int64_t waited = 0;
  std::int64_t until_ns = spans[n].start_ns;
  for (const span_number m : of(n)) {
    const std::int64_t from_ns = std::max(until_ns, spans[m].start_ns);
    if (spans[m].end_ns() <= from_ns) continue;
    until_ns = spans[m].end_ns();
    waited += blocked_ns(n, from_ns, until_ns);
  }
  return waited;
}

}  // namespace lotus::tool
