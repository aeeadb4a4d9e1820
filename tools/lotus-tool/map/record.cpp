#include "map/record.hpp"

#include <ostream>
#include <string>

#include "diagnostics.hpp"
#include "errors.hpp"
#include "map/child_process.hpp"
#include "map/sample_recorder.hpp"

namespace lotus::tool {
int run_map_record(const map_record_options& options, std::ostream& err) {
  if (options.program.empty()) throw usage_error("map record: give the program behind --");
  if (!(options.rate_hz >= 1 && options.rate_hz <= 100000)) {
    throw usage_error("--rate must be between 1 and 100000 Hz");
  }
  diagnostics said(err, options.quiet);
  command what;
  what.arguments = options.program;
  child_process child(what);
  sample_recorder recorder(child.pid(), options.rate_hz, options.output);
  child.go();
  constexpr int wait_ms = 100;
  while (!child.ended(0)) recorder.work(wait_ms);
  const std::string path = recorder.finish();
  if (!recorder.saw_logs()) {
    said.warning(
        "the program has recorded nothing, is LOTUS_LOG_FILE=run/lotustrace_log missing? "
        "The samples are in " +
        path);
  } else {
    said.note("samples: " + path +
              (recorder.with_kernel() ? "" : " (user code only: kernel.perf_event_paranoid is 2)") +
              "; next: lotus-tool map join " + recorder.logs() +
              (options.output.empty() ? "" : " --samples " + path));
  }
  return child.state().status;
}

}  // namespace lotus::tool
