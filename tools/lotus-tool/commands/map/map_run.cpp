#include "commands/map/map_run.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <string_view>
#include <system_error>

#include "base/child_process.hpp"
#include "base/diagnostics.hpp"
#include "base/errors.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"
#include "commands/map/collect/probe_runner.hpp"
#include "mapping/read_reports.hpp"

namespace lotus::tool {
namespace {

namespace fs = std::filesystem;

void make_folder(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) throw input_error(path + ": cannot be created: " + error.message());
}

/// Creates an empty folder and returns its path. Since the folder is empty, a report of an earlier
/// run cannot be mistaken for a new one.
std::string fresh_folder(const std::string& wanted) {
  std::error_code ignored;
  std::string path = wanted;
  for (int i = 2; fs::exists(path, ignored) && !fs::is_empty(path, ignored); ++i) {
    path = wanted + '.' + std::to_string(i);
  }
  make_folder(path);
  return path;
}

/// Removes empty files of a folder, its empty subfolders, and the folder itself if it is empty.
void remove_what_is_empty(const fs::path& folder) {
  std::error_code ignored;
  std::vector<fs::path> inner;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    inner.push_back(at->path());
  }
  for (const fs::path& path : inner) {
    const fs::file_status what = fs::symlink_status(path, ignored);
    if (fs::is_directory(what)) remove_what_is_empty(path);
    if (fs::is_regular_file(what) && fs::file_size(path, ignored) == 0) fs::remove(path, ignored);
  }
  fs::remove(folder, ignored);  // fails if the folder is not empty, which is intended
}

/// Returns the folder for the reports; for the output "mapping_funcs.json" it is
/// "mapping_funcs_reports".
std::string reports_folder(const map_run_options& options) {
  if (!options.reports.empty()) return fresh_folder(options.reports);
  const std::string output =
      options.output.empty() || options.output == "-" ? "mapping_funcs" : options.output;
  const fs::path path(output);
  if (path.has_parent_path() && !fs::is_directory(path.parent_path())) {
    throw input_error(output + ": cannot be written: there is no directory " +
                      path.parent_path().string());
  }
  return fresh_folder((path.parent_path() / (path.stem().string() + "_reports")).string());
}

/// Converts an operation's name to a folder name, which decode_name() can convert back.
std::string folder_name(const std::string& op) {
  constexpr std::string_view hex = "0123456789ABCDEF";
  std::string name;
  for (const char c : op) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '_' || c == '-' || (c == '.' && !name.empty());
    if (plain) {
      name += c;
    } else {
      name += {'%', hex[byte >> 4U], hex[byte & 15U]};
    }
  }
  return name;
}

bool holds_report(const std::string& folder) {
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (is_report_name(at->path().filename().native())) return true;
  }
  return false;
}

bool wanted(const std::string& op, const std::vector<std::string>& ops) {
  return ops.empty() || std::find(ops.begin(), ops.end(), op) != ops.end();
}

/// Plans how often to run the probe program under the collector, and runs it.
class launches {
 public:
  launches(const map_run_options& options, const collector_kind& kind, std::ostream& err)
      : options_(options), kind_(kind), err_(err), runner_(kind, err) {
    rate_hz_ = rate_used(kind, options.rate_hz);
    report_rate();
    runs_ = options.runs;
    if (runs_ == 0) {
      runs_ = rate_hz_ > 0 ? runs_needed(options.confidence, static_cast<double>(options.span_ns),
                                         1e9 / rate_hz_)
                           : 1;
    }
    folder_ = reports_folder(options);
  }
  launches(const launches&) = delete;
  launches& operator=(const launches&) = delete;
  /// Removes folders that are still empty, so that no folder is left if nothing was collected.
  ~launches() { remove_what_is_empty(folder_); }

  void all() {
    const std::vector<std::string> ops = operations();
    if (!kind_.one_operation_per_launch) {
      const std::string op = options_.ops.size() == 1 ? options_.ops[0] : "";
      for (std::uint64_t run = 1; run <= runs_; ++run) run_probe_once(op, run, folder_);
      return;
    }
    for (const std::string& op : ops) {
      for (std::uint64_t run = 1; run <= runs_; ++run) {
        run_probe_once(op, run, folder_ + '/' + folder_name(op));
      }
    }
  }

  const std::string& folder() const noexcept { return folder_; }

 private:
  void report_rate() const {
    const double asked_hz = options_.rate_hz;
    // A relative tolerance is needed, because a rate such as 1000 / 3 is not exact in binary.
    constexpr double same = 1e-9;
    if (asked_hz <= 0 || std::abs(rate_hz_ - asked_hz) <= same * asked_hz) return;
    diagnostic_log(err_, options_.quiet)
        .warning("--rate " + json_number(asked_hz) + ": " + kind_.name +
                 (rate_hz_ > 0 ? " takes a sample every " + interval_text(rate_hz_, 1e3) + " ms"
                               : " takes no samples"));
  }

  /// Returns the operations to collect. The list is empty if the user chose no operation and one
  /// launch covers all operations.
  std::vector<std::string> operations() {
    if (options_.ops.empty() && !kind_.one_operation_per_launch) return {};
    const std::string folder = folder_ + "/.regions";
    make_folder(folder);
    const std::vector<std::string> regions = runner_.regions(options_.program, folder);
    for (const std::string& op : options_.ops) {
      if (std::find(regions.begin(), regions.end(), op) == regions.end()) {
        throw input_error(options_.program[0] + ": entered no LOTUS_MAP_REGION \"" + op + '"');
      }
    }
    const std::vector<std::string>& chosen = options_.ops.empty() ? regions : options_.ops;
    for (const std::string& op : chosen) require_name(op);
    return chosen;
  }

  /// Throws if the library cannot be asked to collect only the operation with this name.
  void require_name(const std::string& op) const {
    constexpr std::size_t max_bytes = 254;  // the library cuts longer names at 255 bytes
    if (!op.empty() && op.size() <= max_bytes) return;
    const std::string region =
        op.empty() ? "a region without a name" : "the region \"" + printable_line(op) + "…\"";
    throw input_error(options_.program[0] + ": " + region +
                      " cannot be picked; give it a name of 1 to " + std::to_string(max_bytes) +
                      " bytes, or pick others with --op");
  }

  /// Runs the probe once. If the collector's raw data is not a report, this data is stored in a
  /// hidden folder next to the report.
  void run_probe_once(const std::string& op, std::uint64_t run, const std::string& folder) {
    if (!options_.quiet) {
      err_ << "note: run " << run << " of " << runs_ << " of "
           << printable_line(options_.program[0]) << " with profiler " << kind_.name << ", "
           << (op.empty() ? "all operations" : "operation " + printable_line(op)) << std::endl;
    }
    probe_launch launch;
    launch.program = options_.program;
    launch.rate_hz = rate_hz_;
    launch.op = op;
    const std::string number = std::to_string(run);
    launch.folder = folder + (kind_.one_operation_per_launch ? "/.raw_" : "/") + number;
    launch.report = folder + '/' + number + ".csv";
    make_folder(launch.folder);
    runner_.run(launch);
    require_reports(launch);
  }

  /// Throws if a launch has created no report, because further launches would not do so either.
  void require_reports(const probe_launch& launch) const {
    if (kind_.one_operation_per_launch || holds_report(launch.folder)) return;
    std::error_code ignored;
    fs::remove_all(launch.folder, ignored);
    throw input_error(launch.program[0] + ": nothing was collected" +
                      (runner_.has_reported() ? "; the messages above say why"
                                              : "; it must enter a LOTUS_MAP_REGION"));
  }

  const map_run_options& options_;
  const collector_kind& kind_;
  std::ostream& err_;
  probe_runner runner_;
  double rate_hz_ = 0;
  std::uint64_t runs_ = 1;
  std::string folder_;
};

void check(const map_run_options& options) {
  if (options.program.empty()) throw usage_error("map run: put the probe program after --");
  if (!(options.confidence > 0 && options.confidence < 1)) {
    throw usage_error("--confidence must be between 0 and 1");
  }
  if (options.span_ns <= 0) throw usage_error("--span must be longer than 0");
}

}  // namespace

std::uint64_t runs_needed(double confidence, double span_ns, double interval_ns) {
  if (span_ns >= interval_ns) return 1;
  constexpr double tolerance = 1.05;
  const double chance_to_miss = tolerance * (1 - confidence);
  const double runs = std::log(chance_to_miss) / std::log(1 - span_ns / interval_ns);
  return static_cast<std::uint64_t>(std::max(1.0, std::ceil(runs)));
}

int run_map_run(const map_run_options& options, std::ostream& out, std::ostream& err) {
  check(options);
  const collector_kind& kind = find_collector_kind(options.collector);
  diagnostic_log diagnostics(err, options.quiet);
  try {
    launches work(options, kind, err);
    work.all();
    mapping_builder builder;
    const folder_names names =
        kind.one_operation_per_launch ? folder_names::operations : folder_names::runs;
    if (add_reports(work.folder(), names, builder, diagnostics) == 0) {
      throw input_error(options.program[0] +
                        ": nothing was collected; it must enter a LOTUS_MAP_REGION");
    }
    mapping result = builder.build();
    for (auto at = result.ops.begin(); at != result.ops.end();) {
      at = wanted(at->first, options.ops) ? std::next(at) : result.ops.erase(at);
    }
    for (const auto& [op, use] : result.ops) {
      if (use.functions.empty()) {
        diagnostics.note(op + ": no sample in this operation; raise --rate or --runs");
      }
    }
    diagnostics.note("the profiler's reports are in " + work.folder());
    output_mapping(result, options.output, options.print, out);
  } catch (const interrupted& stop) {
    end_by_signal(stop.signal);
  }
  return exit_fine;
}

}  // namespace lotus::tool
