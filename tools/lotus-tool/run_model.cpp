#include "run_model.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
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
  find_epochs();
  find_steps();
  join();
}

void run_batches::find_epochs() {
  const auto numbers = numbers_by(
      records_, [](const batch_record& r) { return std::make_tuple(r.index, r.kind, r.start_ns); });
  const batch_record* before = nullptr;
  for (const record_number n : numbers) {
    batch_record& r = records_[n];
    const bool again = before != nullptr && before->index == r.index && before->kind == r.kind;
    r.epoch = again ? before->epoch + 1 : 0;
    before = &r;
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
