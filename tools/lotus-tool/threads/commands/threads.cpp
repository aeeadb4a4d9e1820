#include "threads/commands/threads.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <ostream>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/diagnostics.hpp"
#include "base/errors.hpp"
#include "base/formats/json_writer.hpp"
#include "base/printable.hpp"
#include "base/terminal/line_width.hpp"
#include "base/terminal/table.hpp"
#include "threads/analysis/headline.hpp"
#include "threads/analysis/named_stacks.hpp"
#include "threads/analysis/suggested_markers.hpp"
#include "threads/analysis/thread_activity.hpp"
#include "threads/data/thread_samples.hpp"

namespace lotus::tool {
namespace {

/// The results that the command prints.
struct threads_result {
  std::vector<thread_activity> groups;
  std::string headline;
  std::vector<suggested_marker> markers;
};

std::string percent_of(double share) {
  return std::to_string(std::lround(100 * share)) + " %";
}

/// Returns the elements to print: the first `most` of those that take at least 2 % of the group's
/// time.
/// @param of  the part of the group's time to which the elements' shares refer, 0..1.
template <class Part>
std::vector<Part> main_parts(const std::vector<Part>& all, double of, std::size_t most) {
  constexpr double min_share = 0.02;
  std::vector<Part> chosen;
  for (const Part& part : all) {
    if (chosen.size() < most && part.share * of >= min_share) chosen.push_back(part);
  }
  return chosen;
}

void write_place(json_writer& to, const source_place& place) {
  if (!place.file.empty()) to.member("file", place.file).member("line", place.line);
}

void write_group(json_writer& to, const thread_activity& group,
                 const std::vector<thread_activity>& groups) {
  to.begin_object().member("threads", group.threads).member("start", group.start);
  to.member("processes", group.processes).member("program", group.program);
  to.member("looks", group.wait_samples).member("cpu_samples", group.cpu_samples);
  to.member("seconds", group.time_s).member("running", group.running);
  to.member("run_queue", group.run_queue).key("blocked").begin_array();
  for (const blocked_part& part : group.blocked) {
    to.newline(2).begin_object();
    to.member("reason", lotus::detail::wait_reason_words[static_cast<std::size_t>(part.reason)]);
    to.member("what", part.what).member("function", part.function.function);
    to.member("module", part.function.module);
    write_place(to, part.function);
    to.member("share", part.share);
    if (part.of) {
      to.member("waits_for", groups[*part.of].start).member("waits_for_group", *part.of);
      to.member("sure", part.sure);
    }
    to.end_object();
  }
  to.end_array().key("functions").begin_array();
  for (const function_share& one : group.functions) {
    to.newline(2).begin_object().member("name", one.function.function);
    to.member("module", one.function.module);
    write_place(to, one.function);
    to.member("share", one.share).end_object();
  }
  to.end_array().end_object();
}

void print_json(const thread_samples& samples, const threads_result& result, std::ostream& out) {
  std::string text;
  json_writer to(text);
  to.begin_object().member("headline", result.headline);
  to.key("sampling").begin_object().member("cpu_interval_ns", samples.interval_ns);
  to.member("looks_per_s", samples.wait_samples_per_s).member("cost", samples.cost);
  to.member("late_s", samples.late_s).end_object();
  to.key("groups").begin_array();
  for (const thread_activity& group : result.groups) {
    to.newline(1);
    write_group(to, group, result.groups);
  }
  to.end_array().newline().key("suggested_markers").begin_array();
  for (const suggested_marker& marker : result.markers) {
    to.newline(1).begin_object().member("file", marker.at.file).member("line", marker.at.line);
    to.member("function", marker.at.function).member("place", marker.after ? "after" : "before");
    to.member("text", marker.text).member("sure", marker.sure).end_object();
  }
  to.end_array().end_object();
  out << text << '\n';
}

void print_summary(const std::vector<thread_activity>& groups, std::ostream& out) {
  constexpr std::size_t max_groups = 12;
  table summary;
  summary.row({"threads (% of their time)", "on CPU", "waits for CPU", "blocked"});
  for (std::size_t i = 0; i < std::min(groups.size(), max_groups); ++i) {
    const thread_activity& group = groups[i];
    summary.row({shown_group(group), percent_of(group.running), percent_of(group.run_queue),
                 percent_of(group.blocked_share())});
  }
  if (groups.size() > max_groups) {
    summary.row({std::to_string(groups.size() - max_groups) + " more groups of threads"});
  }
  summary.print(out);
}

void print_group(const thread_activity& group, const std::vector<thread_activity>& groups,
                 std::ostream& out) {
  constexpr std::size_t max_parts = 4;
  const auto line = [&out](double share, const std::string& text) {
    std::string percent = percent_of(share);
    percent.insert(0, percent.size() < 6 ? 6 - percent.size() : 0, ' ');
    out << fitted(out, text, "  " + percent + "  ", std::string(10, ' ')) << '\n';
  };
  const auto waits = main_parts(group.blocked, 1, max_parts);
  const auto functions = main_parts(group.functions, group.running, max_parts);
  if (waits.empty() && functions.empty()) return;
  out << '\n' << shown_group(group) << '\n';
  for (const blocked_part& part : waits) {
    std::string text = part.reason == lotus::detail::wait_reason::sleep
                           ? "sleeps in " + shown_place(part.function)
                           : "waits in " + shown_place(part.function) + ' ' + shown_wait(part);
    if (part.of) {
      text += part.sure ? ", so it waits for " : ", so it probably waits for ";
      text +=
          &groups[*part.of] == &group ? "others of these threads" : shown_group(groups[*part.of]);
    }
    line(part.share, text);
  }
  for (const function_share& one : functions) {
    line(one.share * group.running, "runs in " + shown_place(one.function));
  }
}

void print_markers(const std::vector<suggested_marker>& markers, std::ostream& out) {
  if (markers.empty()) return;
  out << '\n'
      << fitted_sentences(
             out,
             std::string(
                 "To record times per batch, add these lines, where i is the batch's number") +
                 (markers.front().sure ? "" : " (their places are a guess)") +
                 ". If a line contains the head of a loop, first put the call on a line of its own "
                 "in the loop's body.")
      << '\n';
  for (const suggested_marker& marker : markers) {
    out << "  " << printable_line(marker.at.file) << ':' << marker.at.line << ' '
        << (marker.after ? "after" : "before") << " this line"
        << (is_lambda(marker.at) ? ", inside the lambda: " : ": ") << marker.text << '\n';
  }
}

/// Whether the run has the log of a consumer, so that the program already has markers for batches.
/// Compact logs may contain one.
bool has_batches(const std::string& dir) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(dir, error)) {
    const std::string name = entry.path().filename().string();
    if (name.find("_main_pid_") != std::string::npos) return true;
    if (name.rfind(".lotus_compact_", 0) == 0) return true;
  }
  return false;
}

void print_text(const thread_samples& samples, const threads_result& result, std::ostream& out) {
  constexpr std::size_t max_groups = 6;
  if (!result.headline.empty()) out << fitted_sentences(out, result.headline + '.') << "\n\n";
  print_summary(result.groups, out);
  std::size_t shown = 0;
  for (const thread_activity& group : result.groups) {
    if (shown++ < max_groups) print_group(group, result.groups, out);
  }
  print_markers(result.markers, out);
  out << '\n';
  if (samples.interval_ns == 0) {
    out << fitted_sentences(
               out,
               "The functions in which threads run are unknown, because the kernel did not permit "
               "perf_event_open. The shares come from the kernel (/proc/PID/task/TID/schedstat).")
        << '\n';
  }
  constexpr double much_too_late_s = 0.003;
  if (samples.late_s >= much_too_late_s) {
    out << fitted_sentences(
               out, "The machine was busy, so wait samples were taken " +
                        std::to_string(std::lround(1e3 * samples.late_s)) +
                        " ms late on average. Therefore the shares of short waits are too high.")
        << '\n';
  }
  std::string how =
      "Samples of thread states: " + std::to_string(std::lround(samples.wait_samples_per_s)) +
      " per second, over all threads";
  if (samples.interval_ns != 0) {
    how += ". Samples of running functions: " +
           std::to_string(std::lround(1e9 / static_cast<double>(samples.interval_ns))) +
           " per second of CPU time";
  }
  char cost[32];
  std::snprintf(cost, sizeof cost, "%.2f", 100 * samples.cost);
  out << fitted_sentences(out, how + ". The sampling itself used " + cost + " % of one CPU.")
      << '\n';
}

}  // namespace

int run_threads(const threads_options& options, std::ostream& out, std::ostream& err) {
  diagnostic_log diagnostics(err, options.quiet);
  const thread_samples samples = read_thread_samples(options.dir, diagnostics);
  const named_stacks stacks(samples);
  threads_result result;
  result.groups = activity_of(samples, stacks);
  result.headline = headline_of(result.groups);
  if (!has_batches(options.dir)) {
    result.markers = suggested_markers(samples, stacks, result.groups);
  }
  if (options.json) {
    print_json(samples, result, out);
  } else {
    print_text(samples, result, out);
  }
  return exit_fine;
}

}  // namespace lotus::tool
