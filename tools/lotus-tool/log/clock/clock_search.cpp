#include "log/clock/clock_search.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <map>
#include <utility>

#include "base/terminal/table.hpp"
#include "log/batch_kinds.hpp"
#include "log/log_line.hpp"
#include "log/log_reader.hpp"

namespace lotus::tool {
namespace {

/// Whether `agreeing` threads are enough of `all`.
bool enough(std::size_t agreeing, std::size_t all) {
  return agreeing >= 2 && 2 * agreeing >= all;
}

/// The smallest and the largest of some numbers of ns.
struct bounds {
  std::int64_t min_ns = INT64_MAX;
  std::int64_t max_ns = INT64_MIN;

  void include(std::int64_t ns) {
    min_ns = std::min(min_ns, ns);
    max_ns = std::max(max_ns, ns);
  }
  /// Whether threads that stopped, or went on, at these times did so together.
  bool are_together() const {
    constexpr std::int64_t together_ns = 10'000'000;
    return max_ns - min_ns < together_ns;
  }
  /// Returns the middle. The numbers must not be too far apart for their difference.
  std::int64_t middle_ns() const { return min_ns + (max_ns - min_ns) / 2; }
};

/// Determines by how much the durations of spans that were open when the clock was set are wrong:
/// with this correction, each of them is about as long as other spans of the same name.
class open_spans {
 public:
  /// Ignores waits, because the durations of waits differ too much to show an error.
  void see(const log_line& line, bool open) {
    if (line.kind == record_kind::wait) return;
    const bool op = line.kind == record_kind::op;
    const std::string name(line.name.substr(0, op ? line.name.size() : line.name.rfind('_')));
    if (open) {
      open_.emplace_back(name, line.duration_ns);
    } else {
      usual_[name].include(line.duration_ns);
    }
  }

  /// Returns the error; nullopt if the spans contradict each other, or if there are none.
  std::optional<std::int64_t> error_ns() const {
    bounds possible{INT64_MIN, INT64_MAX};
    bool known = false;
    for (const auto& [name, duration_ns] : open_) {
      const auto usual = usual_.find(name);
      if (usual == usual_.end()) continue;
      const std::int64_t slack_ns = usual->second.max_ns / 10;
      possible.min_ns = std::max(possible.min_ns, duration_ns - usual->second.max_ns - slack_ns);
      possible.max_ns = std::min(possible.max_ns, duration_ns - usual->second.min_ns + slack_ns);
      known = true;
    }
    if (!known || possible.min_ns > possible.max_ns) return std::nullopt;
    return possible.middle_ns();
  }

 private:
  std::map<std::string, bounds> usual_;
  std::vector<std::pair<std::string, std::int64_t>> open_;  // names and durations
};

/// Follows the times in one log. The log goes back if a line ends before an earlier line began.
class way_back {
 public:
  void see(const log_line& line) {
    ++lines_;
    const std::int64_t end_ns = line.end_ns();
    first_ns_ = std::min({first_ns_, line.start_ns, end_ns});
    if (end_ns < latest_start_ns_ - clock_watch::least_back_ns || line.duration_ns < 0) {
      if (++turns_ == 1) next_ns_ = std::max(line.start_ns, end_ns);
      next_ns_ = std::min(next_ns_, line.duration_ns < 0 ? end_ns : line.start_ns);
      latest_start_ns_ = line.start_ns;
      if (line.duration_ns < 0) last_start_ns_ = std::max(last_start_ns_, line.start_ns);
    } else if (turns_ == 0) {
      last_start_ns_ = std::max(last_start_ns_, line.start_ns);
      last_ns_ = std::max(last_ns_, end_ns);
    } else if (end_ns < last_ns_ && line.start_ns > next_ns_) {
      goes_on_ = true;
    }
    latest_start_ns_ = std::max(latest_start_ns_, line.start_ns);
  }

  bool turned() const noexcept { return turns_ > 0; }
  /// Whether later lines stay there. A span that contains others ends alone before them if the
  /// clock was set forward, and lines in no order at all turn all the time.
  bool clearly() const noexcept {
    constexpr std::uint64_t some = 10;
    return goes_on_ && (turns_ == 1 || turns_ * some <= lines_);
  }
  std::int64_t first_ns() const noexcept { return first_ns_; }
  std::int64_t last_start_ns() const noexcept { return last_start_ns_; }
  std::int64_t last_ns() const noexcept { return std::max(last_ns_, last_start_ns_); }
  std::int64_t next_ns() const noexcept { return next_ns_; }

 private:
  std::uint64_t lines_ = 0;
  std::uint64_t turns_ = 0;
  bool goes_on_ = false;
  std::int64_t first_ns_ = INT64_MAX;
  std::int64_t latest_start_ns_ = 0;
  std::int64_t last_start_ns_ = 0;
  std::int64_t last_ns_ = 0;
  std::int64_t next_ns_ = 0;
};

/// Lets a reader return lines with negative durations, and change nothing.
std::shared_ptr<const clock_step> as_written() {
  return std::make_shared<const clock_step>(clock_step{0, INT64_MAX, 0, 0});
}

std::optional<clock_step> set_back(const run_files& run) {
  clock_step step{INT64_MAX, 0, INT64_MAX, 0};
  std::vector<way_back> turned;
  open_spans spans;
  for (const log_file& file : run.files) {
    log_file raw = file;
    raw.clock = as_written();
    way_back log;
    read_log(raw, nullptr, [&](const log_line& line) {
      log.see(line);
      spans.see(line, line.duration_ns < 0);
    });
    if (!log.turned()) continue;
    if (!log.clearly()) return std::nullopt;
    turned.push_back(log);
    step.first_ns = std::min(step.first_ns, log.first_ns());
    step.last_ns = std::max(step.last_ns, log.last_start_ns());
    step.next_ns = std::min(step.next_ns, log.next_ns());
  }
  // All threads use the same clock, so each log goes back by the same time, minus the time until
  // its next line. A span that was open may have ended after the clock was set, so its end is
  // compared only with the next line of the same thread.
  step.missing_ns = step.last_ns - step.next_ns;
  for (const way_back& log : turned) {
    step.missing_ns = std::max(step.missing_ns, log.last_ns() - log.next_ns());
  }
  const bool same = std::all_of(turned.begin(), turned.end(), [&](const way_back& log) {
    return log.last_ns() - log.next_ns() >= step.missing_ns / 2;
  });
  if (!same || !enough(turned.size(), run.files.size())) return std::nullopt;
  const std::optional<std::int64_t> error_ns = spans.error_ns();
  if (error_ns) step.missing_ns = std::max(step.missing_ns, -*error_ns);
  return step;
}

/// When one thread stopped before a silence and when it went on.
struct thread_pause {
  std::int64_t last_ns = 0;
  std::int64_t next_ns = INT64_MAX;

  bool known() const noexcept { return last_ns != 0 && next_ns != INT64_MAX; }
  std::int64_t length_ns() const noexcept { return next_ns - last_ns; }
};

/// Returns the length of the shortest pause if enough of the `all` threads paused for the same time
/// although they did not stop at the same moment; otherwise nullopt.
std::optional<std::int64_t> equal_pause_ns(const std::vector<thread_pause>& pauses,
                                           std::size_t all) {
  constexpr std::int64_t equal_ns = 1'000'000;
  bounds lengths;
  for (const thread_pause& t : pauses) lengths.include(t.length_ns());
  bounds stops;
  std::size_t count = 0;
  for (const thread_pause& t : pauses) {
    if (t.length_ns() - lengths.min_ns > equal_ns) continue;
    ++count;
    stops.include(t.last_ns);
  }
  if (!enough(count, all) || stops.are_together()) return std::nullopt;
  return lengths.min_ns;
}

std::optional<clock_step> set_forward(const run_files& run, const silence& around) {
  std::vector<thread_pause> pauses;
  bounds goes_on;  // when the threads with open spans went on
  std::size_t open_in = 0;
  open_spans spans;
  for (const log_file& file : run.files) {
    thread_pause pause;
    bool is_open = false;
    read_log(file, nullptr, [&](const log_line& line) {
      const bool before = line.start_ns <= around.from_ns;
      const bool open = before && line.end_ns() >= around.to_ns;
      if (!before) pause.next_ns = std::min(pause.next_ns, line.start_ns);
      if (before && !open) pause.last_ns = std::max(pause.last_ns, line.end_ns());
      spans.see(line, open);
      if (!open || line.kind == record_kind::wait) return;
      if (!is_open) goes_on.include(line.end_ns());
      is_open = true;
    });
    if (is_open) ++open_in;
    if (!is_open && pause.known()) pauses.push_back(pause);
  }
  const std::size_t all = open_in + pauses.size();
  std::optional<std::int64_t> length_ns = equal_pause_ns(pauses, all);
  if (!length_ns && enough(open_in, all) && !goes_on.are_together()) length_ns = spans.error_ns();
  if (!length_ns) return std::nullopt;
  return clock_step{0, around.from_ns, around.to_ns, -*length_ns};
}

}  // namespace

void clock_watch::take(std::int64_t from_ns, std::int64_t to_ns) noexcept {
  if (to_ns - from_ns <= longest_ns_) return;
  longest_ = {from_ns, to_ns};
  longest_ns_ = to_ns - from_ns;
}

void clock_watch::see_silence(std::int64_t start_ns, std::int64_t end_ns) noexcept {
  if (latest_ns_ == 0) {
    first_ns_ = start_ns;
    latest_ns_ = start_ns;
  }
  take(latest_ns_, start_ns);
  take(std::max(latest_ns_, start_ns), end_ns);
}

std::optional<silence> clock_watch::common(const std::vector<clock_watch>& logs) {
  silence all{0, INT64_MAX};
  std::int64_t first_ns = INT64_MAX;
  std::int64_t last_ns = 0;
  for (const clock_watch& log : logs) {
    if (log.latest_ns_ == 0) continue;
    first_ns = std::min(first_ns, log.first_ns_);
    last_ns = std::max(last_ns, log.latest_ns_);
    if (log.longest_.to_ns == 0) continue;
    all.from_ns = std::max(all.from_ns, log.longest_.from_ns);
    all.to_ns = std::min(all.to_ns, log.longest_.to_ns);
  }
  if (all.from_ns == 0) return std::nullopt;
  // A log without a long silence lies completely before or after the silence of the others, for
  // example the log of a worker that was started later.
  for (const clock_watch& log : logs) {
    if (log.latest_ns_ == 0 || log.longest_.to_ns != 0) continue;
    const bool before = log.latest_ns_ < all.to_ns && log.first_ns_ <= all.from_ns;
    if (before) all.from_ns = std::max(all.from_ns, log.latest_ns_);
    if (!before) all.to_ns = std::min(all.to_ns, log.first_ns_);
  }
  constexpr std::int64_t share = 10;  // a shorter pause changes no verdict
  const std::int64_t length_ns = all.to_ns - all.from_ns;
  if (length_ns < least_silence_ns || length_ns < (last_ns - first_ns) / share) return std::nullopt;
  return all;
}

bool may_have_been_set(const std::vector<clock_watch>& watches) {
  return clock_watch::common(watches).has_value() ||
         std::any_of(watches.begin(), watches.end(),
                     [](const clock_watch& log) { return log.goes_back(); });
}

std::shared_ptr<const clock_step> find_clock_step(const run_files& run,
                                                  const std::vector<clock_watch>& watches) {
  const std::optional<silence> silent = clock_watch::common(watches);
  const std::optional<clock_step> step = silent ? set_forward(run, *silent) : set_back(run);
  return step ? std::make_shared<const clock_step>(*step) : nullptr;
}

bool was_set_again(const run_files& run, const std::vector<clock_watch>& watches) {
  const std::optional<silence> silent = clock_watch::common(watches);
  if (silent) return set_forward(run, *silent).has_value();
  const auto back = std::count_if(watches.begin(), watches.end(),
                                  [](const clock_watch& log) { return log.goes_back(); });
  return enough(static_cast<std::size_t>(back), watches.size());
}

std::shared_ptr<const clock_step> several_clock_steps() {
  return std::make_shared<const clock_step>(clock_step{0, 0, INT64_MAX, 0});
}

bool are_several(const clock_step& step) noexcept {
  return step.missing_ns == 0;
}

std::string described(const clock_step& step) {
  if (are_several(step)) {
    return "the clock was set more than once during the run, so that no time can be relied on";
  }
  const std::string length = human_time(std::abs(step.missing_ns));
  if (step.is_back()) {
    return "the clock was set back by " + length +
           " during the run; the times after it are corrected";
  }
  return "the clock was set forward by " + length +
         " during the run, or the computer was suspended; this time is left out";
}

}  // namespace lotus::tool
