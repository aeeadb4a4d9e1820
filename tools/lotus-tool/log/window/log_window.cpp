#include "log/window/log_window.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <string>

#include "base/files/found_file.hpp"
#include "base/terminal/table.hpp"
#include "log/compact/block_index.hpp"
#include "log/folder/older_part.hpp"
#include "log/log_line.hpp"
#include "log/process_info.hpp"
#include "log/side_line.hpp"
#include "lotus/folder/log_claims.hpp"
#include "lotus/format/record_kinds.hpp"

namespace lotus::tool {
namespace {

/// Calls `on_times(position in lines, times)` for each record in `lines`, until a call returns
/// false.
template <class OnTimes>
void for_each_times(std::string_view lines, bool is_side, OnTimes&& on_times) {
  for (std::size_t at = 0; at < lines.size();) {
    const std::size_t end = std::min(lines.find('\n', at), lines.size());
    const std::optional<line_times> times = times_of_line(lines.substr(at, end - at), is_side);
    if (times && !on_times(at, *times)) return;
    at = end + 1;
  }
}

/// Finds positions in a text log by time. It uses binary search, which works because the lines are
/// sorted by end time.
class text_times final : public log_times {
 public:
  explicit text_times(const log_file& file)
      : bytes_(file.bytes), is_side_(file.role == file_role::side) {
    if (bytes_ > 0) descriptor_ = open_found(file.path);
  }
  ~text_times() override {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  text_times(const text_times&) = delete;
  text_times& operator=(const text_times&) = delete;

  seen_times seen() const override {
    seen_times all;
    for (std::uint64_t n = 0; n <= samples; ++n) {
      const std::uint64_t at = bytes_ <= sample_bytes ? 0 : (bytes_ - sample_bytes) / samples * n;
      const std::uint64_t last = bytes_ <= sample_bytes ? 0 : bytes_ - sample_bytes;
      all.add(look_at_lines(lines_at(n == samples ? last : at, sample_bytes).text, is_side_));
      if (bytes_ <= sample_bytes) break;
    }
    return all;
  }

  std::int64_t last_ns() const override {
    const std::uint64_t from = bytes_ - std::min(bytes_, sample_bytes);
    return look_at_lines(lines_at(from, sample_bytes).text, is_side_).last_ns;
  }

  std::uint64_t begin_for(std::int64_t time_ns) const override { return halve(time_ns).low; }
  std::uint64_t end_for(std::int64_t time_ns) const override {
    return line_at(halve(time_ns + 1).high);
  }

  std::optional<std::int64_t> time_at(std::uint64_t byte) const override {
    const std::optional<placed> record = record_at(byte);
    return record ? std::optional(record->end_ns) : std::nullopt;
  }

 private:
  // seen() reads lines at this many positions, which are distributed evenly over the file, and
  // lines at its end.
  static constexpr std::uint64_t samples = 16;
  static constexpr std::uint64_t sample_bytes = std::uint64_t{32} << 10U;
  static constexpr std::uint64_t step_bytes = std::uint64_t{4} << 10U;

  struct some_lines {
    std::uint64_t first = 0;  // position of `text` in the file
    std::string text;
  };
  struct placed {
    std::uint64_t byte;
    std::int64_t end_ns;
  };
  struct range {
    std::uint64_t low;
    std::uint64_t high;
  };

  /// Returns the complete lines within the `most` bytes that follow the position `byte`; no lines
  /// if the first line is longer than that.
  some_lines lines_at(std::uint64_t byte, std::uint64_t most) const {
    some_lines some;
    // Also read the byte before the position `byte`: if it is a line end, a line begins at `byte`.
    const std::uint64_t from = byte == 0 ? 0 : byte - 1;
    some.text.resize(std::min(most + (byte - from), bytes_ - std::min(from, bytes_)));
    if (!lotus::detail::read_at(descriptor_, some.text.data(), some.text.size(), from)) return {};
    if (from + some.text.size() < bytes_) some.text.resize(some.text.rfind('\n') + 1);
    const std::size_t line_start = byte == 0 ? 0 : some.text.find('\n') + 1;
    if (byte != 0 && line_start == 0) return {};
    some.text.erase(0, line_start);
    some.first = from + line_start;
    return some;
  }

  /// Returns the first record at or after position `byte` that has an end time. Skips records that
  /// have only a start time, because lines are sorted by end time.
  std::optional<placed> record_at(std::uint64_t byte) const {
    std::optional<placed> found;
    for (std::uint64_t most = step_bytes; !found && byte < bytes_; most *= 8) {
      const some_lines some = lines_at(byte, most);
      for_each_times(some.text, is_side_, [&](std::size_t at, const line_times& times) {
        if (times.in_order) found = placed{some.first + at, times.end_ns};
        return !found;
      });
      if (byte + most >= bytes_) break;
    }
    return found;
  }

  /// Returns the position of the first line that begins at or after position `byte`.
  std::uint64_t line_at(std::uint64_t byte) const {
    for (std::uint64_t most = step_bytes; byte + most < bytes_; most *= 8) {
      const some_lines some = lines_at(byte, most);
      if (!some.text.empty()) return some.first;
    }
    return byte < bytes_ ? lines_at(byte, bytes_ - byte).first : bytes_;
  }

  /// Returns a range of positions that contains the first record that ended at `time_ns` or later.
  /// `low` is the beginning of a line: all records before it ended before `time_ns`. All records at
  /// or after `high` ended at `time_ns` or later.
  range halve(std::int64_t time_ns) const {
    range left{0, bytes_};
    while (left.high - left.low > step_bytes) {
      const std::uint64_t middle = left.low + (left.high - left.low) / 2;
      const std::optional<placed> record = record_at(middle);
      if (!record || record->byte >= left.high || record->end_ns >= time_ns) {
        left.high = middle;
      } else {
        left.low = record->byte;
      }
    }
    return left;
  }

  std::uint64_t bytes_;
  bool is_side_;
  int descriptor_ = -1;
};

}  // namespace

seen_times look_at_lines(std::string_view lines, bool is_side) {
  seen_times seen;
  std::int64_t last_ns = INT64_MIN;
  for_each_times(lines, is_side, [&](std::size_t, const line_times& times) {
    if (times.of_run) {
      seen.first_ns = std::min(seen.first_ns, times.start_ns);
      seen.last_ns = std::max(seen.last_ns, times.end_ns);
    }
    seen.longest_ns = std::max(seen.longest_ns, times.end_ns - times.start_ns);
    if (!times.in_order) return true;
    if (times.end_ns < last_ns) seen.back_ns = std::max(seen.back_ns, last_ns - times.end_ns);
    last_ns = std::max(last_ns, times.end_ns);
    return true;
  });
  return seen;
}

std::unique_ptr<log_times> times_of_text(const log_file& file) {
  return std::make_unique<text_times>(file);
}

std::optional<line_times> times_of_line(std::string_view line, bool is_side) {
  if (!is_side) {
    log_line record;
    if (parse_line(line, record) != nullptr) return std::nullopt;
    return line_times{record.start_ns, record.end_ns()};
  }
  side_line record;
  if (parse_line(line, record) != nullptr) return std::nullopt;
  const bool begins =
      lotus::detail::kind_of(record.kind).drawing == lotus::detail::record_drawing::ahead;
  return line_times{record.time_ns, record.end_ns(), !begins, record.kind != event_kind::off_cpu};
}

namespace {

constexpr std::int64_t min_margin_ns = 60'000'000'000;
constexpr std::uint64_t max_margin_bytes = std::uint64_t{4} << 20U;

/// Adds two times; if the sum would overflow, returns the largest or smallest value instead.
std::int64_t plus(std::int64_t time_ns, std::int64_t more_ns) noexcept {
  std::int64_t sum = 0;
  const bool over = __builtin_add_overflow(time_ns, more_ns, &sum);
  return over ? (more_ns > 0 ? INT64_MAX : INT64_MIN) : sum;
}

/// Returns a summary of the times in the first 64 KiB of a log's oldest part.
seen_times look_at_oldest(const log_file& file) {
  std::array<char, std::size_t{64} << 10U> bytes{};
  std::size_t used = 0;
  older_part_reader part(file.older.front());
  while (const std::size_t n = part.read(bytes.data() + used, bytes.size() - used)) used += n;
  const std::string_view text(bytes.data(), used);
  return look_at_lines(text.substr(0, text.rfind('\n') + 1), file.role == file_role::side);
}

/// Reduces all logs of one run to the bytes that may belong to a time range. Implements narrow().
class narrowed_run {
 public:
  explicit narrowed_run(run_files& run) {
    for (std::vector<log_file>* files : {&run.files, &run.side_files, &run.elsewhere}) {
      for (log_file& file : *files) logs_.push_back({&file, times_of(file)});
    }
  }

  /// Summarizes in seen_ the times of the logs in `run`, without those of other loaders. Returns
  /// false if the times of a log are unknown.
  bool look(const run_files& run) {
    for (const log& l : logs_) {
      if (l.times == nullptr) return false;
      seen_times seen = l.times->seen();
      const bool is_side = l.file->role == file_role::side;
      if (!l.file->tail.empty()) seen.add(look_at_lines(l.file->tail, is_side));
      if (!l.file->older.empty()) {
        if (l.file->compact) return false;
        seen.add(look_at_oldest(*l.file));
      }
      const bool elsewhere = !run.elsewhere.empty() && l.file >= run.elsewhere.data() &&
                             l.file < run.elsewhere.data() + run.elsewhere.size();
      if (!elsewhere) seen_.add(seen);
    }
    // The headers of compact blocks contain exact times. For text logs, whose lines may be out of
    // order, include the maximum disorder (seen_times::back_ns) that a process reports.
    const bool text =
        std::any_of(logs_.begin(), logs_.end(), [](const log& l) { return !l.file->compact; });
    if (text) {
      seen_.back_ns =
          std::max(seen_.back_ns, run_processes::read(run.info_dir, run.earlier_info).back_ns());
    }
    return seen_.first_ns <= seen_.last_ns;
  }
  const seen_times& seen() const noexcept { return seen_; }

  /// Returns the length in ns of the margins: the time before and after the requested part that is
  /// read too.
  std::int64_t margin(const time_window& part) const {
    std::int64_t max_ns = std::max({min_margin_ns, plus(seen_.longest_ns, seen_.longest_ns),
                                    plus(seen_.back_ns, seen_.back_ns)});
    for (const log& l : logs_) {
      const std::uint64_t begin = part.from_ns ? l.times->begin_for(*part.from_ns) : 0;
      if (begin > max_margin_bytes) {
        const auto time_ns = l.times->time_at(begin - max_margin_bytes);
        // No value means that the log has no record at or after the position; then no margin is
        // needed.
        max_ns =
            !time_ns ? 0 : std::min(max_ns, std::max<std::int64_t>(0, *part.from_ns - *time_ns));
      }
      if (!part.to_ns) continue;
      const auto margin_ns = l.times->time_at(l.times->end_for(*part.to_ns) + max_margin_bytes);
      if (margin_ns) {
        max_ns = std::min(max_ns, std::max<std::int64_t>(0, *margin_ns - *part.to_ns));
      }
    }
    return max_ns;
  }

  void leave(const time_window& read) const {
    for (const log& l : logs_) {
      log_file& file = *l.file;
      if (read.from_ns) file.first = l.times->begin_for(plus(*read.from_ns, -seen_.back_ns));
      if (read.to_ns) {
        file.bytes = std::max(file.first, l.times->end_for(plus(*read.to_ns, seen_.back_ns)));
      }
      // If reading begins after the start of the log's file, the older parts of the log are before
      // the time range, so do not read them.
      if (file.first > 0) file.older.clear();
    }
  }

 private:
  struct log {
    log_file* file;
    std::shared_ptr<log_times> times;
  };

  /// Returns the object that maps times to positions in a log. Logs of several roles that are read
  /// from the same compact log share one object.
  std::shared_ptr<log_times> times_of(const log_file& file) {
    if (!file.compact) return times_of_text(file);
    const auto [at, is_new] = blocks_.try_emplace(file.path);
    if (is_new) at->second = times_of_blocks(file);
    return at->second;
  }

  std::map<std::string, std::shared_ptr<log_times>> blocks_;  // times of compact logs, by path
  std::vector<log> logs_;
  seen_times seen_;
};

/// Calls `use(log, its times)` for each log of the runs that has bytes on disk. The times are null
/// for a damaged compact log.
template <class Use>
void for_each_log(std::vector<run_files>& runs, Use&& use) {
  for (run_files& run : runs) {
    for (std::vector<log_file>* files : {&run.files, &run.side_files}) {
      for (log_file& file : *files) {
        if (file.bytes == 0) continue;
        const auto times = file.compact ? times_of_blocks(file) : times_of_text(file);
        use(file, times.get());
      }
    }
  }
}

std::uint64_t bytes_of(const run_files& run) {
  std::uint64_t bytes = 0;
  for (const std::vector<log_file>* files : {&run.files, &run.side_files, &run.elsewhere}) {
    for (const log_file& file : *files) {
      bytes += file.bytes - file.first;
      for (const older_part& part : file.older) bytes += part.bytes;
    }
  }
  return bytes;
}

}  // namespace

void narrow(run_files& run, const wanted_part& wanted, diagnostic_log& diagnostics,
            std::uint64_t from_bytes) {
  const auto is_batch = [](const std::optional<window_end>& end) { return end && !end->after_ns; };
  if (bytes_of(run) < from_bytes || is_batch(wanted.from) || is_batch(wanted.to)) return;
  narrowed_run logs(run);
  if (!logs.look(run)) return;
  const seen_times& seen = logs.seen();
  time_window part;
  if (wanted.last_ns) part.from_ns = plus(seen.last_ns, -*wanted.last_ns);
  if (wanted.from) {
    const std::int64_t from_ns = plus(seen.first_ns, *wanted.from->after_ns);
    part.from_ns = std::max(part.from_ns.value_or(from_ns), from_ns);
  }
  if (wanted.to) part.to_ns = plus(seen.first_ns, *wanted.to->after_ns);
  const std::int64_t margin_ns = logs.margin(part);
  time_window read;
  if (part.from_ns) read.from_ns = plus(*part.from_ns, -margin_ns);
  if (part.to_ns) read.to_ns = plus(*part.to_ns, margin_ns);
  logs.leave(read);
  run.window = read_window{read, seen.first_ns, seen.last_ns};
  if (read.to_ns && *read.to_ns < seen.last_ns) {
    diagnostics.note(run.dir + ": spans that end more than " + human_time(margin_ns) +
                     " after the window are left out, even if they begin in it");
  }
}

std::int64_t narrow_to_end(std::vector<run_files>& runs, std::int64_t begin_ns,
                           std::uint64_t max_log_bytes, std::uint64_t max_bytes) {
  std::int64_t later_ns = begin_ns;
  std::int64_t last_ns = begin_ns;
  do {
    begin_ns = later_ns;
    std::uint64_t bytes = 0;
    for_each_log(runs, [&](log_file& file, const log_times* times) {
      const std::uint64_t most = file.bytes - std::min(file.bytes, max_log_bytes);
      const bool over = times != nullptr && times->last_ns() < begin_ns;
      file.first = times == nullptr ? most : over ? file.bytes : times->begin_for(begin_ns);
      if (file.first < most) {
        later_ns = std::max(later_ns, times->time_at(most).value_or(later_ns) + 1);
      }
      bytes += file.bytes - file.first;
      if (times != nullptr) last_ns = std::max(last_ns, times->last_ns());
    });
    if (bytes > max_bytes) later_ns = std::max(later_ns, begin_ns + (last_ns - begin_ns) / 4 + 1);
  } while (later_ns > begin_ns && begin_ns < last_ns);
  for (run_files& run : runs) {
    run.window = read_window{{begin_ns}};
    for (std::vector<log_file>* files : {&run.files, &run.side_files}) {
      for (log_file& file : *files) {
        if (file.first > 0) file.older.clear();
      }
    }
  }
  return begin_ns;
}

std::optional<std::int64_t> last_record_ns(std::vector<run_files>& runs) {
  std::int64_t last_ns = INT64_MIN;
  for_each_log(runs, [&](const log_file&, const log_times* times) {
    if (times != nullptr) last_ns = std::max(last_ns, times->last_ns());
  });
  for (const run_files& run : runs) {
    for (const std::vector<log_file>* files : {&run.files, &run.side_files}) {
      for (const log_file& file : *files) {
        const bool is_side = file.role == file_role::side;
        last_ns = std::max(last_ns, look_at_lines(file.tail, is_side).last_ns);
      }
    }
  }
  return last_ns == INT64_MIN ? std::nullopt : std::optional(last_ns);
}

}  // namespace lotus::tool
