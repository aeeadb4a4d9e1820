#include "run_model.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <map>
#include <numeric>
#include <optional>
#include <sstream>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "diagnostics.hpp"
#include "log_files.hpp"
#include "log_line.hpp"

namespace lotus::tool {
namespace {

/// Numbers of the records, sorted by `key`; equal keys stay in the order of the logs.
template <class Key>
std::vector<record_number> numbers_by(const batch_records& records, Key key) {
  std::vector<record_number> numbers(records.size());
  std::iota(numbers.begin(), numbers.end(), record_number{0});
  std::sort(numbers.begin(), numbers.end(), [&](record_number a, record_number b) {
    return std::tuple_cat(key(records[a]), std::tie(a)) <
           std::tuple_cat(key(records[b]), std::tie(b));
  });
  return numbers;
}

/// When the consumer had the batch: the durations of markers and consumptions are placeholders.
std::int64_t consumer_had_it_ns(const batch_record& r) noexcept {
  return r.kind == record_kind::wait && !r.is_marker() ? r.end_ns() : r.start_ns;
}

/// The records of one batch number, of all epochs, in order of time.
class same_number {
 public:
  void clear() {
    for (auto& records : of_kind_) records.clear();
  }
  void add(batch_record& r) { of_kind_[static_cast<std::size_t>(r.kind)].push_back(&r); }

  /// Returns the epoch after the last one.
  std::uint32_t set_epochs(std::uint32_t first) {
    const auto& made = of_kind_[static_cast<std::size_t>(record_kind::preprocessed)];
    std::size_t epochs = 0;
    for (auto& records : of_kind_) {
      epochs = std::max(epochs, records.size());
      for (std::size_t i = 0; i < records.size(); ++i) {
        records[i]->epoch = first + static_cast<std::uint32_t>(i);
      }
      if (records.size() >= made.size() || records.empty()) continue;
      if (records.front()->kind == record_kind::queued) {
        place_before(made, records, first);
      } else {
        place_behind(made, records, first);
      }
    }
    return first + static_cast<std::uint32_t>(epochs);
  }

 private:
  using records_in_time = std::vector<batch_record*>;

  /// Gives each of `records` to the last of `made` that had ended by then, one each.
  static void place_behind(const records_in_time& made, const records_in_time& records,
                           std::uint32_t first) {
    std::size_t end = made.size();
    for (std::size_t i = records.size(); i-- > 0;) {
      std::size_t at = end - 1;
      while (at > i && made[at]->end_ns() > consumer_had_it_ns(*records[i])) --at;
      records[i]->epoch = first + static_cast<std::uint32_t>(at);
      end = at;
    }
  }

  /// Gives each of `records` to the first of `made` that began after it, one each.
  static void place_before(const records_in_time& made, const records_in_time& records,
                           std::uint32_t first) {
    std::size_t at = 0;
    for (std::size_t i = 0; i < records.size(); ++i, ++at) {
      const std::size_t last = made.size() - (records.size() - i);
      while (at < last && made[at]->start_ns < records[i]->start_ns) ++at;
      records[i]->epoch = first + static_cast<std::uint32_t>(at);
    }
  }

  std::array<records_in_time, record_kinds> of_kind_;
};

}  // namespace

run_scan scan_batches(const run_files& run, diagnostics& said) {
  struct file_scan {
    run_scan scan;
    std::ostringstream text;
    diagnostics said;
    std::exception_ptr failure;
    explicit file_scan(bool quiet) : said(text, quiet) {}
  };
  std::deque<file_scan> scans;
  for (std::size_t f = 0; f < run.files.size(); ++f) scans.emplace_back(said.quiet());
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t f = next++; f < scans.size(); f = next++) {
      try {
        scan_log(run.files[f], f, scans[f].said, scans[f].scan, [](const log_line&) {});
      } catch (...) {
        scans[f].failure = std::current_exception();
      }
    }
  };
  // More threads than these would wait for memory rather than count digits.
  const auto threads =
      std::min<std::size_t>({4, run.files.size(), std::thread::hardware_concurrency()});
  std::vector<std::thread> others;
  for (std::size_t t = 1; t < threads; ++t) others.emplace_back(work);
  work();
  for (std::thread& other : others) other.join();
  run_scan whole;
  for (file_scan& part : scans) {
    if (part.failure) std::rethrow_exception(part.failure);
    said.absorb(part.text.str(), part.said);
    whole.records.insert(whole.records.end(), part.scan.records.begin(), part.scan.records.end());
    part.scan.records.clear();
    whole.operations += part.scan.operations;
    whole.first_ns = std::min(whole.first_ns, part.scan.first_ns);
    whole.last_ns = std::max(whole.last_ns, part.scan.last_ns);
  }
  return whole;
}

run_batches::run_batches(batch_records records) : records_(std::move(records)) {
  join_successive_consumers();
  find_epochs();
  find_steps();
  join();
}

/// A program that was run again, into the same logs, has begun new epochs.
void run_batches::join_successive_consumers() {
  struct span {
    std::int64_t first_ns = INT64_MAX;
    std::int64_t last_ns = INT64_MIN;
  };
  std::map<std::uint32_t, span> spans;
  for (const batch_record& r : records_) {
    if (r.kind != record_kind::wait && r.kind != record_kind::consumed) continue;
    span& s = spans[r.consumer];
    s.first_ns = std::min(s.first_ns, r.start_ns);
    s.last_ns = std::max(s.last_ns, consumer_had_it_ns(r));
  }
  std::vector<span> by_time;
  by_time.reserve(spans.size());
  for (const auto& [consumer, s] : spans) by_time.push_back(s);
  std::sort(by_time.begin(), by_time.end(),
            [](const span& a, const span& b) { return a.first_ns < b.first_ns; });
  for (std::size_t i = 1; i < by_time.size(); ++i) {
    if (by_time[i].first_ns < by_time[i - 1].last_ns) {
      consumers_ = by_time.size();
      return;
    }
  }
  for (batch_record& r : records_) r.consumer = 0;
}

void run_batches::find_epochs() {
  const auto numbers = numbers_by(records_, [](const batch_record& r) {
    return std::make_tuple(r.consumer, r.index, r.kind, r.start_ns);
  });
  same_number same;
  std::uint32_t first_epoch = 0;  // of this consumer
  std::uint32_t next_epoch = 0;
  for (std::size_t at = 0; at < numbers.size();) {
    const batch_record& first = records_[numbers[at]];
    same.clear();
    const std::uint32_t consumer = first.consumer;
    const std::int64_t index = first.index;
    for (; at < numbers.size(); ++at) {
      batch_record& r = records_[numbers[at]];
      if (r.consumer != consumer || r.index != index) break;
      same.add(r);
    }
    next_epoch = std::max(next_epoch, same.set_epochs(first_epoch));
    if (at < numbers.size() && records_[numbers[at]].consumer != consumer) first_epoch = next_epoch;
  }
}

void run_batches::find_steps() {
  steps_.assign(records_.size(), -1);
  const auto numbers = numbers_by(
      records_, [](const batch_record& r) { return std::make_tuple(r.file, r.start_ns); });
  record_number open = no_record;
  for (const record_number n : numbers) {
    const batch_record& r = records_[n];
    const bool consumes = r.kind == record_kind::consumed;
    if (!consumes && (r.kind != record_kind::wait || r.is_marker())) continue;
    if (open != no_record && records_[open].file == r.file) {
      steps_[open] = r.start_ns - records_[open].start_ns;
    }
    open = consumes ? n : no_record;
  }
}

void run_batches::join() {
  const auto numbers =
      numbers_by(records_, [](const batch_record& r) { return std::make_tuple(r.epoch, r.index); });
  for (const record_number n : numbers) {
    const batch_record& r = records_[n];
    if (batches_.empty() || batches_.back().index != r.index || batches_.back().epoch != r.epoch) {
      batches_.emplace_back();
      batches_.back().index = r.index;
      batches_.back().epoch = r.epoch;
    }
    batch& b = batches_.back();
    switch (r.kind) {
      case record_kind::preprocessed:
        b.preprocessed = n;
        break;
      case record_kind::wait:
        b.wait = n;
        break;
      case record_kind::consumed:
        b.consumed = n;
        break;
      case record_kind::queued:
        b.queued = n;
        break;
      case record_kind::op:
        break;
    }
  }
}

std::size_t run_batches::place_of(const batch_record& r) const noexcept {
  const auto at = std::lower_bound(
      batches_.begin(), batches_.end(), r, [](const batch& b, const batch_record& wanted) {
        return std::tie(b.epoch, b.index) < std::tie(wanted.epoch, wanted.index);
      });
  return static_cast<std::size_t>(at - batches_.begin());
}

std::optional<std::int64_t> run_batches::preprocess_ns(const batch& b) const noexcept {
  const batch_record* const r = record(b.preprocessed);
  return r != nullptr ? std::optional(r->duration_ns) : std::nullopt;
}

std::optional<std::int64_t> run_batches::wait_ns(const batch& b) const noexcept {
  const batch_record* const r = record(b.wait);
  if (r == nullptr) return std::nullopt;
  return r->is_marker() ? 0 : r->duration_ns;
}

std::optional<std::int64_t> run_batches::delay_ns(const batch& b) const noexcept {
  const batch_record* const made = record(b.preprocessed);
  const batch_record* const used = record(b.consumed);
  if (made == nullptr || used == nullptr) return std::nullopt;
  return used->start_ns - made->end_ns();
}

std::optional<std::int64_t> run_batches::step_ns(record_number consumed) const noexcept {
  if (consumed == no_record || steps_[consumed] < 0) return std::nullopt;
  return steps_[consumed];
}

bool run_batches::out_of_order(const batch& b) const noexcept {
  const batch_record* const r = record(b.wait);
  return r != nullptr && r->is_marker();
}

}  // namespace lotus::tool
