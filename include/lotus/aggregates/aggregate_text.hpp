// Writes aggregates (sums of counted calls) as text, in sections of a hidden file of the run.
#ifndef LOTUS_AGGREGATES_AGGREGATE_TEXT_HPP
#define LOTUS_AGGREGATES_AGGREGATE_TEXT_HPP

#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string_view>

#include "lotus/aggregates/aggregate_chain.hpp"
#include "lotus/aggregates/aggregates.hpp"
#include "lotus/base/clock.hpp"
#include "lotus/base/descriptor.hpp"
#include "lotus/base/file.hpp"
#include "lotus/base/function_ref.hpp"
#include "lotus/base/memory.hpp"
#include "lotus/config.hpp"
#include "lotus/folder/hidden_files.hpp"
#include "lotus/folder/loader_folder.hpp"
#include "lotus/folder/safe_open.hpp"
#include "lotus/format/line.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Returns the nanoseconds per tick, multiplied by 2^32, as an average over the whole clock map.
/// Steps of the wall clock do not affect the result.
inline std::uint64_t mean_rate(const clock_map& map) noexcept {
  // Minimum length of the interval over which the rate is computed: the clock readings at its two
  // ends are inexact by some ns, which would falsify the rate of a shorter interval.
  constexpr std::uint64_t min_ns = 50'000'000;
  __extension__ using wide = unsigned __int128;
  const clock_segment& first = map.at(0);
  const clock_segment& last = map.current();
  const std::uint64_t ticks = last.start_ticks - first.start_ticks;
  const std::uint64_t ns =
      (static_cast<std::uint64_t>(last.start_ns) - static_cast<std::uint64_t>(last.jumped_ns)) -
      (static_cast<std::uint64_t>(first.start_ns) - static_cast<std::uint64_t>(first.jumped_ns));
  // The values may come from a damaged file, so a rate of 0 is possible.
  const std::uint64_t latest = last.rate > 0 ? last.rate : 1;
  if (ticks == 0 || ns < min_ns || ns > INT64_MAX) return latest;
  const wide rate = (wide{ns} << 32) / ticks;
  const bool near = rate > latest / 2 && rate / 2 < latest && rate <= UINT64_MAX;
  return near ? static_cast<std::uint64_t>(rate) : latest;
}

/// Identifies a section of an aggregates file. If several sections have the same name, readers use
/// only the last one.
struct section_name {
  std::uint64_t began_ns;  ///< start of the recording, in ns since the Unix epoch
  /// 0 for the section with all calls of the recording. Each call that ends after the recording
  /// gets a section of its own, with a number from 1 on.
  std::uint64_t late;
};

/// Builds one section of an aggregates file: the aggregates of one loader.
class aggregate_text {
 public:
  /// @param rate  ns per tick, multiplied by 2^32.
  aggregate_text(const section_name& name, std::uint64_t rate) noexcept
      : name_{name}, rate_{rate} {}

  /// Adds the line of one aggregate.
  /// @param line_start  beginning of the line, "S<name>,".
  /// @param tid         id of the thread; 0 if several threads share the aggregate.
  void add(std::string_view line_start, std::uint32_t tid, const whole_aggregate& of) noexcept {
    if (lines_ == 0) put_bound("\nbegin,", rate_);
    put(line_start);
    // In a damaged file, the self time may be longer than the total.
    const std::uint64_t self_ticks =
        of.self_ticks < of.total_ticks ? of.self_ticks : of.total_ticks;
    const std::uint64_t fields[] = {tid, of.count, ns(of.total_ticks), ns(self_ticks)};
    for (const std::uint64_t field : fields) put_and(field, ',');
    std::uint64_t left = of.count;
    for (std::uint32_t b = 0; left > 0 && b < octaves * octave_buckets; ++b) {
      if (of.counts[b] == 0) continue;
      left -= of.counts[b];
      put_and(b, ':');
      put_and(of.counts[b], left > 0 ? ' ' : '\n');
    }
    ++lines_;
  }

  /// Returns the complete section; empty if no line was added or there was no memory.
  std::string_view finish() noexcept {
    if (lines_ == 0) return {};
    put_bound("end,", lines_);
    return failed_ ? std::string_view{} : std::string_view{text_.data(), text_.bytes()};
  }
  bool failed() const noexcept { return failed_; }

 private:
  std::uint64_t ns(std::uint64_t ticks) const noexcept {
    __extension__ using wide = unsigned __int128;
    const wide exact = (wide{ticks} * rate_) >> 32;
    return exact < INT64_MAX ? static_cast<std::uint64_t>(exact) : INT64_MAX;
  }

  void put(std::string_view text) noexcept {
    void* const to = text_.add(text.size());
    if (to == nullptr) {
      failed_ = true;
    } else {
      std::memcpy(to, text.data(), text.size());
    }
  }
  LOTUS_DETAIL_COLD void put_and(std::uint64_t number, char separator) noexcept {
    char digits[32];
    char* const end = put_number_slow(digits, number);
    *end = separator;
    put({digits, static_cast<std::size_t>(end + 1 - digits)});
  }
  void put_bound(std::string_view word, std::uint64_t number) noexcept {
    put(word);
    put_and(name_.began_ns, '.');
    put_and(name_.late, ',');
    put_and(number, '\n');
  }

  section_name name_;
  std::uint64_t rate_;
  std::uint64_t lines_ = 0;
  bool failed_ = false;
  growing_memory text_;
};

/// Appends a section to a file. Returns 0 or an error that file_error_text() can describe.
using append_section = function_ref<int(std::uint32_t loader, std::string_view section)>;

/// Builds a section for each loader that has aggregates, and passes it to `append`.
/// @param for_each_chain  calls its argument for every thread; it is called once for each loader.
/// @return 0, ENOMEM, or the first error of `append`.
LOTUS_DETAIL_COLD inline int for_each_section(const section_name& name, std::uint64_t rate,
                                              const name_lookup& names,
                                              function_ref<void(each_chain)> for_each_chain,
                                              append_section append) noexcept {
  auto* const room = static_cast<whole_aggregate*>(map_memory(sizeof(whole_aggregate)));
  if (room == nullptr) return ENOMEM;
  int first_error = 0;
  // The next loader is the one with the smallest id above that of the current loader.
  std::optional<std::uint64_t> next = 0;
  while (next) {
    const std::uint64_t loader = *next;
    next = std::nullopt;
    aggregate_text section{name, rate};
    for_each_chain([&](aggregate_chain& chain) {
      chain.for_each(*room, [&](const whole_aggregate& of) {
        if (of.loader() > loader && of.loader() < next.value_or(UINT64_MAX)) next = of.loader();
        if (of.loader() == loader) section.add(names(of.name()), chain.tid(), of);
      });
    });
    const std::string_view text = section.finish();
    int error = section.failed() ? ENOMEM : 0;
    if (!text.empty()) error = append(static_cast<std::uint32_t>(loader), text);
    if (first_error == 0) first_error = error;
  }
  munmap(room, sizeof(whole_aggregate));
  return first_error;
}

/// Writes to `out` the name of a process's aggregates file, which is in the run's or loader's
/// folder.
/// @param out  at least max_prefix_bytes + 48 bytes.
inline void put_aggregates_file_name(char* out, const char* prefix, std::uint32_t pid) noexcept {
  std::snprintf(out, max_prefix_bytes + 48, "%s%s_%u", aggregates_file_start, prefix, pid);
}

/// Appends a section to the aggregates file of its process and loader. Returns 0 or an error that
/// file_error_text() can describe. Readers ignore a section that was appended incompletely.
/// @param pid  id of the process.
LOTUS_DETAIL_COLD inline int append_aggregates(const log_folder& run, loader_folders& folders,
                                               std::uint32_t loader, std::uint32_t pid,
                                               std::string_view section) noexcept {
  const int folder = folders.of(loader);
  if (folder < 0) return -folder;
  char name[max_prefix_bytes + 48];
  put_aggregates_file_name(name, run.prefix, pid);
  struct stat status {};
  bool made = false;
  const int fd = open_to_append(folder, name, run.owners, run.mode, status, made);
  if (fd < 0) return -fd;
  if (made && run.like != nullptr) run.give_away(fd, status, run.like->st_mode & 0666U);
  const int error = write_all(fd, section.data(), section.size());
  close(fd);
  return error;
}

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_AGGREGATES_AGGREGATE_TEXT_HPP
