#include "viz.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <ostream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "chrome_sink.hpp"
#include "compat_viz.hpp"
#include "diagnostics.hpp"
#include "draw.hpp"
#include "errors.hpp"
#include "log_files.hpp"
#include "names.hpp"
#include "output_file.hpp"
#include "run_model.hpp"
#include "tracks.hpp"

namespace lotus::tool {
namespace {

/// An output that is a log, or would be taken for one, would destroy or spoil the input.
void refuse_log_as_output(const viz_options& options, const std::vector<run_files>& runs) {
  if (options.output == "-") return;
  std::error_code ignored;
  for (const run_files& run : runs) {
    for (const log_file& file : run.files) {
      if (std::filesystem::equivalent(file.path, options.output, ignored)) {
        throw usage_error(options.output + ": is a log of this run; choose another output");
      }
    }
  }
  const std::string name = std::filesystem::path(options.output).filename().string();
  if (is_log_name(name, options.prefix)) {
    throw usage_error(options.output +
                      ": would be taken for a log; choose a name that does not begin with " +
                      options.prefix);
  }
}

int draw_default(const viz_options& options, const std::vector<run_files>& runs, diagnostics& said,
                 std::ostream& out) {
  name_table names;
  std::vector<scanned_run> scanned;
  std::int64_t base_ns = INT64_MAX;
  std::uint64_t flows = 1;
  bool empty = true;
  for (const run_files& run : runs) {
    run_scan scan = scan_batches(run, said);
    empty = empty && scan.empty();
    base_ns = std::min(base_ns, scan.first_ns);
    scanned.push_back({&run, run_batches(std::move(scan.records)), flows});
    flows += scanned.back().batches.all().size();
  }
  const int status = said.finish(options.strict);
  if (status != exit_fine) return status;
  if (empty) throw input_error(options.dir + ": nothing usable in the logs");

  const std::vector<run_tracks> tracks = lay_tracks(runs, options.dir);
  output_file file(options.output, out);
  chrome_sink sink(file, names);
  sink.begin(base_ns);
  std::uint32_t order = 0;
  for (const run_tracks& run : tracks) {
    sink.process(run.pid, run.name, order++);
    for (std::size_t f = 0; f < run.of_file.size(); ++f) {
      sink.thread(run.of_file[f], run.file_name[f], static_cast<std::uint32_t>(f));
    }
  }
  for (std::size_t r = 0; r < scanned.size(); ++r) {
    draw_run(scanned[r], tracks[r], !options.coarse, names, sink);
  }
  sink.finish();
  file.commit();
  return exit_fine;
}

}  // namespace

int run_viz(const viz_options& options, std::ostream& out, std::ostream& err) {
  diagnostics said(err, options.quiet);
  const std::vector<run_files> runs = find_runs(options.dir, options.prefix, said);
  refuse_log_as_output(options, runs);
  return options.compat ? draw_compat(options, runs, said, out)
                        : draw_default(options, runs, said, out);
}

}  // namespace lotus::tool
