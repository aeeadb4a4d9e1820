#include "replay/recorded/recorded_parts.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "model/path/span_segments.hpp"
#include "model/pipeline/items.hpp"
#include "model/pipeline/stage_threads.hpp"

namespace lotus::tool {
namespace {

void add(recorded_part& to, const recorded_part& part) {
  to.cpu_ns += part.cpu_ns;
  to.blocked_ns += part.blocked_ns;
  to.queued_ns += part.queued_ns;
}

/// Counts how often a thread was blocked and then ran on the CPU, by the times of its operations in
/// order. Times that are much shorter than others hardly count: the numbers are 1 divided by the
/// sum of the squared shares (the effective number, Laakso and Taagepera, 1979).
class counted_rounds {
 public:
  void add(const measured_work& operation) {
    constexpr double blocked_share = 0.1;
    if (cpu_ns_ > 0 && operation.blocked_ns > blocked_share * operation.all_ns()) end_round();
    cpu_ns_ += operation.cpu_ns;
    blocked_ns_ += operation.blocked_ns;
  }
  std::uint32_t count() {
    end_round();
    constexpr double max_rounds = 4;  // more change little, and cost time in each simulation
    const double effective = std::min({cpu_.number(), blocked_.number(), max_rounds});
    return static_cast<std::uint32_t>(std::max(1L, std::lround(effective)));
  }

 private:
  struct sums {
    double all = 0;
    double squares = 0;

    void add(double x) {
      all += x;
      squares += x * x;
    }
    double number() const { return squares > 0 ? all * all / squares : 1; }
  };
  void end_round() {
    cpu_.add(cpu_ns_);
    blocked_.add(blocked_ns_);
    cpu_ns_ = blocked_ns_ = 0;
  }

  double cpu_ns_ = 0;  // in this round
  double blocked_ns_ = 0;
  sums cpu_, blocked_;
};

/// Splits the span `n` into its operations and adds each of them to `parts`, as a part of the work
/// with the index `work`. Returns the rounds of the span; see measured_work::rounds.
std::uint32_t add_span(const run_data& run, span_number n,
                       const std::vector<span_segment>& segments, std::uint32_t work,
                       std::deque<recorded_part>& parts) {
  const preprocessing_span& s = run.batches.preprocessing_spans()[n];
  const off_cpu_time* const off = run.side.off_cpu_of(s.file, s.stage == preprocess_stage);
  const bool parts_known = run.side.off_cpu_of(s.file) != nullptr;
  bool known = true;
  const measured_work all = work_in(off, s.start_ns, s.end_ns(), known);
  const auto wall_ns = static_cast<double>(s.duration_ns);
  const std::size_t first = parts.size();
  counted_rounds rounds;
  for (const span_segment& segment : segments) {
    measured_work own;
    if (parts_known || off == nullptr) {
      own = work_in(off, segment.start_ns, segment.end_ns, known);
      rounds.add(own);
    }
    if (!segment.name) continue;
    recorded_part part{work, *segment.name, 0, 0, 0};
    if (parts_known || off == nullptr) {
      part.cpu_ns = own.cpu_ns;
      part.blocked_ns = own.blocked_ns;
      part.queued_ns = own.queued_ns;
    } else {
      const double share = static_cast<double>(segment.duration_ns()) / wall_ns;
      part.cpu_ns = share * all.cpu_ns;
      part.blocked_ns = share * all.blocked_ns;
      part.queued_ns = share * all.queued_ns;
    }
    const auto same = std::find_if(parts.begin() + static_cast<std::ptrdiff_t>(first), parts.end(),
                                   [&part](const recorded_part& p) { return p.name == part.name; });
    if (same == parts.end()) {
      parts.push_back(part);
    } else {
      add(*same, part);
    }
  }
  return rounds.count();
}

}  // namespace

void merge_parts(std::deque<recorded_part>& parts) {
  const auto key = [](const recorded_part& p) { return std::tie(p.work, p.name); };
  std::sort(parts.begin(), parts.end(),
            [key](const recorded_part& a, const recorded_part& b) { return key(a) < key(b); });
  auto last = parts.begin();
  for (const recorded_part& part : parts) {
    if (last != parts.begin() && key(*(last - 1)) == key(part)) {
      add(*(last - 1), part);
    } else {
      *last++ = part;
    }
  }
  parts.erase(last, parts.end());
}

std::deque<recorded_part> parts_of(const run_data& run, const std::vector<optional_work>& work_of,
                                   std::vector<std::uint32_t>& rounds) {
  std::vector<bool> has_work(work_of.size());
  for (std::size_t n = 0; n < work_of.size(); ++n) has_work[n] = work_of[n].has_value();
  const std::vector<preprocessing_span>& spans = run.batches.preprocessing_spans();
  // The parts of each log, and those of the spans without a log.
  std::vector<std::deque<recorded_part>> of_log(run.files->files.size() + 1);
  for_each_span(run, has_work, [&](span_number n, const std::vector<span_segment>& segments) {
    const std::size_t log = spans[n].file ? spans[n].file->value() : of_log.size() - 1;
    rounds[n] = add_span(run, n, segments, *work_of[n], of_log[log]);
  });
  std::deque<recorded_part> parts;
  for (std::deque<recorded_part>& of : of_log) {
    if (parts.empty()) {
      parts = std::move(of);
    } else {
      parts.insert(parts.end(), of.begin(), of.end());
    }
    of = std::deque<recorded_part>();
  }
  merge_parts(parts);
  return parts;
}

namespace {

void put_into_order(std::vector<found_unit>& epoch, std::size_t threads) {
  std::sort(epoch.begin(), epoch.end(), [](const found_unit& a, const found_unit& b) {
    return std::tie(b.of_item, a.start_ns, a.batch) < std::tie(a.of_item, b.start_ns, b.batch);
  });
  if (!epoch.empty() && epoch.front().of_item) return;
  std::vector<found_unit> by_number = epoch;
  std::sort(by_number.begin(), by_number.end(), [](const found_unit& a, const found_unit& b) {
    return a.batch < b.batch;  // within an epoch, ids of batches are in the order of batch numbers
  });
  std::map<batch_id, std::size_t> began;
  for (std::size_t i = 0; i < epoch.size(); ++i) began[epoch[i].batch] = i;
  const std::size_t farthest = 4 * threads;
  for (std::size_t i = 0; i < by_number.size(); ++i) {
    const std::size_t at = began[by_number[i].batch];
    if (at > i + farthest || i > at + farthest) return;
  }
  epoch = std::move(by_number);
}

}  // namespace

bool builds_in_parts(const run_batches& batches, stage_id stage,
                     const std::function<bool(span_number)>& is_used) {
  if (stage == preprocess_stage) return false;
  const std::vector<preprocessing_span>& spans = batches.preprocessing_spans();
  std::map<batch_id, std::vector<std::pair<std::int64_t, std::int64_t>>> by_batch;
  for (span_number n = 0; n < spans.size(); ++n) {
    if (spans[n].stage != stage || !is_used(n)) continue;
    by_batch[*spans[n].batch].emplace_back(spans[n].start_ns, spans[n].end_ns());
  }
  const auto in_parts = std::count_if(by_batch.begin(), by_batch.end(),
                                      [](const auto& of) { return max_at_once(of.second) > 1; });
  return 2 * static_cast<std::size_t>(in_parts) > by_batch.size();
}

std::vector<std::vector<found_unit>> units_of(const run_batches& batches,
                                              const std::function<bool(span_number)>& is_used,
                                              std::size_t threads,
                                              const std::optional<stage_id>& in_parts) {
  std::map<std::uint32_t, std::vector<found_unit>> by_epoch;
  std::vector<bool> has_own(batches.all().size());
  std::vector<bool> has_items(batches.all().size());
  const auto add_unit = [&](found_unit&& u) {
    (u.of_item ? has_items : has_own)[u.batch.value()] = true;
    by_epoch[batches.at(u.batch).epoch].push_back(std::move(u));
  };
  for (const item& it : items_of(batches)) {
    found_unit u;
    u.of_item = it.of_item;
    for (const span_number n : it.spans) {
      if (!is_used(n)) continue;
      const preprocessing_span& s = batches.preprocessing_spans()[n];
      if (s.stage == in_parts) {
        add_unit({*s.batch, true, {n}, s.start_ns});
        continue;
      }
      if (u.spans.empty()) u.start_ns = s.start_ns;
      u.batch = *s.batch;
      u.spans.push_back(n);
    }
    if (!u.spans.empty()) add_unit(std::move(u));
  }
  for (std::uint32_t b = 0; b < has_own.size(); ++b) {
    if (!has_items[b] || has_own[b]) continue;
    by_epoch[batches.all()[b].epoch].push_back({batch_id(b), false, {}, INT64_MAX});
  }
  std::vector<std::vector<found_unit>> epochs;
  for (auto& [number, epoch] : by_epoch) {
    put_into_order(epoch, threads);
    epochs.push_back(std::move(epoch));
  }
  return epochs;
}

std::int64_t when_received(const run_batches& batches, const batch& b) {
  const std::int64_t used_ns = *batches.left_ns(b);
  const batch_record* const wait = batches.record(b.wait);
  return wait != nullptr && !wait->is_marker() ? std::min(used_ns, wait->end_ns()) : used_ns;
}

}  // namespace lotus::tool
