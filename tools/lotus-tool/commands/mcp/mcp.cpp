#include "commands/mcp/mcp.hpp"

#include <algorithm>
#include <filesystem>
#include <istream>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/errors.hpp"
#include "base/formats/json_writer.hpp"
#include "base/guarded_reader.hpp"
#include "base/printable.hpp"

namespace lotus::tool {
namespace {

using nlohmann::json;

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
      const std::string result = result_of(method->get<std::string>(), parameters);
      std::string text = begin_of(id);
      json_writer(text).key("result").raw(result).end_object();
      return text;
    } catch (const request_error& error) {
      std::string text = begin_of(id);
      json_writer to(text);
      to.key("error").begin_object().member("code", error.code);
      to.member("message", printable(error.message)).end_object().end_object();
      return text;
    }
  }

 private:
  static std::string begin_of(const json& id) {
    return R"({"jsonrpc":"2.0","id":)" + id.dump() + ',';
  }

  std::string result_of(const std::string& method, const json& parameters) {
    if (method == "initialize") return initialize(parameters);
    if (method == "ping") return "{}";
    if (method == "tools/list") return list();
    if (method == "tools/call") return call(parameters);
    throw request_error{no_such_method, "no method " + method};
  }

  std::string initialize(const json& parameters) const {
    const json asked = parameters.value("protocolVersion", json());
    std::string_view version = versions[0];
    for (const std::string_view known : versions) {
      if (asked == std::string(known)) version = known;
    }
    std::string text;
    json_writer to(text);
    to.begin_object().member("protocolVersion", version);
    to.key("capabilities").begin_object().key("tools").begin_object().end_object().end_object();
    to.key("serverInfo").begin_object().member("name", "lotus-tool");
    to.member("version", LOTUS_TOOL_VERSION).end_object();
    to.member("instructions",
              printable("Answers questions about a recording of a data-loading pipeline, in " +
                        dir_ + ". Begin with diagnose."));
    to.end_object();
    return text;
  }

  std::string list() const {
    std::string text;
    json_writer to(text);
    to.begin_object().key("tools").begin_array();
    for (const mcp_tool& tool : tools_.all()) {
      to.begin_object().member("name", tool.name).member("title", tool.title);
      to.member("description", tool.description).key("inputSchema").raw(tool.input_schema());
      to.key("annotations").begin_object().member("title", tool.title);
      to.member("readOnlyHint", true).member("openWorldHint", false).end_object().end_object();
    }
    to.end_array().end_object();
    return text;
  }

  std::string call(const json& parameters) {
    const json name = parameters.value("name", json());
    const std::vector<mcp_tool>& all = tools_.all();
    const auto tool =
        std::find_if(all.begin(), all.end(), [&](const mcp_tool& t) { return name == t.name; });
    if (tool == all.end()) {
      throw request_error{invalid_parameters,
                          "no tool " + (name.is_string() ? name.get<std::string>() : "")};
    }
    const mcp_answer answer = tools_.call(*tool, parameters.value("arguments", json::object()));
    std::string text;
    json_writer to(text);
    to.begin_object().key("content").begin_array().begin_object().member("type", "text");
    to.member("text", printable(answer.text)).end_object().end_array();
    to.member("isError", answer.failed).end_object();
    return text;
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
