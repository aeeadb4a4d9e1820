#include "commands/viz/verdict_tracks.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/diagnostics.hpp"
#include "commands/viz/draw.hpp"
#include "commands/viz/formats/trace_sink.hpp"
#include "findings/diagnosis.hpp"
#include "findings/screen/first_screen.hpp"
#include "log/shown_name.hpp"
#include "model/path/critical_path.hpp"
#include "model/run_data.hpp"
#include "model/tracks.hpp"

namespace lotus::tool {
namespace {

/// Returns the activities on the critical path in order of time; adjacent equal ones are joined.
std::vector<path_activity> activities_in_order(const run_data& run) {
  std::vector<path_activity> activities;
  find_critical_path(run, &activities);
  std::sort(activities.begin(), activities.end(),
            [](const path_activity& a, const path_activity& b) { return a.start_ns < b.start_ns; });
  std::vector<path_activity> joined;
  for (const path_activity& a : activities) {
    if (!joined.empty() && joined.back().end_ns == a.start_ns && joined.back().kind == a.kind &&
        joined.back().name == a.name && joined.back().file == a.file) {
      joined.back().end_ns = a.end_ns;
    } else {
      joined.push_back(a);
    }
  }
  return joined;
}

std::string run_time_with(const shown_advice& advice) {
  return advice.change + ": run time " + advice.now + " -> " + advice.then + " (" + advice.low +
         " to " + advice.high + ")";
}

void draw_headline(const run_data& run, const first_screen& screen, track where, trace_sink& sink) {
  std::vector<std::pair<std::string, std::string>> texts;
  const auto add_list = [&texts](const std::string& name, const std::vector<std::string>& list) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      texts.emplace_back(list.size() == 1 ? name : name + ' ' + std::to_string(i + 1), list[i]);
    }
  };
  if (!screen.why.empty()) texts.emplace_back("reason", screen.why);
  add_list("warning", screen.warnings);
  std::vector<std::string> suggestions;
  suggestions.reserve(screen.advice.size());
  for (const shown_advice& advice : screen.advice) suggestions.push_back(run_time_with(advice));
  add_list("suggestion", suggestions);
  add_list("little or no gain", screen.not_worth);
  slice_event event;
  event.where = where;
  event.category = "verdict";
  event.name = screen.headline;
  event.start_ns = run.first_ns;
  event.duration_ns = run.last_ns - run.first_ns;
  for (const auto& [name, text] : texts) event.texts.push_back({name, text});
  sink.slice(event);
}

}  // namespace

std::optional<run_verdict> find_verdict(const run_data& run) {
  // The messages are discarded, because they were already printed when the run was read.
  diagnostic_log silent = diagnostic_log::silenced();
  const judgement judged = diagnose_run(run, /*skip_batches=*/0, silent);
  if (!judged.found || !judged.found->is) return std::nullopt;
  return run_verdict{first_screen_of(*judged.found, 0), activities_in_order(run)};
}

void draw_verdict(const run_verdict& found, const run_data& run, const run_tracks& tracks,
                  drawing_state& picture) {
  const track verdict{tracks.pid, picture.tids.take(0)};
  picture.sink.process_track(verdict, "verdict", verdict_order(0));
  draw_headline(run, found.screen, verdict, picture.sink);
  const track path{tracks.pid, picture.tids.take(0)};
  picture.sink.process_track(path, "critical path", verdict_order(1));
  for (const path_activity& a : found.path) {
    slice_event event;
    event.where = path;
    event.category = "path";
    std::string name =
        path_title(a.kind, a.name ? shown_name(run.names.name(*a.name)) : std::string());
    // Viewers add up slices of the same name. With the suffix, this slice is not added to those of
    // the operation itself.
    if (a.kind == path_kind::operation) name += " (critical path)";
    event.name = name;
    event.start_ns = a.start_ns;
    event.duration_ns = a.end_ns - a.start_ns;
    if (a.file) event.texts.push_back({"thread", tracks.file_name[a.file->value()]});
    picture.sink.slice(event);
  }
}

}  // namespace lotus::tool
