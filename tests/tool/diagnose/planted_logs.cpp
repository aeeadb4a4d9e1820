#include "tool/diagnose/planted_logs.hpp"

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace lotus::tool_test {
namespace {

constexpr std::int64_t began_ns = 1'700'000'000'000'000'000;
constexpr int process = 100;

}  // namespace

std::string planted_logs::file(int thread, const std::string& role) const {
  const std::string folder = loader_.empty() ? "" : loader_ + '/';
  const std::string number = std::to_string(process + thread);
  if (role == "beside") return folder + ".lotus_beside_lotustrace_log_pid_" + number;
  return folder + "lotustrace_log_" + role + "_pid_" + number;
}

void planted_logs::line(int thread, const std::string& role, const std::string& name,
                        std::int64_t start, std::int64_t duration) {
  files_[file(thread, role)].push_back(
      {start + duration, start,
       name + ',' + std::to_string(began_ns + start) + ',' + std::to_string(duration) + '\n'});
}

void planted_logs::side_line(int thread, const std::string& kind_and_name, std::int64_t time,
                             std::int64_t a, std::int64_t b) {
  const bool span = kind_and_name[0] == 's' || kind_and_name[0] == 'p';
  files_[file(thread, "beside")].push_back({span ? time + a : time, time,
                                            kind_and_name + ',' + std::to_string(began_ns + time) +
                                                ',' + std::to_string(a) + ',' + std::to_string(b) +
                                                '\n'});
}

void planted_logs::cpu_time(std::int64_t at, std::int64_t cpu_ns, std::int64_t idle_ns) {
  cpu_times_ += "cpu_time " + std::to_string(began_ns + at) + ' ' + std::to_string(cpu_ns) + ' ' +
                std::to_string(idle_ns) + '\n';
}

void planted_logs::wait_sample(int thread, std::int64_t at, const std::string& reason,
                               std::int64_t ns) {
  wait_samples_ += "look," + std::to_string(began_ns + at) + ',' +
                   std::to_string(process + thread) + ',' + reason +
                   (reason == "lock" ? ",0,5540,0," : ",0,0,0,") + std::to_string(ns) + '\n';
}

void planted_logs::wait_sample(int thread, std::int64_t at, const std::string& reason,
                               const std::string& what, int address, int holder) {
  const std::string object = std::to_string(address + 1);
  wait_samples_ += "object," + object + ',' + what + "\nlook," + std::to_string(began_ns + at) +
                   ',' + std::to_string(process + thread) + ',' + reason + ',' + object + ',' +
                   std::to_string(address) + ',' +
                   std::to_string(holder == 0 ? 0 : process + holder) + ",10000000\n";
}

void planted_logs::write(const temp_dir& dir) const {
  std::set<std::string> threads;
  for (const auto& [name, records] : files_) {
    std::vector<record> sorted = records;
    // If two records end at the same time, the one that began first contains the other and comes
    // after it.
    std::stable_sort(sorted.begin(), sorted.end(), [](const record& a, const record& b) {
      return a.end != b.end ? a.end < b.end : a.start > b.start;
    });
    std::string text;
    for (const record& r : sorted) text += r.text;
    const std::string number = name.substr(name.rfind('_') + 1);
    threads.insert(number);
    const auto damaged = damaged_.find(std::stoi(number) - process);
    if (damaged != damaged_.end() && name.find("worker") != std::string::npos) {
      for (int i = 0; i < damaged->second; ++i) text += "SDecode,1x7,\n";
    }
    dir.file(name, text);
  }
  std::string info = "pid " + std::to_string(process) + "\nparent 1\nhost here\n";
  if (cpus_ > 0) info += "cpus " + std::to_string(cpus_) + " -\ncpu switches\n";
  info += cpu_times_;
  for (const std::string& number : threads) info += "thread " + number + " t" + number + '\n';
  info += "records " + std::to_string(written_) + ' ' + std::to_string(dropped_) + '\n';
  dir.file(".lotus_info_" + std::to_string(process) + "_1", info);
  if (!wait_samples_.empty()) {
    dir.file(".lotus_waits_" + std::to_string(process) + "_1", wait_samples_);
  }
}

}  // namespace lotus::tool_test
