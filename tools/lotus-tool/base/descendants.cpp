#include "base/descendants.hpp"

#include <dirent.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): kill
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

namespace lotus::tool {
namespace {

std::string proc_file(pid_t id, const char* name) {
  return "/proc/" + std::to_string(id) + '/' + name;
}

/// Returns the memory of a process in bytes. A page that n processes share counts as 1 / n.
/// @param is_only_one  whether no other process can share memory with this one; then, and on
/// kernels without smaps_rollup, all pages count completely.
std::uint64_t bytes_of(pid_t id, bool is_only_one) {
  std::string word;
  if (!is_only_one) {
    std::ifstream shares(proc_file(id, "smaps_rollup"));
    while (shares >> word) {
      std::uint64_t kilobytes = 0;
      if (word == "Pss:" && shares >> kilobytes) return 1024 * kilobytes;
    }
  }
  std::ifstream pages(proc_file(id, "statm"));
  std::uint64_t all = 0;
  std::uint64_t resident = 0;
  pages >> all >> resident;
  return resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

/// Returns how many seconds the threads of a process have waited for a CPU so far, summed over the
/// threads; 0 if this is unknown.
double waited_s_of(pid_t id) {
  double sum_ns = 0;
  DIR* const folder = opendir(proc_file(id, "task").c_str());
  if (folder == nullptr) return 0;
  // NOLINTNEXTLINE(concurrency-mt-unsafe): no other thread uses this stream
  while (const dirent* const entry = readdir(folder)) {
    std::ifstream in(proc_file(id, "task/") + entry->d_name + "/schedstat");
    double ran_ns = 0;
    double waited_ns = 0;
    if (in >> ran_ns >> waited_ns) sum_ns += waited_ns;
  }
  closedir(folder);
  return 1e-9 * sum_ns;
}

}  // namespace

descendants::descendants() {
  int reaper = 0;
  was_reaper_ = prctl(PR_GET_CHILD_SUBREAPER, &reaper) == 0 && reaper != 0;
  for (const process& p : all()) others_.push_back(p.id);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
}

descendants::~descendants() {
  std::size_t left = 0;
  end(left);
  if (!was_reaper_) prctl(PR_SET_CHILD_SUBREAPER, 0);
}

/// Finds the child processes of this process, their child processes and so on, by reading /proc.
std::vector<descendants::process> descendants::all() const {
  std::vector<process> running;
  DIR* const folder = opendir("/proc");
  if (folder == nullptr) return running;
  // NOLINTNEXTLINE(concurrency-mt-unsafe): no other thread uses this stream
  while (const dirent* const entry = readdir(folder)) {
    if (std::isdigit(static_cast<unsigned char>(entry->d_name[0])) == 0) continue;
    process p;
    p.id = static_cast<pid_t>(std::strtol(entry->d_name, nullptr, 10));
    std::ifstream in(proc_file(p.id, "stat"));
    std::string text;
    std::getline(in, text, '\0');
    // In /proc/PID/stat, the program's name is in parentheses and may itself contain ')', so find
    // the last one.
    const std::size_t name_end = text.rfind(')');
    if (name_end == std::string::npos) continue;
    std::istringstream rest(text.substr(name_end + 1));
    if (rest >> p.state >> p.parent) running.push_back(p);
  }
  closedir(folder);
  std::vector<process> found;
  std::vector<pid_t> parents{getpid()};
  while (!parents.empty()) {
    const pid_t parent = parents.back();
    parents.pop_back();
    for (const process& p : running) {
      if (p.parent != parent) continue;
      if (std::find(others_.begin(), others_.end(), p.id) != others_.end()) continue;
      found.push_back(p);
      parents.push_back(p.id);
    }
  }
  return found;
}

descendants_use descendants::use() const {
  const std::vector<process> now = all();
  descendants_use sum;
  for (const process& p : now) {
    if (p.state == 'Z') continue;
    ++sum.processes;
    sum.bytes += bytes_of(p.id, now.size() == 1);
    sum.waited_s += waited_s_of(p.id);
    sum.stopped = sum.stopped || p.state == 'T';
  }
  return sum;
}

std::size_t descendants::end(std::size_t& left) {
  using clock = std::chrono::steady_clock;
  constexpr std::chrono::seconds patience(5);
  const auto until = clock::now() + patience;
  std::vector<pid_t> seen;
  while (true) {
    left = 0;
    for (const process& p : all()) {
      // A process that has ended stays a zombie until its parent reaps it. This process is also the
      // parent of all orphans (PR_SET_CHILD_SUBREAPER), so it reaps them here.
      if (p.parent == getpid()) waitpid(p.id, nullptr, WNOHANG);
      if (p.state == 'Z') continue;
      kill(p.id, SIGKILL);
      ++left;
      if (std::find(seen.begin(), seen.end(), p.id) == seen.end()) seen.push_back(p.id);
    }
    if (left == 0 || clock::now() >= until) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  // The loop above may have killed processes that it did not reap because they had not ended yet.
  // Reap those that have ended since.
  for (const process& p : all()) {
    if (p.parent == getpid()) waitpid(p.id, nullptr, WNOHANG);
  }
  return seen.size();
}

}  // namespace lotus::tool
