#include "report.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <ostream>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "diagnose.hpp"
#include "diagnostics.hpp"
#include "distribution.hpp"
#include "errors.hpp"
#include "log_files.hpp"
#include "names.hpp"
#include "output_file.hpp"
#include "report_assets.hpp"
#include "report_hardware.hpp"
#include "run_model.hpp"
#include "samples.hpp"
#include "text.hpp"
#include "timeline_data.hpp"
#include "tracks.hpp"
#include "worker_time.hpp"

namespace lotus::tool {
namespace {

constexpr std::size_t curve_points = 500;
constexpr std::size_t histogram_bins = 20;

/// How many durations lie in each half decade from 100 ns to 1000 s; what is outside counts in
/// the first and the last.
std::string histogram_json(const std::vector<std::int64_t>& durations_ns) {
  std::size_t bins[histogram_bins] = {};
  for (const std::int64_t ns : durations_ns) {
    const double place = 2 * (std::log10(static_cast<double>(std::max<std::int64_t>(ns, 1))) - 2);
    ++bins[static_cast<std::size_t>(std::clamp(place, 0.0, histogram_bins - 1.0))];
  }
  std::string text = "[";
  for (const std::size_t n : bins) text += (text.size() > 1 ? "," : "") + std::to_string(n);
  return text + ']';
}

/// The sorted values; of very many, evenly spread ones with both ends.
std::string curve_json(std::vector<std::int64_t> values) {
  std::sort(values.begin(), values.end());
  const std::size_t n = std::min(values.size(), curve_points);
  std::string text = "[";
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t at = n < 2 ? 0 : i * (values.size() - 1) / (n - 1);
    text += (i > 0 ? "," : "") + std::to_string(values[at]);
  }
  return text + ']';
}

std::string op_json(op_samples& op) {
  const std::string histogram = histogram_json(op.durations_ns);
  const double below_10ms = share_below(op.durations_ns, 10'000'000);
  const double below_100us = share_below(op.durations_ns, 100'000);
  const distribution d = describe(op.durations_ns);
  return R"({"name":)" + json_string(op.name) + R"(,"count":)" + std::to_string(d.count) +
         R"(,"mean_ns":)" + json_number(d.mean_ns) + R"(,"p50_ns":)" + json_number(d.p50_ns) +
         R"(,"p90_ns":)" + json_number(d.p90_ns) + R"(,"p99_ns":)" + json_number(d.p99_ns) +
         R"(,"max_ns":)" + std::to_string(d.max_ns) + R"(,"total_ns":)" +
         std::to_string(d.total_ns) + R"(,"self_ns":)" + std::to_string(op.self_ns) +
         R"(,"below_10ms":)" + json_number(below_10ms) + R"(,"below_100us":)" +
         json_number(below_100us) + R"(,"histogram":)" + histogram + '}';
}

std::string box_json(std::vector<std::int64_t> values) {
  const distribution d = describe(values);
  return R"({"count":)" + std::to_string(d.count) + R"(,"mean_ns":)" + json_number(d.mean_ns) +
         R"(,"std_ns":)" + json_number(d.std_ns) + R"(,"min_ns":)" + std::to_string(d.min_ns) +
         R"(,"p25_ns":)" + json_number(d.p25_ns) + R"(,"p50_ns":)" + json_number(d.p50_ns) +
         R"(,"p75_ns":)" + json_number(d.p75_ns) + R"(,"max_ns":)" + std::to_string(d.max_ns) + '}';
}

/// Everything the page shows of one run; empty when its logs hold nothing usable.
std::string run_json(const run_files& run, const std::string& name, std::size_t skip_batches,
                     name_table& names, diagnostics& said) {
  run_samples samples = collect_samples(run, said);
  if (samples.empty()) return {};
  std::uint64_t operations = 0;
  std::string ops;
  for (op_samples& op : samples.ops) {
    operations += op.durations_ns.size();
    ops += (ops.empty() ? "\n" : ",\n") + op_json(op);
  }
  std::string verdict = "null";
  std::string no_verdict;
  diagnostics silent = diagnostics::silenced();  // what is odd about the logs was said above
  try {
    verdict = diagnosis_json(diagnose_run(run, skip_batches, silent));
  } catch (const input_error& error) {
    no_verdict = error.what();
  }
  const run_batches& batches = samples.batches;
  const std::vector<bool> counted = counted_batches(batches, skip_batches);
  const auto values = [&](quantity wanted) { return values_of(batches, wanted, skip_batches); };
  return R"({"name":)" + json_string(name) + R"(,"dir":)" + json_string(run.dir) +
         R"(,"batch_count":)" + std::to_string(std::count(counted.begin(), counted.end(), true)) +
         R"(,"verdict":)" + verdict + R"(,"no_verdict":)" + json_string(no_verdict) +
         R"(,"ops":[)" + ops + "],\n\"preprocess\":" + box_json(values(quantity::preprocess)) +
         ",\n\"waits_ns\":" + curve_json(values(quantity::wait)) +
         ",\n\"delays_ns\":" + curve_json(values(quantity::delay)) + ",\n\"timeline\":" +
         timeline_json(run, batches, operations, samples.first_ns, samples.last_ns, names) + '}';
}

/// Writes the page with every @KEY@ replaced.
void write_page(output_file& out, std::string_view data) {
  const std::pair<std::string_view, std::string_view> parts[] = {{"@STYLE@", report_style},
                                                                 {"@DATA@", data},
                                                                 {"@CHART@", report_chart_library},
                                                                 {"@SCRIPT@", report_script}};
  std::string_view rest = report_page;
  for (const auto& [key, text] : parts) {
    const std::size_t at = rest.find(key);
    out.write(rest.substr(0, at));
    out.write(text);
    rest.remove_prefix(at + key.size());
  }
  out.write(rest);
}

}  // namespace

std::string script_safe(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    // U+2028 and U+2029, which end a line for JavaScript: E2 80 A8 and E2 80 A9.
    const bool line_end = json.compare(i, 2, "\xE2\x80") == 0 && i + 2 < json.size() &&
                          (json[i + 2] == '\xA8' || json[i + 2] == '\xA9');
    if (line_end) {
      out += json[i + 2] == '\xA8' ? "\\u2028" : "\\u2029";
      i += 2;
    } else if (c == '<') {
      out += "\\u003c";
    } else if (c == '>') {
      out += "\\u003e";
    } else if (c == '&') {
      out += "\\u0026";
    } else {
      out += c;
    }
  }
  return out;
}

int run_report(const report_options& options, std::ostream& out, std::ostream& err) {
  diagnostics said(err, options.quiet);
  name_table names;
  hardware_data hardware;
  std::string runs;
  std::set<std::string> titles;
  std::vector<std::string> tables = options.hardware.counters;
  tables.insert(tables.end(), {options.hardware.mapping, options.hardware.elapsed});
  for (const std::string& dir : options.dirs) {
    const std::vector<run_files> found = find_runs(dir, options.prefix, said, 4);
    refuse_input_as_output(options.output, found, tables, options.prefix);
    for (const run_files& run : found) {
      std::string title = run_title(run.dir, dir);
      if (!titles.insert(title).second) title = run.dir;
      const std::string text = run_json(run, title, options.skip_batches, names, said);
      if (text.empty()) {
        said.warning(run.dir + ": nothing usable in its logs, left out");
        continue;
      }
      runs += (runs.empty() ? "\n" : ",\n") + text;
      hardware.add_samples_beside(run, title);
    }
  }
  const int status = said.finish(options.strict);
  if (status != exit_fine) return status;
  if (runs.empty()) throw input_error("nothing usable in the logs");
  if (!options.hardware.mapping.empty()) {
    map_attribute_options wanted = options.hardware;
    wanted.prefix = options.prefix;
    if (wanted.elapsed.empty()) wanted.traces = options.dirs;
    hardware.add_mapping(wanted);
  }
  std::string data =
      R"({"runs":[)" + runs + "],\n\"hardware\":" + hardware.json() + ",\n\"op_names\":[";
  for (std::uint32_t n = 0; n < names.size(); ++n) {
    data += (n == 0 ? "" : ",") + json_string(names.name(n));
  }
  output_file file(options.output, out);
  write_page(file, script_safe(data + "]}"));
  file.commit();
  return exit_fine;
}

}  // namespace lotus::tool
