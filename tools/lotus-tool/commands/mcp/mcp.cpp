#include "commands/mcp/mcp.hpp"

#include <algorithm>
#include <exception>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/errors.hpp"
#include "base/files/unfinished.hpp"
#include "base/guarded_reader.hpp"
#include "base/printable.hpp"
#ifdef LOTUS_TOOL_SQLITE
  #include "commands/mcp/sql_query.hpp"
#endif

namespace lotus::tool {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using nlohmann::ordered_json;

// Versions of https://modelcontextprotocol.io/specification that this server supports. In all of
// them, a session begins with the request "initialize".
constexpr std::string_view versions[] = {"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"};

// Error codes of JSON-RPC, see https://www.jsonrpc.org/specification, section 5.1.
constexpr int parse_error = -32700;
constexpr int invalid_request = -32600;
constexpr int no_such_method = -32601;
constexpr int invalid_parameters = -32602;

/// Exception for a request that gets an error as its answer.
struct request_error {
  int code;
  std::string message;
};

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

/// Returns the JSON Schema of a tool's arguments.
json schema_of(const mcp_tool& tool) {
  json schema{{"type", "object"}, {"additionalProperties", false}, {"properties", json::object()}};
  for (const mcp_argument& of : tool.arguments) {
    schema["properties"][of.name] = schema_of(of);
    if (of.option.empty()) schema["required"].push_back(of.name);
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

/// The answer of a tool. If it failed, the text tells the language model why, so it can try again.
struct mcp_answer {
  std::string text;
  bool failed = false;
};

/// The run's tables in a temporary database. They are exported at the first query, and exported
/// again when the run has changed.
class run_database {
 public:
  explicit run_database(std::string dir) : dir_(std::move(dir)) {}

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

/// Runs tools on one run. Not thread-safe.
class mcp_tools {
 public:
  /// @param dir  absolute path of an existing folder.
  mcp_tools(std::string dir, std::vector<mcp_tool> tools, command_runner run_command)
      : dir_(std::move(dir)), tools_(std::move(tools)), run_command_(std::move(run_command)) {}

  const std::vector<mcp_tool>& all() const noexcept { return tools_; }

  /// Calls a tool of all(). Invalid arguments and errors of the command become a failed answer, so
  /// only bad_alloc can be thrown.
  mcp_answer call(const mcp_tool& tool, const json& arguments) {
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
      options.erase(
          std::remove_if(options.begin(), options.end(),
                         [](const std::string& o) { return o.rfind("--format=", 0) == 0; }),
          options.end());
      options.emplace_back(as_json ? "--json" : "--wide");
      command.insert(command.end(), options.begin(), options.end());
      return answer_of(command);
    } catch (const std::exception& error) {
      return {error.what(), true};
    }
  }

 private:
  mcp_answer answer_of(const std::vector<std::string>& command) const {
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
  std::string folder_within(const std::string& name) const {
    std::error_code error;
    const fs::path found = fs::canonical(fs::path(dir_) / name, error);
    const std::string path = found.string();
    const bool within = path.compare(0, dir_.size() + 1, dir_ + '/') == 0;
    if (error || !within || !fs::is_directory(found, error)) {
      throw usage_error("'" + name + "' is no subfolder of the served folder");
    }
    return path;
  }

  mcp_answer query(const std::string& sql) {
#ifdef LOTUS_TOOL_SQLITE
    if (!database_) database_.emplace(dir_);
    return {query_database(database_->path(run_command_), sql), false};
#else
    throw usage_error("this lotus-tool was built without SQLite: " + sql);
#endif
  }

  std::string dir_;
  std::vector<mcp_tool> tools_;
  command_runner run_command_;
  std::optional<run_database> database_;
};

/// Reads a line and returns it without its line end; nullopt at the end of the input. If the line
/// is longer than `most`, sets `too_long`, skips the line and returns an empty text.
std::optional<std::string> read_line(std::istream& in, bool& too_long) {
  constexpr std::size_t most = 1 << 20;
  std::string line;
  too_long = false;
  for (int c = in.get(); c != std::istream::traits_type::eof(); c = in.get()) {
    if (c == '\n') return line;
    too_long = too_long || line.size() == most;
    if (too_long) {
      line.clear();
    } else {
      line += static_cast<char>(c);
    }
  }
  return line.empty() && !too_long ? std::nullopt : std::optional(line);
}

class server {
 public:
  server(std::string dir, std::vector<mcp_tool> tools, const command_runner& run_command)
      : dir_(dir), tools_(std::move(dir), std::move(tools), run_command) {}

  /// Returns the answer as one line; "" if the message needs no answer, such as a notification.
  std::string answer(const std::string& line, bool too_long) {
    json id;
    try {
      if (too_long) throw request_error{invalid_request, "the message is longer than 1 MiB"};
      // nlohmann::json copies and prints values recursively.
      if (is_nested_too_deeply(line)) throw request_error{parse_error, "it is nested too deeply"};
      const json message = json::parse(line, nullptr, /*allow_exceptions=*/false);
      if (message.is_discarded()) throw request_error{parse_error, "this is no JSON"};
      if (!message.is_object()) throw request_error{invalid_request, "expected one object"};
      const auto given = message.find("id");
      const bool named = given != message.end();
      if (named && (given->is_string() || given->is_number_integer())) id = *given;
      const auto method = message.find("method");
      // This server sends no requests, so a message that is an answer is ignored.
      if (method == message.end() && (message.contains("result") || message.contains("error"))) {
        return {};
      }
      const bool is_valid = message.value("jsonrpc", json()) == "2.0" && method != message.end() &&
                            method->is_string() && (!named || !id.is_null());
      if (!is_valid) throw request_error{invalid_request, "this is no JSON-RPC 2.0 request"};
      if (!named) return {};
      const json parameters = message.value("params", json::object());
      if (!parameters.is_object()) throw request_error{invalid_parameters, "params: no object"};
      const ordered_json result = result_of(method->get<std::string>(), parameters);
      return ordered_json{{"jsonrpc", "2.0"}, {"id", id}, {"result", result}}.dump();
    } catch (const request_error& error) {
      const ordered_json fault{{"code", error.code}, {"message", printable(error.message)}};
      return ordered_json{{"jsonrpc", "2.0"}, {"id", id}, {"error", fault}}.dump();
    }
  }

 private:
  ordered_json result_of(const std::string& method, const json& parameters) {
    if (method == "initialize") return initialize(parameters);
    if (method == "ping") return ordered_json::object();
    if (method == "tools/list") return list();
    if (method == "tools/call") return call(parameters);
    throw request_error{no_such_method, "no method " + method};
  }

  ordered_json initialize(const json& parameters) const {
    const json asked = parameters.value("protocolVersion", json());
    std::string_view version = versions[0];
    for (const std::string_view known : versions) {
      if (asked == std::string(known)) version = known;
    }
    return {{"protocolVersion", version},
            {"capabilities", {{"tools", ordered_json::object()}}},
            {"serverInfo", {{"name", "lotus-tool"}, {"version", LOTUS_TOOL_VERSION}}},
            {"instructions",
             printable("Answers questions about a recording of a data-loading pipeline, in " +
                       dir_ + ". Begin with diagnose.")}};
  }

  ordered_json list() const {
    ordered_json tools = ordered_json::array();
    for (const mcp_tool& tool : tools_.all()) {
      const ordered_json hints{
          {"title", tool.title}, {"readOnlyHint", true}, {"openWorldHint", false}};
      tools.push_back({{"name", tool.name},
                       {"title", tool.title},
                       {"description", tool.description},
                       {"inputSchema", schema_of(tool)},
                       {"annotations", hints}});
    }
    return {{"tools", tools}};
  }

  ordered_json call(const json& parameters) {
    const json name = parameters.value("name", json());
    const std::vector<mcp_tool>& all = tools_.all();
    const auto tool =
        std::find_if(all.begin(), all.end(), [&](const mcp_tool& t) { return name == t.name; });
    if (tool == all.end()) {
      throw request_error{invalid_parameters,
                          "no tool " + (name.is_string() ? name.get<std::string>() : "")};
    }
    const mcp_answer answer = tools_.call(*tool, parameters.value("arguments", json::object()));
    ordered_json content = ordered_json::array();
    content.push_back({{"type", "text"}, {"text", printable(answer.text)}});
    return {{"content", content}, {"isError", answer.failed}};
  }

  std::string dir_;
  mcp_tools tools_;
};

}  // namespace

int run_mcp(const mcp_options& options, const command_runner& run_command, std::istream& in,
            std::ostream& out) {
  std::error_code error;
  const std::string dir = std::filesystem::canonical(options.dir, error).string();
  if (error || !std::filesystem::is_directory(dir, error)) {
    throw input_error(options.dir + ": no such directory");
  }
  server serving(dir, options.tools, run_command);
  bool too_long = false;
  while (const std::optional<std::string> line = read_line(in, too_long)) {
    if (line->find_first_not_of(" \t\r") == std::string::npos && !too_long) continue;
    const std::string answer = serving.answer(*line, too_long);
    if (answer.empty()) continue;
    out << answer << '\n' << std::flush;
    if (!out) break;
  }
  return exit_fine;
}

}  // namespace lotus::tool
