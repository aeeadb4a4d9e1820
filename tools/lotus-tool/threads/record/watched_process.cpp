#include "threads/record/watched_process.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): tgkill's environment
#include <sys/select.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <lotus/base/build_id.hpp>
#include <lotus/waits/futex_waits.hpp>
#include <utility>

#include "base/text.hpp"

namespace lotus::tool {
namespace {

using lotus::detail::entered_call;
using lotus::detail::wait_reason;

int open_to_read(const std::string& path) noexcept {
  return ::open(path.c_str(), O_RDONLY | O_CLOEXEC);  // NOLINT(*-vararg)
}

/// Reads a small file of /proc. Returns "" if it cannot be read.
std::string read_all(const std::string& path) {
  const kept_file file(open_to_read(path));
  std::string text;
  if (file.number() < 0) return text;
  std::array<char, 16384> part{};
  ssize_t got = 0;
  while ((got = ::read(file.number(), part.data(), part.size())) > 0) {
    text.append(part.data(), static_cast<std::size_t>(got));
  }
  return text;
}

/// Returns the path to which a symbolic link points; "" if the link cannot be read.
std::string target_of(const std::string& link) {
  std::array<char, 4096> target{};
  const ssize_t got = ::readlink(link.c_str(), target.data(), target.size());
  return got > 0 ? std::string(target.data(), static_cast<std::size_t>(got)) : std::string();
}

std::vector<std::uint32_t> numbers_in(std::string_view text) {
  std::vector<std::uint32_t> all;
  const std::string copy(text);
  const char* at = copy.c_str();
  char* end = nullptr;
  for (unsigned long value = std::strtoul(at, &end, 10); end != at;
       value = std::strtoul(at, &end, 10)) {
    all.push_back(static_cast<std::uint32_t>(value));
    at = end;
  }
  return all;
}

bool is_epoll(std::string_view call) {
  return call.substr(0, 5) == "epoll";
}

/// Returns a text such as "several sockets or pipes" for the things that a thread polls.
std::string kinds_of(const std::vector<std::string>& polled) {
  constexpr std::array<std::pair<const char*, const char*>, 4> kinds{
      {{"socket:", "sockets"}, {"pipe:", "pipes"}, {"/", "files"}, {"anon_inode:", "events"}}};
  std::string text;
  for (const auto& [start, kind] : kinds) {
    const bool has_kind =
        std::any_of(polled.begin(), polled.end(),
                    [at = start](const std::string& one) { return one.rfind(at, 0) == 0; });
    if (has_kind) text.append(text.empty() ? "several " : " or ").append(kind);
  }
  return text.empty() ? "several descriptors" : text;
}

}  // namespace

kept_file& kept_file::operator=(kept_file&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

kept_file::~kept_file() {
  if (fd_ >= 0) ::close(fd_);
}

watched_process::watched_process(std::uint32_t pid) : pid_(pid) {}

void watched_process::open_memory() {
  memory_ = kept_file(open_to_read("/proc/" + std::to_string(pid_) + "/mem"));
}

std::string watched_process::task_path(std::uint32_t tid, const char* file) const {
  return "/proc/" + std::to_string(pid_) + "/task/" + std::to_string(tid) + '/' + file;
}

std::vector<std::uint32_t> watched_process::threads() const {
  std::vector<std::uint32_t> all;
  DIR* const tasks = ::opendir(("/proc/" + std::to_string(pid_) + "/task").c_str());
  if (tasks == nullptr) return all;
  while (const dirent* entry = ::readdir(tasks)) {  // NOLINT(concurrency-mt-unsafe): own stream
    const unsigned long tid = std::strtoul(static_cast<const char*>(entry->d_name), nullptr, 10);
    if (tid != 0) all.push_back(static_cast<std::uint32_t>(tid));
  }
  ::closedir(tasks);
  return all;
}

std::vector<std::uint32_t> watched_process::children() const {
  std::vector<std::uint32_t> all;
  for (const std::uint32_t tid : threads()) {
    for (const std::uint32_t child : numbers_in(read_all(task_path(tid, "children")))) {
      all.push_back(child);
    }
  }
  return all;
}

int watched_process::read_call(std::uint32_t tid, std::string& line) {
  // Files stay open between calls, because opening a file takes longer than reading it. Only
  // `max_open` files stay open, so that programs with many threads do not need too many
  // descriptors.
  constexpr std::size_t max_open = 200;
  const auto known = calls_.find(tid);
  kept_file opened;
  if (known == calls_.end()) {
    opened = kept_file(open_to_read(task_path(tid, "syscall")));
    if (opened.number() < 0) return errno;
  }
  const int fd = known == calls_.end() ? opened.number() : known->second.number();
  std::array<char, 256> text{};
  const ssize_t got = ::pread(fd, text.data(), text.size(), 0);
  if (got > 0) {
    line.assign(text.data(), static_cast<std::size_t>(got));
    if (known == calls_.end() && calls_.size() < max_open) calls_.emplace(tid, std::move(opened));
    return 0;
  }
  const int error = got < 0 ? errno : ESRCH;
  if (known != calls_.end()) calls_.erase(known);
  return error;
}

std::size_t watched_process::read_memory(std::uint64_t address, void* to,
                                         std::size_t bytes) const noexcept {
  const ssize_t got = ::pread(memory_.number(), to, bytes, static_cast<off_t>(address));
  return got > 0 ? static_cast<std::size_t>(got) : 0;
}

std::uint32_t watched_process::word_at(std::uint64_t address) const noexcept {
  std::uint32_t word = 0;
  return read_memory(address, &word, sizeof word) == sizeof word ? word : 0;
}

bool watched_process::has_thread(std::uint32_t tid) const noexcept {
  return tid != 0 && tid <= FUTEX_TID_MASK &&
         ::syscall(SYS_tgkill, static_cast<pid_t>(pid_), static_cast<pid_t>(tid), 0) == 0;
}

/// Returns what a descriptor refers to, such as "pipe:[4711]"; "" if it is closed.
std::string watched_process::opened(int fd) const {
  return target_of("/proc/" + std::to_string(pid_) + "/fd/" + std::to_string(fd));
}

/// Returns the descriptors of which a thread waits for one, in poll, select or epoll_wait.
std::vector<pollfd> watched_process::polled(const entered_call& call, std::string_view name) const {
  constexpr std::size_t max_descriptors = 256;
  std::vector<pollfd> all;
  if (name.find("select") != std::string_view::npos) {
    fd_set reads{};
    read_memory(call.arguments[1], &reads, sizeof reads);
    const auto end = static_cast<int>(std::min<std::uint64_t>(call.arguments[0], FD_SETSIZE));
    for (int fd = 0; fd < end; ++fd) {
      if (FD_ISSET(fd, &reads)) all.push_back({fd, POLLIN, 0});
    }
  } else if (is_epoll(name)) {
    const std::string text = read_all("/proc/" + std::to_string(pid_) + "/fdinfo/" +
                                      std::to_string(static_cast<int>(call.arguments[0])));
    // A line looks like "tfd:        5 events:       19 data:                5", with the events
    // in hexadecimal digits.
    constexpr std::string_view label = "tfd:";
    constexpr std::string_view next = " events:";
    for (std::size_t at = text.find(label); at != std::string::npos && all.size() < max_descriptors;
         at = text.find(label, at + label.size())) {
      char* end = nullptr;
      const long fd = std::strtol(&text[at + label.size()], &end, 10);
      if (std::string_view(end).substr(0, next.size()) != next) break;
      const unsigned long events = std::strtoul(end + next.size(), nullptr, 16);
      all.push_back({static_cast<int>(fd), static_cast<short>(events & (POLLIN | POLLOUT)), 0});
    }
  } else {
    all.resize(std::min<std::uint64_t>(call.arguments[1], max_descriptors));
    all.resize(read_memory(call.arguments[0], all.data(), all.size() * sizeof(pollfd)) /
               sizeof(pollfd));
    all.erase(std::remove_if(all.begin(), all.end(), [](const pollfd& of) { return of.fd < 0; }),
              all.end());
  }
  return all;
}

void watched_process::describe(const entered_call& call, seen_wait& to) const {
  to.reason = wait_reason::page_fault;
  if (call.number == entered_call::none) return;
  if (call.number == SYS_futex) {
    const auto futex = lotus::detail::wait_in_futex(call, *this);
    to.reason = futex.reason;
    to.address = futex.address;
    to.holder = futex.holder;
    if (futex.is_thread_end) to.what = "the end of a thread";
    return;
  }
  const auto* const row = lotus::detail::row_of_call(call.number);
  to.reason = row == nullptr ? wait_reason::other : row->reason;
  if (row == nullptr) {
    to.what = "system call " + std::to_string(call.number);
    return;
  }
  std::vector<pollfd> all;
  if (row->reason == wait_reason::poll) all = polled(call, row->name);
  // A thread that polls a single descriptor waits for that one.
  const bool polls_one = all.size() == 1;
  if (row->of_descriptor || polls_one) {
    const int fd = polls_one ? all.front().fd : static_cast<int>(call.arguments[0]);
    const std::string_view name(row->name);
    const bool writes = name.find("write") != std::string_view::npos ||
                        name.find("send") != std::string_view::npos ||
                        (polls_one && (all.front().events & (POLLIN | POLLOUT)) == POLLOUT);
    if (row->reason != wait_reason::lock) {
      to.address = 2 * static_cast<std::uint64_t>(static_cast<unsigned>(fd)) + (writes ? 1 : 0);
    }
    to.what = opened(fd);
    const auto begins = [&to](std::string_view start) { return to.what.rfind(start, 0) == 0; };
    if (row->reason == wait_reason::file || polls_one) {
      if (begins("pipe:")) to.reason = wait_reason::pipe;
      if (begins("socket:")) to.reason = wait_reason::socket;
      if (begins("anon_inode:") && !polls_one) to.reason = wait_reason::other;
    }
  } else if (!all.empty()) {
    for (const pollfd& of : all) to.polled.push_back(opened(of.fd));
    to.what = kinds_of(to.polled);
    to.several = std::to_string(pid_) + ':' +
                 std::to_string(is_epoll(row->name) ? call.arguments[0] : call.sp);
  } else if (row->reason == wait_reason::poll && !is_epoll(row->name)) {
    const bool selects = std::string_view(row->name).find("select") != std::string_view::npos;
    // A call without descriptors only sleeps.
    if (call.arguments[selects ? 0 : 1] == 0) to.reason = wait_reason::sleep;
  }
  if (to.what.empty() && to.reason != wait_reason::sleep) to.what = row->name;
}

seen_state watched_process::sample_wait(std::uint32_t tid, seen_wait& wait) {
  std::string before;
  const int error = read_call(tid, before);
  if (error == EPERM || error == EACCES) return seen_state::forbidden;
  if (error == ESRCH || error == ENOENT) return seen_state::gone;
  entered_call call;
  if (error != 0 || !call.parse(before.c_str()) || call.sp == 0) return seen_state::runs;
  wait.stack.sp = call.sp;
  wait.stack.pc = call.pc;
  // If the stack cannot be read, the process may have called exec. The file of its memory, which
  // was opened before, then still refers to the old memory, so open the file again.
  if (std::uint64_t word = 0; read_memory(wait.stack.sp, &word, sizeof word) == 0) open_memory();
  describe(call, wait);
  wait.stack.bytes.resize(stack_copy::max_bytes);
  wait.stack.bytes.resize(
      read_memory(wait.stack.sp, wait.stack.bytes.data(), wait.stack.bytes.size()));
  // Read the line of /proc/PID/task/TID/syscall again. If it is the same as before, the thread was
  // in this wait while its stack was copied, because the line contains the stack pointer.
  std::string after;
  if (read_call(tid, after) != 0 || before != after) return seen_state::runs;
  return seen_state::waits;
}

scheduled_time watched_process::times(std::uint32_t tid) const {
  const std::string text = read_all(task_path(tid, "schedstat"));
  char* end = nullptr;
  scheduled_time of;
  of.at = std::chrono::steady_clock::now();
  of.cpu_ns = std::strtoull(text.c_str(), &end, 10);
  of.queue_ns = std::strtoull(end, &end, 10);
  of.runs = std::strtoull(end, nullptr, 10);
  return of;
}

std::string watched_process::name(std::uint32_t tid) const {
  std::string text = read_all(task_path(tid, "comm"));
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

open_end watched_process::end_of(const std::string& what) const {
  open_end found{what, pid_};
  const std::string folder = "/proc/" + std::to_string(pid_);
  DIR* const files = ::opendir((folder + "/fd").c_str());
  if (files == nullptr) return found;
  while (const dirent* entry = ::readdir(files)) {  // NOLINT(concurrency-mt-unsafe): own stream
    const std::string fd(static_cast<const char*>(entry->d_name));
    if (target_of(std::string(folder).append("/fd/").append(fd)) != what) continue;
    const std::string info = read_all(std::string(folder).append("/fdinfo/").append(fd));
    const std::size_t flags = info.find("flags:");
    if (flags == std::string::npos) continue;
    const auto mode = std::strtoul(info.c_str() + flags + 6, nullptr, 8) & O_ACCMODE;
    found.reads = found.reads || mode != O_WRONLY;
    found.writes = found.writes || mode != O_RDONLY;
  }
  ::closedir(files);
  return found;
}

std::string watched_process::program() const {
  return target_of("/proc/" + std::to_string(pid_) + "/exe");
}

std::string watched_process::build_of(const mapped_code& part) {
  if (memory_.number() < 0) open_memory();
  const auto read = [this](std::uint64_t address, void* to, std::size_t bytes) {
    return read_memory(address, to, bytes) == bytes;
  };
  return lotus::detail::read_build_id(part.file_begin, read).digits;
}

std::vector<mapped_code> watched_process::code() const {
  std::vector<mapped_code> all;
  const std::string text = read_all("/proc/" + std::to_string(pid_) + "/maps");
  std::string_view rest = text;
  std::string path_before;
  std::uint64_t file_begin = 0;
  while (!rest.empty()) {
    const std::string line(take(rest, '\n'));
    // A line looks like "5566-7788 r-xp 00001000 08:01 1234 /path".
    char* at = nullptr;
    mapped_code part;
    part.begin = std::strtoull(line.c_str(), &at, 16);
    if (*at != '-') continue;
    part.end = std::strtoull(at + 1, &at, 16);
    const std::string_view behind(at);
    const std::size_t path = behind.find('/');
    if (behind.size() < 6 || path == std::string_view::npos) continue;
    part.file_offset = std::strtoull(at + 6, nullptr, 16);
    part.path = behind.substr(path);
    if (part.path != path_before || part.file_offset == 0) {
      file_begin = part.begin - part.file_offset;
      path_before = part.path;
    }
    part.file_begin = file_begin;
    if (behind[3] != 'x') continue;
    all.push_back(std::move(part));
  }
  return all;
}

}  // namespace lotus::tool
