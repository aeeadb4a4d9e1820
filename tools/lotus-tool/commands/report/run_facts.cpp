#include "commands/report/run_facts.hpp"

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <set>
#include <string>

#include "aggregates/data/aggregated.hpp"
#include "base/formats/json_writer.hpp"
#include "log/folder/log_files.hpp"
#include "log/process_info.hpp"
#include "model/run_data.hpp"

namespace lotus::tool {
namespace {

std::string utc_text(std::int64_t time_ns) {
  const std::time_t seconds = time_ns / 1'000'000'000;
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  char text[40];
  std::strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S UTC", &utc);
  return text;
}

/// Counts the complete records that killed processes left in their rings and that no log contains.
std::uint64_t recovered_lines(const run_files& run) {
  std::uint64_t lines = 0;
  for (const auto* list : {&run.files, &run.side_files}) {
    for (const log_file& file : *list) {
      lines += static_cast<std::uint64_t>(std::count(file.tail.begin(), file.tail.end(), '\n'));
    }
  }
  return lines;
}

}  // namespace

void write_facts(json_writer& json, const run_data& run) {
  const run_processes processes = run_processes::read(run.files->info_dir, run.files->earlier_info);
  std::set<std::string> hosts;
  std::set<std::string> commands;
  std::set<std::uint64_t> ranks;
  std::set<std::uint64_t> pids;
  std::set<std::uint64_t> threads;
  for (const log_file& file : run.files->files) {
    threads.insert(file.number);
    const process_info* const process = processes.process_of(file.number);
    if (process == nullptr) continue;
    pids.insert(process->pid);
    if (!process->host.empty()) hosts.insert(process->host);
    if (!process->command.empty()) commands.insert(process->command);
    if (process->rank) ranks.insert(*process->rank);
  }
  json.newline().key("facts").begin_object();
  if (run.first_ns < run.last_ns) {
    json.member("started", utc_text(run.first_ns)).member("length_ns", run.last_ns - run.first_ns);
  }
  json.key("hosts").begin_array();
  for (const std::string& host : hosts) json.value(host);
  json.end_array().key("commands").begin_array();
  for (const std::string& command : commands) json.value(command);
  json.end_array().member("ranks", ranks.size()).member("processes", pids.size());
  json.member("threads", threads.size()).member("operations", run.operations);
  if (run.cpus) json.member("cpus", run.cpus->count());
  json.end_object();
  std::uint64_t aggregated = 0;
  for (const aggregated_op& op : run.aggregated) aggregated += op.count;
  json.key("quality").begin_object().member("malformed", run.damaged_lines);
  json.member("written", run.records.written).member("dropped", run.records.dropped);
  json.member("recovered", recovered_lines(*run.files)).member("aggregated", aggregated);
  json.end_object();
}

}  // namespace lotus::tool
