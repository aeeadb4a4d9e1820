#include "commands/top/metrics/openmetrics.hpp"

#include <algorithm>

#include "base/printable.hpp"
#include "describe/description.hpp"

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

/// Returns the verdict if it is so new that it describes about the same time as the other metrics.
std::optional<verdict> fresh_verdict(const live_run& run) {
  constexpr std::int64_t old_ns = 60'000'000'000;
  const bool fresh = run.now.batches >= min_batches && run.looked_ns - run.verdict_ns < old_ns;
  return fresh ? run.verdict.is : std::nullopt;
}

std::string head_of(const std::string& name, const std::string& help) {
  return "# HELP " + name + ' ' + help + "\n# TYPE " + name + " gauge\n";
}

}  // namespace

std::string openmetrics_text(const std::vector<live_run>& runs) {
  std::string text;
  for (const field& gauge : description_of(static_cast<const live_run*>(nullptr)).fields()) {
    if (gauge.key.empty()) continue;
    const std::string name(gauge.key);
    text += head_of(name, gauge.meaning);
    for (const live_run& run : runs) {
      const std::string value = exact_text(gauge.value(&run));
      if (value.empty()) continue;
      text.append(name).append("{").append(labels_of(run)).append("} ").append(value).append("\n");
    }
  }
  text += head_of("lotus_verdict", "1 for what limits the run, 0 for the other verdicts.");
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
