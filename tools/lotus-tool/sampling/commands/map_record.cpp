#include "sampling/commands/map_record.hpp"

#include <exception>

#include "base/child_process.hpp"
#include "base/diagnostics.hpp"
#include "base/errors.hpp"
#include "log/folder/starts.hpp"
#include "sampling/record/sample_recorder.hpp"

namespace lotus::tool {
namespace {

/// Samples the program until it ends. Returns the path of the samples. If an error occurs, prints a
/// warning, waits for the end of the program and returns "": the error must not affect the program.
std::string sample_until_end(child_process& child, sample_recorder& recorder,
                             diagnostic_log& diagnostics) {
  constexpr int wait_ms = 100;
  try {
    while (!child.ended(0)) recorder.work(wait_ms);
    return recorder.finish();
  } catch (const std::exception& failure) {
    diagnostics.warning(std::string(failure.what()) + "; the rest of the samples is lost");
  }
  recorder.stop();
  child.ended(-1);
  return {};
}

void report_what_next(const map_record_options& options, const sample_recorder& recorder,
                      const std::string& path, diagnostic_log& diagnostics) {
  if (!recorder.saw_logs()) {
    diagnostics.warning(
        "the program has recorded nothing: it contains no markers such as LOTUS_SCOPE, or none "
        "was reached. The samples are in " +
        path);
    return;
  }
  diagnostics.note(
      "the samples are in " + path +
      (recorder.with_kernel() ? "" : " (user code only: kernel.perf_event_paranoid is 2)") +
      "; next: lotus-tool map join " + recorder.logs() +
      (options.output.empty() ? "" : " --samples " + path));
}

}  // namespace

int run_map_record(const map_record_options& options, std::ostream& err) {
  if (options.program.empty()) throw usage_error("map record: put the program after --");
  diagnostic_log diagnostics(err, options.quiet);
  command what;
  what.arguments = options.program;
  what.environment = place_for_logs({}).environment;
  child_process child(what);
  sample_recorder recorder(child.pid(), options.rate_hz, options.output);
  child.go();
  const std::string path = sample_until_end(child, recorder, diagnostics);
  if (!path.empty()) report_what_next(options, recorder, path, diagnostics);
  return child.state().status;
}

}  // namespace lotus::tool
