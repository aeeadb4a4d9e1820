#include "commands/mcp/mcp_tools.hpp"

#include <algorithm>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/errors.hpp"
#include "base/files/scratch_folder.hpp"
#include "base/text.hpp"
#ifdef LOTUS_TOOL_SQLITE
  #include "commands/mcp/sql_query.hpp"
#endif
#include "findings/verdict.hpp"

namespace lotus::tool {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::size_t max_answer_bytes = 400'000;

#define LOTUS_MCP_FORMAT \
  R"("format":{"enum":["text","json"],"default":"text","description":"text for reading, JSON for calculating"})"
#define LOTUS_MCP_SKIP \
  R"("skip_batches":{"type":"integer","minimum":0,"description":"leave out the first batches of every epoch"})"

#ifdef LOTUS_TOOL_SQLITE
// Nested spans must not be counted twice: self times are summed for all spans, but CPU time only
// for the outermost spans. Ranks are compared with IS, because an unknown rank is NULL.
constexpr const char* threads_query =
    "WITH operations AS (SELECT run, host, rank, pid, tid, name, max(thread) AS thread, "
    "count(*) AS spans, min(start_ns) AS first_ns, max(start_ns + dur_ns) AS last_ns, "
    "sum(self_ns) AS self_ns, sum(CASE WHEN depth = 0 THEN cpu_ns END) AS cpu_ns "
    "FROM spans GROUP BY run, host, rank, pid, tid, name), "
    "done AS (SELECT run, host, rank, pid, tid, count(DISTINCT loader || '/' || epoch || '/' || "
    "batch) AS batches FROM spans GROUP BY run, host, rank, pid, tid) "
    "SELECT o.run, o.host, o.rank, o.pid, o.tid, max(o.thread) AS thread, sum(spans) AS spans, "
    "max(batches) AS batches, min(first_ns) AS first_ns, max(last_ns) AS last_ns, "
    "sum(self_ns) AS operations_ns, sum(cpu_ns) AS cpu_ns, (SELECT name FROM operations l WHERE "
    "l.run = o.run AND l.host IS o.host AND l.rank IS o.rank AND l.pid = o.pid AND l.tid = o.tid "
    "ORDER BY self_ns DESC, name LIMIT 1) AS longest_operation FROM operations o JOIN done d ON "
    "d.run = o.run AND d.host IS o.host AND d.rank IS o.rank AND d.pid = o.pid AND d.tid = o.tid "
    "GROUP BY o.run, o.host, o.rank, o.pid, o.tid ORDER BY operations_ns DESC";
#endif

/// Returns the things that can limit a pipeline, such as "consumer, operation, stage".
std::string limits() {
  std::string text;
  for (const verdict_row& v : all_verdicts) {
    if (!v.kind.empty()) text.append(text.empty() ? "" : ", ").append(v.kind);
  }
  return text;
}

const std::vector<mcp_tool>& tools() {
  static const std::vector<mcp_tool> all{
      {"diagnose", "Find the bottleneck",
       "What limits this recorded data-loading pipeline (" + limits() +
           "), the evidence, and changes to try with predicted run times. Call this first.",
       R"({"type":"object","additionalProperties":false,"properties":{)" LOTUS_MCP_FORMAT
       "," LOTUS_MCP_SKIP
       R"(,"details":{"type":"boolean","description":"text with all checks and numbers"}}})"},
      {"stats", "Show times",
       "How long each operation, stage and batch takes: counts, means, percentiles, totals, CPU "
       "and "
       "blocked time. JSON has every batch and may be too large; use sql then.",
       R"({"type":"object","additionalProperties":false,"properties":{)" LOTUS_MCP_FORMAT
       "," LOTUS_MCP_SKIP
       R"(,"sort":{"enum":["logged","name","count","mean","p50","p90","p99","max","total","self"],"description":"order of operations"},)"
       R"("limit":{"type":"integer","minimum":0,"description":"only the first operations"},)"
       R"("per_worker":{"type":"boolean","description":"also every worker"},)"
       R"("memory":{"type":"boolean","description":"allocations, if they were counted"}}})"},
      {"whatif", "Predict a change",
       "Predicts throughput and run time after changes, by simulation, with 90 % intervals. "
       "Without "
       "arguments: a table of single changes. With target or feed_consumer: what is needed for it.",
       R"({"type":"object","additionalProperties":false,"properties":{)" LOTUS_MCP_FORMAT
       R"(,"workers":{"type":"integer","minimum":1,"description":"number of workers"},)"
       R"("prefetch":{"type":"integer","minimum":1,"description":"prefetch depth: batches per worker that are dispatched and not yet received"},)"
       R"("unordered":{"type":"boolean","description":"the consumer takes batches in any order"},)"
       R"("faster":{"type":"object","additionalProperties":{"type":"number","exclusiveMinimum":0},"description":"operation or stage: how many times as fast"},)"
       R"("without":{"type":"array","items":{"type":"string"},"description":"operations or stages that take no time"},)"
       R"("step":{"type":"number","exclusiveMinimum":0,"description":"the consumer's step takes this many times as long"},)"
       R"("cpus":{"type":"number","exclusiveMinimum":0,"description":"number of CPUs of the simulated machine"},)"
       R"("batch_size":{"type":"number","exclusiveMinimum":0,"description":"batches are this many times as large"},)"
       R"("target":{"type":"number","exclusiveMinimum":0,"description":"batches per second to reach"},)"
       R"("feed_consumer":{"type":"boolean","description":"find what keeps the consumer from waiting"}}})"},
      {"compare", "Compare two runs",
       "What became slower or faster between two runs in subfolders of the served folder, with 95 "
       "% "
       "intervals and causes.",
       R"({"type":"object","additionalProperties":false,"required":["before","after"],"properties":{)" LOTUS_MCP_FORMAT
       "," LOTUS_MCP_SKIP
       R"(,"before":{"type":"string","description":"subfolder with the run before the change"},)"
       R"("after":{"type":"string","description":"subfolder with the run after it"}}})"},
#ifdef LOTUS_TOOL_SQLITE
      {"threads", "List threads",
       "The threads that ran operations, busiest first: process, thread, its name, how many spans "
       "and batches, when its first span began and its last ended, time inside operations, CPU "
       "time, and the operation with the longest self time. Times are in ns.",
       R"({"type":"object","additionalProperties":false,"properties":{}})"},
      {"sql", "Ask with SQL",
       "Runs one SELECT (SQLite) over the recording. Times are in ns, unknown values NULL. Tables: "
       "runs(run, dir, loader, start_ns, end_ns, cpus, dropped); spans(run, host, rank, pid, tid, "
       "thread, loader, name, batch, epoch, start_ns, dur_ns, self_ns, cpu_ns, depth); "
       "batches(run, "
       "host, rank, pid, loader, batch, epoch, queued_ns, preprocess_ns, wait_ns, delay_ns, "
       "handed_over_ns, step_ns); stages(run, host, rank, pid, tid, loader, stage, number, "
       "is_item, "
       "batch, epoch, start_ns, dur_ns); counters(run, host, rank, pid, loader, name, time_ns, "
       "value); aggregated(run, host, rank, pid, tid, loader, name, calls, total_ns, self_ns, "
       "p50_ns, p90_ns, p99_ns, max_ns); blocked_on(run, loader, part, name, reason, what, "
       "held_by, "
       "held_share, ns, share, samples, stack). At most 1,000 rows are returned.",
       R"({"type":"object","additionalProperties":false,"required":["query"],"properties":{)"
       R"("query":{"type":"string","description":"one SELECT statement"}}})"},
#endif
  };
  return all;
}

#undef LOTUS_MCP_FORMAT
#undef LOTUS_MCP_SKIP

/// Reads the arguments of a tool call. Each function throws usage_error if an argument has the
/// wrong type; finish() throws it if there are unknown arguments.
class argument_reader {
 public:
  explicit argument_reader(const json& of) : of_(of) {
    if (!of_.is_object()) throw usage_error("arguments: expected an object");
  }

  const json* find(const char* key, bool (json::*is)() const noexcept, const char* expected) {
    known_.insert(key);
    const auto at = of_.find(key);
    if (at == of_.end()) return nullptr;
    if (!((*at).*is)()) throw usage_error(std::string(key) + ": expected " + expected);
    return &*at;
  }
  bool flag(const char* key) {
    const json* const value = find(key, &json::is_boolean, "true or false");
    return value != nullptr && value->get<bool>();
  }
  std::optional<std::string> text(const char* key) {
    const json* const value = find(key, &json::is_string, "a text");
    if (value == nullptr) return std::nullopt;
    auto text = value->get<std::string>();
    // When this text is passed to a program as an argument, a NUL would end it early.
    if (text.find('\0') != std::string::npos) throw usage_error(std::string(key) + ": has a NUL");
    return text;
  }
  std::optional<std::string> number(const char* key) {
    const json* const value = find(key, &json::is_number, "a number");
    return value == nullptr ? std::nullopt : std::optional(value->dump());
  }
  void finish() const {
    for (const auto& [key, value] : of_.items()) {
      if (known_.count(key) == 0) throw usage_error("unknown argument '" + key + "'");
    }
  }

 private:
  const json& of_;
  std::set<std::string> known_;
};

/// Adds an option and its value as one word, so that a value that begins with a dash is not
/// mistaken for an option.
void add(std::vector<std::string>& to, const char* option,
         const std::optional<std::string>& value) {
  if (value) to.push_back(option + ("=" + *value));
}

void add_format(argument_reader& from, std::vector<std::string>& to) {
  const std::optional<std::string> format = from.text("format");
  if (format && *format != "text" && *format != "json") {
    throw usage_error("format: expected text or json");
  }
  to.emplace_back(format == "json" ? "--json" : "--wide");
}

void add_changes(argument_reader& from, std::vector<std::string>& to) {
  add(to, "--workers", from.number("workers"));
  add(to, "--prefetch", from.number("prefetch"));
  if (from.flag("unordered")) to.emplace_back("--unordered");
  if (const json* const all = from.find("faster", &json::is_object, "an object")) {
    for (const auto& [name, factor] : all->items()) {
      if (!factor.is_number()) throw usage_error("faster: expected a number for " + name);
      to.push_back("--faster=" + name + '=' + factor.dump());
    }
  }
  if (const json* const all = from.find("without", &json::is_array, "a list of names")) {
    for (const json& name : *all) {
      if (!name.is_string()) throw usage_error("without: expected a list of names");
      to.push_back("--without=" + name.get<std::string>());
    }
  }
  add(to, "--step", from.number("step"));
  add(to, "--cpus", from.number("cpus"));
  add(to, "--batch-size", from.number("batch_size"));
  add(to, "--target", from.number("target"));
  if (from.flag("feed_consumer")) to.emplace_back("--feed-consumer");
}

}  // namespace

/// The run's tables in a temporary database. They are exported at the first query, and exported
/// again when the run has changed.
class mcp_tools::database {
 public:
  explicit database(std::string dir) : dir_(std::move(dir)) {}

  /// Returns the path of the up-to-date database. Throws input_error if the run cannot be exported.
  std::string path(const command_runner& run_command) {
    const std::map<std::string, std::pair<std::uintmax_t, fs::file_time_type>> now = files();
    if (scratch_ && now == exported_) return scratch_->file("run.db");
    scratch_.emplace(fs::temp_directory_path().string());
    const command_output output =
        run_command({"export", dir_, "--format", "sqlite", "-q", "-o", scratch_->file("run.db")});
    if (output.status != exit_fine) {
      scratch_.reset();
      throw input_error(output.err);
    }
    exported_ = now;
    return scratch_->file("run.db");
  }

 private:
  using file_states = std::map<std::string, std::pair<std::uintmax_t, fs::file_time_type>>;

  file_states files() const {
    file_states found;
    std::error_code error;
    for (fs::recursive_directory_iterator at(dir_, error), end; !error && at != end;
         at.increment(error)) {
      std::error_code ignored;
      if (!at->is_regular_file(ignored)) continue;
      const std::uintmax_t size = at->file_size(ignored);
      found[at->path().string()] = {size, at->last_write_time(ignored)};
    }
    return found;
  }

  std::string dir_;
  std::optional<scratch_folder> scratch_;
  file_states exported_;
};

mcp_tools::mcp_tools(std::string dir, command_runner run_command)
    : dir_(std::move(dir)), run_command_(std::move(run_command)) {}

mcp_tools::~mcp_tools() = default;

const std::vector<mcp_tool>& mcp_tools::all() {
  return tools();
}

mcp_answer mcp_tools::answer_of(const std::vector<std::string>& command) const {
  command_output output = run_command_(command);
  // exit_no_answer is not a failure: the command then prints the reason why it has no answer.
  const bool failed = output.status != exit_fine && output.status != exit_no_answer;
  if (failed) return {output.err.empty() ? output.out : output.err, true};
  if (output.out.size() > max_answer_bytes) {
    return {"the answer has " + std::to_string(output.out.size()) +
                " bytes, which is too much: ask for text, with a limit, or use sql",
            true};
  }
  return {output.err.empty() ? output.out : output.out + '\n' + output.err, false};
}

/// Returns the path of a subfolder of `dir_`, the only folder whose runs may be read. Throws
/// usage_error for any other path, also for one that leads outside through a symbolic link.
std::string mcp_tools::folder_within(const std::string& name) const {
  std::error_code error;
  const fs::path found = fs::canonical(fs::path(dir_) / name, error);
  const std::string path = found.string();
  const bool within = path.compare(0, dir_.size() + 1, dir_ + '/') == 0;
  if (error || !within || !fs::is_directory(found, error)) {
    throw usage_error("'" + name + "' is no subfolder of the served folder");
  }
  return path;
}

mcp_answer mcp_tools::query(const std::string& sql) {
#ifdef LOTUS_TOOL_SQLITE
  if (!database_) database_ = std::make_unique<database>(dir_);
  return {query_database(database_->path(run_command_), sql), false};
#else
  throw usage_error("this lotus-tool was built without SQLite: " + sql);
#endif
}

mcp_answer mcp_tools::call(std::string_view name, const json& arguments) {
  try {
    argument_reader from(arguments);
    if (name == "sql") {
      const std::optional<std::string> sql = from.text("query");
      from.finish();
      if (!sql) throw usage_error("query: missing");
      return query(*sql);
    }
#ifdef LOTUS_TOOL_SQLITE
    if (name == "threads") {
      from.finish();
      return query(threads_query);
    }
#endif
    std::vector<std::string> command{std::string(name)};
    if (name == "compare") {
      const std::optional<std::string> before = from.text("before");
      const std::optional<std::string> after = from.text("after");
      if (!before || !after) throw usage_error("before and after are required");
      command.push_back(folder_within(*before));
      command.push_back(folder_within(*after));
    } else {
      command.push_back(dir_);
    }
    add_format(from, command);
    if (name == "whatif") {
      add_changes(from, command);
    } else {
      add(command, "--skip-batches", from.number("skip_batches"));
    }
    if (name == "diagnose" && from.flag("details")) command.emplace_back("--details");
    if (name == "stats") {
      add(command, "--sort", from.text("sort"));
      add(command, "--limit", from.number("limit"));
      if (from.flag("per_worker")) command.emplace_back("--per-worker");
      if (from.flag("memory")) command.emplace_back("--memory");
    }
    from.finish();
    return answer_of(command);
  } catch (const std::exception& error) {
    return {error.what(), true};
  }
}

}  // namespace lotus::tool
