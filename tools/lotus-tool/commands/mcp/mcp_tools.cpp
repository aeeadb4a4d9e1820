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
#include <system_error>
#include <utility>
#include <vector>

#include "base/errors.hpp"
#include "base/files/unfinished.hpp"
#include "base/text.hpp"
#ifdef LOTUS_TOOL_SQLITE
  #include "commands/mcp/sql_query.hpp"
#endif

namespace lotus::tool {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::size_t max_answer_bytes = 400'000;

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

using kind = mcp_argument::kind;

json schema_of(const mcp_argument& of) {
  json schema{{"description", of.meaning}};
  switch (of.is) {
    case kind::flag:
      schema["type"] = "boolean";
      break;
    case kind::integer:
      schema["type"] = "integer";
      schema["minimum"] = 0;
      break;
    case kind::number:
      schema["type"] = "number";
      break;
    case kind::text:
    case kind::folder:
      schema["type"] = "string";
      if (!of.words.empty()) schema["enum"] = of.words;
      break;
    case kind::texts:
      schema["type"] = "array";
      schema["items"] = {{"type", "string"}};
      break;
    case kind::factors:
      schema["type"] = "object";
      schema["additionalProperties"] = {{"type", "number"}, {"exclusiveMinimum", 0}};
      break;
  }
  return schema;
}

std::string checked_text(const json& value, const std::string& name) {
  if (!value.is_string()) throw usage_error(name + ": expected a text");
  auto text = value.get<std::string>();
  // When this text is passed to a program as an argument, a NUL would end it early.
  if (text.find('\0') != std::string::npos) throw usage_error(name + ": has a NUL");
  return text;
}

/// Returns the words for a command that pass on an argument. An option and its value are one word,
/// so that a value that begins with a dash is not mistaken for an option. Throws usage_error if the
/// value has the wrong type.
std::vector<std::string> words_for(const mcp_argument& of, const json& value) {
  const auto expect = [&of](bool is, const char* expected) {
    if (!is) throw usage_error(of.name + ": expected " + expected);
  };
  std::vector<std::string> words;
  switch (of.is) {
    case kind::flag:
      expect(value.is_boolean(), "true or false");
      if (value.get<bool>()) words.push_back(of.option);
      break;
    case kind::integer:
    case kind::number:
      expect(value.is_number(), "a number");
      words.push_back(of.option + '=' + value.dump());
      break;
    case kind::text:
    case kind::folder:
      words.push_back((of.option.empty() ? "" : of.option + '=') + checked_text(value, of.name));
      break;
    case kind::texts:
      expect(value.is_array(), "a list of texts");
      for (const json& one : value) words.push_back(of.option + '=' + checked_text(one, of.name));
      break;
    case kind::factors:
      expect(value.is_object(), "an object");
      for (const auto& [name, factor] : value.items()) {
        expect(factor.is_number(), ("a number for " + name).c_str());
        words.push_back(of.option + '=' + name + '=' + factor.dump());
      }
      break;
  }
  return words;
}

}  // namespace

std::string mcp_tool::input_schema() const {
  json schema{{"type", "object"}, {"additionalProperties", false}, {"properties", json::object()}};
  for (const mcp_argument& of : arguments) {
    schema["properties"][of.name] = schema_of(of);
    if (of.option.empty()) schema["required"].push_back(of.name);
  }
  return schema.dump();
}

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

mcp_tools::mcp_tools(std::string dir, std::vector<mcp_tool> tools, command_runner run_command)
    : dir_(std::move(dir)), tools_(std::move(tools)), run_command_(std::move(run_command)) {}

mcp_tools::~mcp_tools() = default;

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

mcp_answer mcp_tools::call(const mcp_tool& tool, const json& arguments) {
  try {
    if (!arguments.is_object()) throw usage_error("arguments: expected an object");
    std::vector<std::string> folders;
    std::vector<std::string> options;
    std::set<std::string> known;
    for (const mcp_argument& of : tool.arguments) {
      known.insert(of.name);
      const auto at = arguments.find(of.name);
      if (at == arguments.end()) {
        if (of.option.empty()) throw usage_error(of.name + ": missing");
        continue;
      }
      for (std::string& word : words_for(of, *at)) {
        if (of.is == kind::folder) word = folder_within(word);
        (of.option.empty() ? folders : options).push_back(std::move(word));
      }
    }
    for (const auto& [key, value] : arguments.items()) {
      if (known.count(key) == 0) throw usage_error("unknown argument '" + key + "'");
    }
#ifdef LOTUS_TOOL_SQLITE
    if (tool.name == "sql") return query(folders.front());
    if (tool.name == "threads") return query(threads_query);
#endif
    std::vector<std::string> command{tool.name};
    if (folders.empty()) folders.push_back(dir_);
    command.insert(command.end(), folders.begin(), folders.end());
    // Text for a reader without a terminal has all columns.
    const bool as_json = std::count(options.begin(), options.end(), "--format=json") > 0;
    options.erase(std::remove_if(options.begin(), options.end(),
                                 [](const std::string& o) { return o.rfind("--format=", 0) == 0; }),
                  options.end());
    options.emplace_back(as_json ? "--json" : "--wide");
    command.insert(command.end(), options.begin(), options.end());
    return answer_of(command);
  } catch (const std::exception& error) {
    return {error.what(), true};
  }
}

}  // namespace lotus::tool
