#include "commands/top/metrics/openmetrics.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "base/printable.hpp"
#include "base/text.hpp"
#include "findings/verdict.hpp"

namespace lotus::tool {
namespace {

/// Returns a label's value with quotes and escapes, as both Prometheus and OpenMetrics require.
/// Different texts have different values, because two series with the same labels are an error.
std::string quoted_label(std::string_view text) {
  std::string value = "\"";
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t percent = std::min(text.find('%', at), text.size());
    for (const char c : printable_line(text.substr(at, percent - at))) {
      if (c == '"' || c == '\\') value += '\\';
      value += c;
    }
    if (percent < text.size()) value += "%25";
    at = percent + 1;
  }
  return value + '"';
}

std::string labels_of(const live_run& run) {
  std::string text = "run=" + quoted_label(run.dir);
  if (!run.loader.empty()) text += ",loader=" + quoted_label(run.loader);
  // Several consumers may record to one folder. The rank alone does not identify them, because a
  // rank that is restarted is another consumer.
  if (run.main != 0) text += ",consumer=" + quoted_label(run.consumer);
  if (run.main != 0) text += ",log=\"" + std::to_string(run.main) + '"';
  return text;
}

struct gauge {
  const char* name;
  const char* help;
  std::function<std::optional<double>(const live_run&)> value;
};

double seconds(std::int64_t ns) {
  return static_cast<double>(ns) / 1e9;
}

/// Returns the verdict if it is so new that it describes about the same time as the other metrics.
std::optional<verdict> fresh_verdict(const live_run& run) {
  constexpr std::int64_t old_ns = 60'000'000'000;
  const bool fresh = run.now.batches >= min_batches && run.looked_ns - run.verdict_ns < old_ns;
  return fresh ? run.bound : std::nullopt;
}

const std::vector<gauge>& gauges() {
  using run = const live_run&;
  using maybe = std::optional<double>;
  static const std::vector<gauge> all{
      {"lotus_recording", "Whether a process of the run is recording, 1 or 0.",
       [](run r) -> maybe { return r.state() == "running" ? 1 : 0; }},
      {"lotus_window_seconds", "Length of the period that rates and shares are about.",
       [](run r) -> maybe { return r.now.window_s; }},
      {"lotus_batches_per_second", "Batches that the consumer received.",
       [](run r) -> maybe { return r.now.batches_per_s; }},
      {"lotus_wait_ratio", "Share of the consumer's time in which it waited for a batch, 0 to 1.",
       [](run r) -> maybe { return r.now.wait_share; }},
      {"lotus_ready_batches", "Batches that are ready and not yet received.",
       [](run r) -> maybe { return static_cast<double>(r.now.ready); }},
      {"lotus_operations_per_second", "Operations that were recorded.",
       [](run r) -> maybe { return r.now.operations_per_s; }},
      {"lotus_aggregated_calls_per_second", "Operations that were counted instead of recorded.",
       [](run r) -> maybe { return r.now.aggregated_per_s; }},
      {"lotus_last_batch_timestamp_seconds", "When the last batch was received, since the epoch.",
       [](run r) -> maybe {
         return r.last_batch_ns ? maybe(seconds(*r.last_batch_ns)) : std::nullopt;
       }},
      {"lotus_hanging", "Whether a wait or pause is much longer than is usual, 1 or 0.",
       [](run r) -> maybe { return r.hang().empty() ? 0 : 1; }},
      {"lotus_dropped_records", "Records that the run's processes dropped, counted when they end.",
       [](run r) -> maybe { return static_cast<double>(r.records.dropped); }},
      {"lotus_lost_records", "Records that were only in the memory of killed processes.",
       [](run r) -> maybe { return static_cast<double>(r.records.lost); }},
  };
  return all;
}

void write_head(const char* name, const char* help, std::string& to) {
  to += std::string("# HELP ") + name + ' ' + help + "\n# TYPE " + name + " gauge\n";
}

}  // namespace

std::string openmetrics_text(const std::vector<live_run>& runs) {
  std::string text;
  for (const gauge& g : gauges()) {
    write_head(g.name, g.help, text);
    for (const live_run& run : runs) {
      const std::optional<double> value = g.value(run);
      if (!value) continue;
      text += std::string(g.name) + '{' + labels_of(run) + "} " + json_number(*value) + '\n';
    }
  }
  write_head("lotus_verdict", "1 for what limits the run, 0 for the other verdicts.", text);
  for (const live_run& run : runs) {
    const std::optional<verdict> is = fresh_verdict(run);
    for (const verdict_row& v : all_verdicts) {
      text += "lotus_verdict{" + labels_of(run) + ",verdict=" + quoted_label(v.key) + "} " +
              (is == v.is ? "1" : "0") + '\n';
    }
  }
  return text + "# EOF\n";
}

}  // namespace lotus::tool
