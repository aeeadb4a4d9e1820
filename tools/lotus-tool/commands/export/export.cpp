#include "commands/export/export.hpp"

#include <algorithm>
#include <cstddef>
#include <exception>
#include <memory>
#include <string_view>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "accelerator/ranks.hpp"
#include "base/block_queue.hpp"
#include "base/child_process.hpp"
#include "base/diagnostics.hpp"
#include "base/errors.hpp"
#include "base/files/output_file.hpp"
#include "commands/export/pstats.hpp"
#include "commands/export/tables.hpp"
#include "model/calls/call_profile.hpp"
#include "model/run_data.hpp"
#include "threads/analysis/named_stacks.hpp"
#include "threads/analysis/sample_times.hpp"
#include "threads/analysis/thread_activity.hpp"
#include "threads/data/thread_samples.hpp"
#include "waits/data/wait_files.hpp"

namespace lotus::tool {
namespace {

// A block of this many rows fits into the L2 cache. Writing it takes much longer than waking the
// writer thread for it.
constexpr std::size_t block_rows = 512;
constexpr std::size_t usual_text_bytes = std::size_t{64} << 10U;

/// Copies rows and passes them to another sink on a second thread, so that reading a run and
/// writing its tables use two CPUs. If the other sink throws, row() or commit() rethrows.
class background_sink : public row_sink {
 public:
  /// @param sink  is used by one thread at a time, but not always by the same one.
  explicit background_sink(std::unique_ptr<row_sink> sink)
      : sink_(std::move(sink)), writer_([this] { write_blocks(); }) {}
  ~background_sink() override { end(); }

  void row(std::size_t table, const std::vector<cell>& cells) override {
    std::size_t text_bytes = 0;
    for (const cell& c : cells) {
      if (const auto* text = std::get_if<std::string_view>(&c)) text_bytes += text->size();
    }
    const bool full = filling_.used == block_rows ||
                      filling_.texts.size() + text_bytes > filling_.texts.capacity();
    if (full && filling_.used > 0) pass_on();
    if (filling_.used == 0) filling_.texts.reserve(std::max(text_bytes, usual_text_bytes));
    if (filling_.used == filling_.rows.size()) filling_.rows.emplace_back();
    table_row& to = filling_.rows[filling_.used++];
    to.table = table;
    to.cells = cells;
    for (cell& c : to.cells) {
      auto* const text = std::get_if<std::string_view>(&c);
      if (text == nullptr) continue;
      const std::size_t at = filling_.texts.size();
      filling_.texts.append(*text);
      *text = std::string_view(filling_.texts).substr(at);
    }
  }

  void commit() override {
    pass_on();
    end();
    blocks_.rethrow_failure();
    sink_->commit();
  }

 private:
  struct table_row {
    std::size_t table;
    std::vector<cell> cells;
  };
  /// Some rows; only the first `used` are valid. The others keep their memory for later rows.
  struct block {
    std::vector<table_row> rows;
    std::size_t used = 0;
    // The texts of all cells. Not reallocated while `used` > 0, because the cells refer to it.
    std::string texts;
  };

  void write_blocks() {
    try {
      while (const block* const full = blocks_.next()) {
        for (std::size_t i = 0; i < full->used; ++i) {
          sink_->row(full->rows[i].table, full->rows[i].cells);
        }
        blocks_.done();
      }
    } catch (...) {
      blocks_.fail(std::current_exception());
    }
  }

  void pass_on() {
    filling_ = blocks_.push(std::move(filling_));
    filling_.used = 0;
    filling_.texts.clear();
  }

  void end() {
    if (!writer_.joinable()) return;
    blocks_.close();
    writer_.join();
  }

  std::unique_ptr<row_sink> sink_;
  block_queue<block> blocks_{4};
  block filling_;
  std::thread writer_;
};

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
  output_file file(options.output, out);
  file.write(collapsed_stacks(samples, stacks, groups));
  file.commit();
}

std::unique_ptr<row_sink> sink_for(const export_options& options) {
#ifdef LOTUS_TOOL_SQLITE
  if (options.format == export_format::sqlite) {
    return std::make_unique<background_sink>(make_sqlite_sink(options.output, exported_tables()));
  }
#endif
  if (options.format == export_format::parquet) {
    return make_parquet_sink(options.output, exported_tables());
  }
  return make_csv_sink(options.output, exported_tables(), csv_texts::guarded);
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
    const run_data run =
        read_run_and_waits(runs[i], {has_wait_samples(runs[i]), false, true}, diagnostics);
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
  const bool is_of_threads = options.format == export_format::collapsed;
  const bool is_table = !is_of_threads && options.format != export_format::pstats;
  if (options.output == "-" && is_table) {
    throw usage_error(
        "-o: tables cannot be written to standard output (-); only pstats and collapsed can");
  }
  if (is_of_threads && part_to_read()) {
    throw usage_error(
        "--format collapsed: always of the whole run, because samples of threads are stored as "
        "sums; leave out" +
        part_options());
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
