#include "commands/map/collect/probe_runner.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include "base/errors.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"
#include "mapping/read/table_text.hpp"

namespace lotus::tool {
namespace {

namespace fs = std::filesystem;

using lotus::detail::collector_id;

/// Describes a collector that has the same name in the library and in the option --collector. The
/// exception is VTune: the option calls it "vtune", but the library calls it "itt", because it
/// marks regions for VTune through the interface ITT.
constexpr collector_kind same_name(collector_id collector, const char* program,
                                   double usual_rate_hz, rates possible,
                                   bool one_operation_per_launch,
                                   void (probe_runner::*launch)(const probe_launch&)) {
  return {collector, lotus::detail::collector_names[static_cast<std::size_t>(collector)],
          program,   usual_rate_hz,
          possible,  one_operation_per_launch,
          launch};
}

constexpr std::array kinds{
    same_name(collector_id::builtin, nullptr, 1000, rates::any, false, &probe_runner::run_builtin),
    same_name(collector_id::perf, "perf", 1000, rates::any, true, &probe_runner::run_perf),
    same_name(collector_id::callgrind, "valgrind", 0, rates::only_usual, false,
              &probe_runner::run_callgrind),
    // 100 Hz is the rate of VTune's user-mode sampling. VTune's kernel driver may sample faster,
    // but the driver is not always installed.
    collector_kind{collector_id::itt, "vtune", "vtune", 100, rates::whole_ms, true,
                   &probe_runner::run_vtune},
    same_name(collector_id::uprof, "AMDuProfCLI", 1000, rates::only_usual, true,
              &probe_runner::run_uprof),
};
static_assert(kinds.size() == std::size(lotus::detail::collector_names),
              "each collector of the library can be started");

constexpr const char* log_variable = "LOTUS_LOG_FILE";
/// Value of LOTUS_LOG_FILE for a probe that must not record. The user's value is replaced, because
/// it may be the path of another run's logs.
constexpr const char* no_log = "";

/// Makes a path absolute, because the probe program may change its working directory.
std::string absolute(const std::string& path) {
  return fs::absolute(path).string();
}

/// Returns the folder for temporary files that the environment variables select or, if its path
/// contains a comma, the system's default: perf's option --control does not accept commas.
fs::path comma_free_folder() {
  const fs::path folder = fs::temp_directory_path();
  return folder.native().find(',') == std::string::npos ? folder : fs::path(P_tmpdir);
}

/// A folder for the FIFOs through which perf is controlled. The destructor removes the folder.
class control_fifos {
 public:
  control_fifos() : folder_((comma_free_folder() / "lotus-map-XXXXXX").string()) {
    if (::mkdtemp(folder_.data()) == nullptr || ::mkfifo(path("ctl").c_str(), 0600) != 0 ||
        ::mkfifo(path("ack").c_str(), 0600) != 0) {
      throw input_error(folder_ + ": cannot create a FIFO: " + error_text(errno));
    }
  }
  control_fifos(const control_fifos&) = delete;
  control_fifos& operator=(const control_fifos&) = delete;
  ~control_fifos() {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

  std::string option() const { return "fifo:" + path("ctl") + ',' + path("ack"); }

 private:
  std::string path(const char* name) const { return folder_ + '/' + name; }
  std::string folder_;
};

/// Returns the last line that is not empty, for use in an error message.
std::string last_line(const std::string& text) {
  std::string last;
  text_lines lines(text);
  for (std::string_view line; lines.next(line);) {
    if (!trimmed(line).empty()) last = trimmed(line);
  }
  return last;
}

void append(std::vector<std::string>& to, const std::vector<std::string>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

}  // namespace

std::string collector_names(std::string_view between) {
  return joined(kinds, between, [](const collector_kind& kind) { return kind.name; });
}

const collector_kind& find_collector_kind(const std::string& name) {
  const auto* const at =
      std::find_if(kinds.begin(), kinds.end(), [&](const auto& k) { return name == k.name; });
  if (at == kinds.end()) {
    throw usage_error("--collector " + name + ": not known; it is one of " + collector_names(", "));
  }
  return *at;
}

std::string interval_text(double rate_hz, double unit_hz) {
  return std::to_string(std::llround(unit_hz / rate_hz));
}

/// Returns the value for LOTUS_MAP_RATE; empty if the collector does not sample.
std::string rate_text(double rate_hz) {
  return rate_hz > 0 ? std::to_string(std::max(std::llround(rate_hz), 1LL)) : "";
}

double rate_used(const collector_kind& kind, double asked_hz) {
  if (asked_hz <= 0 || kind.possible == rates::only_usual) return kind.usual_rate_hz;
  if (kind.possible == rates::any) return asked_hz;
  return 1000 / std::clamp(std::round(1000 / asked_hz), 1.0, 1000.0);
}

command probe_runner::probe_command(const probe_launch& launch, bool logged) const {
  command what;
  what.arguments = launch.program;
  what.output = launch.folder + "/.output.txt";
  what.environment = {{"LOTUS_COLLECTOR",
                       lotus::detail::collector_names[static_cast<std::size_t>(kind_.collector)]},
                      {log_variable, logged ? absolute(launch.folder + "/lotustrace_log") : no_log},
                      {"LOTUS_MAP_FOLDER", absolute(launch.folder)},
                      {"LOTUS_MAP_RATE", rate_text(launch.rate_hz)},
                      {"LOTUS_MAP_OP", launch.op}};
  return what;
}

void probe_runner::run(const probe_launch& launch) {
  (this->*kind_.launch)(launch);
}

void probe_runner::run_builtin(const probe_launch& launch) {
  execute(probe_command(launch), launch.program[0]);
}

void probe_runner::run_perf(const probe_launch& launch) {
  const control_fifos fifos;
  const std::string data = launch.folder + "/perf.data";
  command record = probe_command(launch);
  record.arguments = {"perf",
                      "record",
                      "-q",
                      "-D",
                      "-1",
                      "--control",
                      fifos.option(),
                      "-e",
                      "cpu-clock:u",
                      "-c",
                      interval_text(launch.rate_hz, 1e9),
                      "-k",
                      "CLOCK_MONOTONIC",
                      "-o",
                      data,
                      "--"};
  append(record.arguments, launch.program);
  record.environment.emplace_back("LOTUS_PERF_CONTROL", fifos.option());
  execute(record, launch.program[0]);
  command report;
  report.arguments = {"perf", "report", "-i", data,     "--stdio",
                      "-t",   "|",      "-n", "--sort", "dso,symbol"};
  report.output = launch.report;
  execute(report, "perf report");
}

void probe_runner::run_callgrind(const probe_launch& launch) {
  // The probe must not record a log: callgrind would also count the thread that writes the log, and
  // times have little meaning under valgrind.
  command what = probe_command(launch, false);
  // In the path of its output, valgrind replaces texts such as "%p"; "%%" stands for a single '%'.
  std::string folder;
  for (const char c : launch.folder) folder += c == '%' ? std::string("%%") : std::string(1, c);
  what.arguments = {"valgrind",
                    "-q",
                    "--tool=callgrind",
                    "--instr-atstart=no",
                    "--cache-sim=yes",
                    "--branch-sim=yes",
                    "--callgrind-out-file=" + folder + "/callgrind.out.%p"};
  append(what.arguments, launch.program);
  execute(what, launch.program[0]);
}

void probe_runner::run_vtune(const probe_launch& launch) {
  const std::string result = launch.folder + "/result";
  command collect = probe_command(launch);
  collect.arguments = {"vtune", "-collect", "hotspots"};
  // The options for the rate are left out if the rate is the default of VTune, because old versions
  // of VTune do not know these options.
  if (launch.rate_hz != kind_.usual_rate_hz) {
    append(collect.arguments, {"-knob", "sampling-mode=sw", "-knob",
                               "sampling-interval=" + interval_text(launch.rate_hz, 1e3)});
  }
  append(collect.arguments, {"-start-paused", "-result-dir", result, "--"});
  append(collect.arguments, launch.program);
  execute(collect, launch.program[0]);
  command report;
  report.arguments = {"vtune", "-report",        "hotspots",   "-result-dir",
                      result,  "-format",        "csv",        "-csv-delimiter",
                      "comma", "-report-output", launch.report};
  report.output = launch.folder + "/.report_output.txt";
  execute(report, "vtune -report");
}

void probe_runner::run_uprof(const probe_launch& launch) {
  std::string session = launch.folder + "/session";
  command collect = probe_command(launch);
  collect.arguments = {"AMDuProfCLI",    "collect",      "--config", "tbp",
                       "--start-paused", "--output-dir", session};
  append(collect.arguments, launch.program);
  execute(collect, launch.program[0]);
  // uProf creates the data in a subfolder of `session` and chooses the subfolder's name.
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(session, ignored)) {
    if (entry.is_directory() && entry.path().filename().string().rfind("AMDuProf-", 0) == 0) {
      session = entry.path().string();
      break;
    }
  }
  command report;
  report.arguments = {"AMDuProfCLI", "report",   "--input-dir", session, "--report-output",
                      launch.report, "--cutoff", "100",         "-f",    "csv"};
  report.output = launch.folder + "/.report_output.txt";
  execute(report, "AMDuProfCLI report");
}

std::vector<std::string> probe_runner::regions(const std::vector<std::string>& program,
                                               const std::string& folder) {
  const std::string list = folder + "/regions.txt";
  command what;
  what.arguments = program;
  what.output = folder + "/.output.txt";
  what.environment = {
      {"LOTUS_COLLECTOR", "none"}, {log_variable, no_log}, {"LOTUS_MAP_LIST", absolute(list)}};
  execute(what, program[0]);
  std::vector<std::string> names;
  if (std::ifstream in(list); in) {
    for (std::string name; std::getline(in, name);) {
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  }
  if (names.empty()) throw input_error(program[0] + ": entered no LOTUS_MAP_REGION");
  return names;
}

void probe_runner::execute(const command& what, const std::string& who) {
  const exit_state end = run_command(what);
  const std::string output = what.output;
  report_messages(output);
  if (end.status == 0) return;
  const std::string last = last_line(read_text(output));
  throw input_error(
      who + ": ended with status " + std::to_string(end.status) +
      (last.empty() ? " and printed nothing" : ": " + last + "; its whole output is in " + output));
}

void probe_runner::report_messages(const std::string& output) {
  const std::string text = read_text(output);
  text_lines lines(text);
  for (std::string_view line; lines.next(line);) {
    if (line.substr(0, 7) == "lotus: " && reported_.emplace(line).second) {
      err_ << printable_line(line) << '\n';
    }
  }
}

}  // namespace lotus::tool
