#include "commands/export/export.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "base/child_process.hpp"
#include "base/diagnostics.hpp"
#include "base/errors.hpp"
#include "base/files/output_file.hpp"
#include "commands/export/background_sink.hpp"
#include "commands/export/csv_sink.hpp"
#include "commands/export/parquet_sink.hpp"
#include "commands/export/pstats.hpp"
#include "commands/export/row_sink.hpp"
#include "commands/export/tables.hpp"
#include "log/folder/log_files.hpp"
#include "model/calls/call_profile.hpp"
#include "model/run_data.hpp"
#ifdef LOTUS_TOOL_SQLITE
  #include "commands/export/sqlite_sink.hpp"
#endif
#include "threads/analysis/collapsed.hpp"
#include "threads/analysis/named_stacks.hpp"
#include "threads/analysis/pprof.hpp"
#include "threads/analysis/thread_activity.hpp"
#include "threads/data/thread_samples.hpp"
#include "waits/data/wait_files.hpp"

namespace lotus::tool {
namespace {

constexpr run_parts with_operations{false, false, true};

void export_pstats(const export_options& options, const std::vector<run_files>& runs,
                   diagnostic_log& diagnostics, std::ostream& out) {
  if (runs.size() > 1) {
    throw input_error(options.dir + ": holds several runs, such as " + runs[0].dir + " and " +
                      runs[1].dir + "; name one of them");
  }
  const run_data run = read_run(runs.front(), with_operations, diagnostics);
  if (run.operations == 0 && run.aggregated.empty())
    throw input_error(options.dir + ": no operations in its logs");
  output_file file(options.output, out);
  file.write(pstats_of(profile_calls(run), run.names, run.aggregated));
  file.commit();
}

void export_threads(const export_options& options, diagnostic_log& diagnostics, std::ostream& out) {
  const thread_samples samples = read_thread_samples(options.dir, diagnostics);
  const named_stacks stacks(samples);
  const std::vector<thread_activity> groups = activity_of(samples, stacks);
  const bool is_pprof = options.format == export_format::pprof;
  output_file file(options.output, out, is_pprof);
  file.write(is_pprof ? pprof_of(samples, stacks, groups)
                      : collapsed_stacks(samples, stacks, groups));
  file.commit();
}

std::unique_ptr<row_sink> sink_for(const export_options& options) {
#ifdef LOTUS_TOOL_SQLITE
  if (options.format == export_format::sqlite) {
    return std::make_unique<background_sink>(
        std::make_unique<sqlite_sink>(options.output, exported_tables()));
  }
#endif
  if (options.format == export_format::parquet) {
    return std::make_unique<parquet_sink>(options.output, exported_tables());
  }
  return std::make_unique<csv_sink>(options.output, exported_tables(), csv_texts::guarded);
}

bool has_wait_samples(const run_files& run) {
  diagnostic_log silent = diagnostic_log::silenced();  // join_waits() prints the messages later
  return !read_waits(run, silent).empty();
}

void export_tables(const export_options& options, const std::vector<run_files>& runs,
                   diagnostic_log& diagnostics) {
  const std::unique_ptr<row_sink> sink = sink_for(options);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    // The times of operations are needed only to scale samples of waits. With a million names, they
    // would take half of the memory.
    const run_data run = read_run(runs[i], {has_wait_samples(runs[i]), false, true}, diagnostics);
    if (run.empty() && run.aggregated.empty()) {
      diagnostics.warning(runs[i].dir + ": ignored: its logs contain nothing usable");
      continue;
    }
    write_tables(static_cast<std::int64_t>(i), run, *sink, diagnostics);
  }
  sink->commit();
}

}  // namespace

int run_export(const export_options& options, std::ostream& out, std::ostream& err) {
  const bool is_of_threads =
      options.format == export_format::collapsed || options.format == export_format::pprof;
  const bool is_table = !is_of_threads && options.format != export_format::pstats;
  if (options.output == "-" && is_table) {
    throw usage_error(
        "-o: tables cannot be written to standard output (-); only pstats, collapsed and pprof "
        "can");
  }
  diagnostic_log diagnostics(err, options.quiet);
  if (is_of_threads) {
    export_threads(options, diagnostics, out);
    return diagnostics.finish(options.strict);
  }
  const std::vector<run_files> runs = find_runs(options.dir, options.prefix, diagnostics);
  refuse_input_as_output(options.output, runs, {}, options.prefix);
  if (options.format == export_format::pstats) {
    export_pstats(options, runs, diagnostics, out);
  } else {
    try {
      export_tables(options, runs, diagnostics);
    } catch (const interrupted& stop) {
      end_by_signal(stop.signal);
    }
  }
  return diagnostics.finish(options.strict);
}

}  // namespace lotus::tool
