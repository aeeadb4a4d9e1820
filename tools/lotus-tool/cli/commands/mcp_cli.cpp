#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <iostream>
#include <memory>
#include <ostream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "cli/cli.hpp"
#include "cli/commands/log_commands.hpp"
#include "cli/reading_options.hpp"
#include "commands/export/tables.hpp"
#include "commands/mcp/mcp.hpp"
#include "findings/verdict.hpp"

namespace lotus::tool {
namespace {

/// Returns the argument of a tool for an option of a command.
mcp_argument argument_of(const CLI::Option& option) {
  using kind = mcp_argument::kind;
  mcp_argument of;
  if (option.get_positional()) {
    of.name = option.get_name(true);
    std::transform(of.name.begin(), of.name.end(), of.name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    of.is = kind::folder;
  } else {
    of.name = option.get_lnames().front();
    of.option = "--" + of.name;
    std::replace(of.name.begin(), of.name.end(), '-', '_');
  }
  of.meaning = option.get_description();
  std::replace(of.meaning.begin(), of.meaning.end(), '\n', ' ');
  const std::string& value = option.get_option_text();
  if (of.is == kind::folder || option.get_items_expected_max() == 0) return of;
  const std::string meaning = of.meaning;
  of.meaning += " (in a command: " + of.option + ' ' + value + ')';
  const bool is_number = value == "FACTOR" || value == "RATE" || value == "PERCENT";
  if (value == "N" || value.rfind("N|", 0) == 0) {
    of.is = kind::integer;
  } else if (value.rfind("NAME=", 0) == 0) {
    of.is = kind::factors;
  } else if (value == "NAME") {
    of.is = kind::texts;
  } else if (is_number) {
    of.is = kind::number;
  } else {
    of.is = kind::text;
    of.meaning = meaning;
    std::istringstream words(value);
    const bool is_list = value.find('|') != std::string::npos;
    for (std::string word; is_list && std::getline(words, word, '|');) of.words.push_back(word);
  }
  return of;
}

/// Returns a tool for a command.
/// @param options  the names of the options and arguments that the tool offers.
mcp_tool tool_for(const CLI::App& app, const char* command, const char* title,
                  std::string description, const std::vector<const char*>& options) {
  mcp_tool tool{command, title, std::move(description)};
  const CLI::App& of = *app.get_subcommand(command);
  for (const char* const option : options) {
    tool.arguments.push_back(argument_of(*of.get_option(option)));
  }
  for (const char* const option : window_options) {
    tool.arguments.push_back(argument_of(*of.get_option(option)));
  }
  tool.arguments.push_back({"format",
                            "--format",
                            mcp_argument::kind::text,
                            "text for reading (the default), json for calculating",
                            {"text", "json"}});
  return tool;
}

/// Returns the things that can limit a pipeline, such as "consumer, operation, stage".
std::string limits() {
  std::string text;
  for (const verdict_row& v : all_verdicts) {
    if (!v.kind.empty()) text.append(text.empty() ? "" : ", ").append(v.kind);
  }
  return text;
}

#ifdef LOTUS_TOOL_SQLITE
/// Returns the tables with their columns, such as "runs(run, dir, loader)".
std::string tables_text() {
  const auto first = [](const auto& column) { return column.first; };
  return joined(exported_tables(), "; ", [&first](const table_definition& table) {
    return table.name + ('(' + joined(table.columns, ", ", first)) + ')';
  });
}
#endif

std::vector<mcp_tool> tools_of(const CLI::App& app) {
  std::vector<const char*> changes = names_of_changes();
  changes.insert(changes.end(), {"--target", "--feed-consumer"});
  std::vector<mcp_tool> tools{
      tool_for(app, "diagnose", "Find the bottleneck",
               "What limits this recorded data-loading pipeline (" + limits() +
                   "), the evidence, and changes to try with predicted run times. Call this "
                   "first.",
               {"--skip-batches", "--details"}),
      tool_for(app, "stats", "Show times",
               "How long each operation, stage and batch takes: counts, means, percentiles, "
               "totals, CPU and blocked time. JSON has every batch and may be too large; use sql "
               "then.",
               {"--skip-batches", "--sort", "--limit", "--per-worker", "--memory"}),
      tool_for(app, "whatif", "Predict a change",
               "Predicts throughput and run time after changes, by simulation, with 90 % "
               "intervals. Without arguments: a table of single changes. With target or "
               "feed_consumer: what is needed for it.",
               changes),
      tool_for(app, "compare", "Compare two runs",
               "What became slower or faster between two runs in subfolders of the served folder, "
               "with 95 % intervals and causes.",
               {"BEFORE", "AFTER", "--skip-batches"}),
  };
#ifdef LOTUS_TOOL_SQLITE
  tools.push_back(
      {"threads", "List threads",
       "The threads that ran operations, busiest first: process, thread, its name, how many spans "
       "and batches, when its first span began and its last ended, time inside operations, CPU "
       "time, and the operation with the longest self time. Times are in ns."});
  tools.push_back({"sql",
                   "Ask with SQL",
                   "Runs one SELECT (SQLite) over the recording. Times are in ns, unknown values "
                   "NULL. Tables: " +
                       tables_text() + ". At most 1,000 rows are returned.",
                   {{"query", "", mcp_argument::kind::text, "one SELECT statement"}}});
#endif
  return tools;
}

}  // namespace

void add_mcp(CLI::App& app, action& chosen) {
  auto options = std::make_shared<mcp_options>();
  CLI::App* command = app.add_subcommand("mcp", "Answer an AI assistant's questions about a run");
  command->footer(
      "Examples:\n"
      "  {\"mcpServers\": {\"lotus\": {\"command\": \"lotus-tool\", \"args\": [\"mcp\", "
      "\"run/\"]}}}\n"
      "  lotus-tool mcp run/ < requests.jsonl\n"
      "Runs a Model Context Protocol (MCP) server on standard input and output.\n"
      "The first example is an entry for the assistant's list of MCP servers.\n"
      "The server offers the commands diagnose, stats, whatif and compare, and SQL queries "
      "on the tables that 'lotus-tool export' writes.\n"
      "The server reads only this folder, changes nothing, and opens no connection.");
  command->add_option("DIR", options->dir, "folder of the logs of one or several runs")->required();
  command->callback([options, &app, &chosen] {
    chosen = [options, &app](std::ostream& out, std::ostream&) {
      options->tools = tools_of(app);
      return run_mcp(*options, run_in_process, std::cin, out);
    };
  });
}

}  // namespace lotus::tool
