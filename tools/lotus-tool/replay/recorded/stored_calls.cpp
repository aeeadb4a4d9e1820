#include "replay/recorded/stored_calls.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "model/packed_operations.hpp"

namespace lotus::tool {
namespace {

constexpr std::size_t max_window = 300;

bool ends_before(const operation_call& a, const operation_call& b) {
  return std::tie(a.end_ns, a.start_ns, a.file) < std::tie(b.end_ns, b.start_ns, b.file);
}

bool starts_before(const operation_call& a, const operation_call& b) {
  return std::tie(a.start_ns, a.end_ns, a.file) < std::tie(b.start_ns, b.end_ns, b.file);
}

}  // namespace

std::vector<double> service_times(const std::vector<operation_call>& calls, std::size_t servers) {
  std::vector<double> services;
  services.reserve(calls.size());
  for (std::size_t i = 0; i < calls.size(); ++i) {
    services.push_back(service_ns(calls[i], i < servers ? INT64_MIN : calls[i - servers].end_ns));
  }
  return services;
}

/// Reads the calls of one log.
class stored_calls::log_reader {
 public:
  explicit log_reader(const log_calls& log, bool cpu_known)
      : spans_(log.spans), times_(log.times), cpu_known_(cpu_known) {
    now_.file = log.file;
  }
  /// Moves to the next call; returns false if there is none.
  bool next() {
    const operation* const span = spans_.next();
    if (span == nullptr) return false;
    now_.start_ns = span->start_ns;
    now_.end_ns = span->end_ns();
    now_.work = span->name;
    if (cpu_known_) add_times(now_, *times_.next());
    return true;
  }
  const operation_call& now() const noexcept { return now_; }

 private:
  packed_operations::reader spans_;
  packed_operations::reader times_;
  bool cpu_known_;
  operation_call now_;
};

stored_calls::stored_calls(bool cpu_known) : cpu_known_(cpu_known) {}

void stored_calls::add(const operation_call& call) {
  if (logs_.empty() || logs_.back().file != call.file) {
    end_log();
    begin_log(call.file);
  }
  const bool is_first = logs_.back().count == 0;
  if (unsorted_.empty() &&
      (is_first || (call.start_ns > last_.start_ns && call.end_ns > last_.end_ns))) {
    push(call);
    return;
  }
  if (unsorted_.empty()) {
    log_reader read(logs_.back(), cpu_known_);
    while (read.next()) unsorted_.push_back(read.now());
  }
  unsorted_.push_back(call);
}

void stored_calls::begin_log(std::uint32_t file) {
  logs_.push_back({file, 0, {}, {}});
}

void stored_calls::end_log() {
  if (logs_.empty()) return;
  if (!unsorted_.empty()) {
    const std::uint32_t file = logs_.back().file;
    logs_.pop_back();
    begin_log(file);
    std::sort(unsorted_.begin(), unsorted_.end(),
              [](const operation_call& a, const operation_call& b) {
                return std::tie(a.start_ns, b.end_ns) < std::tie(b.start_ns, a.end_ns);
              });
    // A call that ends no later than the last stored call is inside that call (recursion). Leave it
    // out.
    for (const operation_call& c : unsorted_) {
      if (logs_.back().count == 0 || c.end_ns > last_.end_ns) push(c);
    }
    unsorted_ = std::vector<operation_call>();
  }
  size_ += logs_.back().count;
  logs_.back().spans.finish();
  logs_.back().times.finish();
}

void stored_calls::push(const operation_call& call) {
  log_calls& to = logs_.back();
  ++to.count;
  store(call, to.spans, to.times);
  last_ = call;
}

void stored_calls::store(const operation_call& call, packed_operations& spans,
                         packed_operations& times) const {
  spans.push({call.start_ns, call.end_ns - call.start_ns, call.work});
  // The times are measured in whole ns, so no digits are lost.
  if (cpu_known_) {
    times.push(
        {static_cast<std::int64_t>(call.cpu_ns), static_cast<std::int64_t>(call.queued_ns), 0});
  }
}

template <class Before, class OnCall>
void stored_calls::merge(Before before, OnCall on_call) const {
  std::vector<log_reader> logs;
  logs.reserve(logs_.size());
  // A heap of the readers of all logs. Its first reader is at the call that comes next.
  std::vector<log_reader*> next;
  for (const log_calls& log : logs_) {
    log_reader& read = logs.emplace_back(log, cpu_known_);
    if (read.next()) next.push_back(&read);
  }
  std::make_heap(next.begin(), next.end(), [before](const log_reader* a, const log_reader* b) {
    return before(b->now(), a->now());
  });
  while (!next.empty()) {
    log_reader* moved = next.front();
    on_call(moved->now());
    if (!moved->next()) {
      moved = next.back();
      next.pop_back();
      if (next.empty()) return;
    }
    // Restore the heap: move readers up until the right place for `moved` is free.
    std::size_t at = 0;
    for (std::size_t child = 1; child < next.size(); child = 2 * at + 1) {
      if (child + 1 < next.size() && before(next[child + 1]->now(), next[child]->now())) ++child;
      if (!before(next[child]->now(), moved->now())) break;
      next[at] = next[child];
      at = child;
    }
    next[at] = moved;
  }
}

void stored_calls::finish() {
  end_log();
  const std::size_t window_begin = size_ > max_window ? (size_ - max_window) / 2 : 0;
  std::size_t number = 0;
  merge(ends_before, [&](const operation_call& c) {
    all_ns_ += static_cast<double>(c.end_ns - c.start_ns);
    cpu_ns_ += c.cpu_ns;
    store(c, by_end_, times_);
    if (number >= window_begin && window_.size() < max_window) window_.push_back(c);
    ++number;
  });
  merge(starts_before, [&](const operation_call& c) {
    by_start_.push({c.start_ns, c.end_ns - c.start_ns, 0});
  });
  by_end_.finish();
  times_.finish();
  by_start_.finish();
  logs_ = std::vector<log_calls>();
}

}  // namespace lotus::tool
