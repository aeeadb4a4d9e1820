// A program without markers. Its argument selects what its threads do; the shares of their time are
// known.
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): sigaction
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#if defined(__clang__)
  #define PLANTED_FUNCTION __attribute__((noinline))
#else
  #define PLANTED_FUNCTION __attribute__((noinline, noclone))
#endif

namespace {

using clock_type = std::chrono::steady_clock;
using std::chrono::milliseconds;

volatile std::uint64_t result;
clock_type::time_point end_of_program;

bool goes_on() {
  return clock_type::now() < end_of_program;
}

}  // namespace

/// Uses the CPU for about `ms` of its own CPU time.
PLANTED_FUNCTION void burn(int ms) {
  timespec begin{};
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
  do {
    std::uint64_t x = 1;
    for (int i = 0; i < 20'000; ++i) x = x * 6364136223846793005ULL + 1442695040888963407ULL;
    result = x;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  } while ((now.tv_sec - begin.tv_sec) * 1000 + (now.tv_nsec - begin.tv_nsec) / 1'000'000 < ms);
}

/// A queue of batches, filled by worker threads.
class Loader {
 public:
  PLANTED_FUNCTION int next() {
    std::unique_lock<std::mutex> hold(mutex_);
    not_empty_.wait(hold, [this] { return !ready_.empty(); });
    const int batch = ready_.front();
    ready_.pop_front();
    return batch;
  }
  PLANTED_FUNCTION void put(int batch) {
    {
      const std::lock_guard<std::mutex> hold(mutex_);
      ready_.push_back(batch);
    }
    not_empty_.notify_one();
  }

 private:
  std::mutex mutex_;
  std::condition_variable not_empty_;
  std::deque<int> ready_;
};

PLANTED_FUNCTION void make_batch() {
  burn(8);
  usleep(2000);
}

PLANTED_FUNCTION void worker_loop(Loader& loader) {
  for (int i = 0; goes_on(); ++i) {
    make_batch();
    loader.put(i);
  }
  loader.put(-1);
}

/// Two workers build batches; the main thread waits for them and does little work.
PLANTED_FUNCTION void pool() {
  Loader loader;
  std::vector<std::thread> workers;
  for (int i = 0; i < 2; ++i) workers.emplace_back(worker_loop, std::ref(loader));
  while (loader.next() >= 0) burn(1);
  for (std::thread& worker : workers) worker.join();
}

std::mutex tasks_mutex;
std::condition_variable tasks_change;
std::deque<std::function<void()>> tasks;
int built = 0;

/// A thread of a pool that runs any tasks and knows nothing of batches.
PLANTED_FUNCTION void task_loop() {
  while (true) {
    std::function<void()> task;
    {
      std::unique_lock<std::mutex> hold(tasks_mutex);
      tasks_change.wait(hold, [] { return !tasks.empty() || !goes_on(); });
      if (tasks.empty()) return;
      task = std::move(tasks.front());
      tasks.pop_front();
    }
    task();
  }
}

PLANTED_FUNCTION void build_batch(int batch) {
  burn(6 + batch % 2);
  const std::lock_guard<std::mutex> hold(tasks_mutex);
  ++built;
  tasks_change.notify_all();
}

PLANTED_FUNCTION void submit(int batch) {
  const std::lock_guard<std::mutex> hold(tasks_mutex);
  tasks.emplace_back([batch] {
    build_batch(batch);
    result = static_cast<std::uint64_t>(batch);  // avoids a tail call, which hides the lambda
  });
  tasks_change.notify_all();
}

PLANTED_FUNCTION void get_batch(int batch) {
  std::unique_lock<std::mutex> hold(tasks_mutex);
  tasks_change.wait(hold, [batch] { return built > batch; });
}

/// The consumer waits for a pool of threads, in a function that does no other work.
PLANTED_FUNCTION void task_pool() {
  std::vector<std::thread> workers;
  for (int i = 0; i < 2; ++i) workers.emplace_back(task_loop);
  for (int i = 0; i < 3; ++i) submit(i);
  for (int i = 0; goes_on(); ++i) {
    submit(i + 3);
    get_batch(i);
    burn(1);
  }
  tasks_change.notify_all();
  for (std::thread& worker : workers) worker.join();
}

/// Holds a lock for most of the time, and sleeps meanwhile.
PLANTED_FUNCTION void hold_lock(std::mutex& lock) {
  while (goes_on()) {
    const std::lock_guard<std::mutex> hold(lock);
    std::this_thread::sleep_for(milliseconds(20));
  }
}

PLANTED_FUNCTION void want_lock(std::mutex& lock) {
  while (goes_on()) {
    {
      const std::lock_guard<std::mutex> hold(lock);
      burn(1);
    }
    usleep(500);  // lets the other thread have the lock
  }
}

std::mutex table_lock;

PLANTED_FUNCTION void locks() {
  std::thread holder(hold_lock, std::ref(table_lock));
  want_lock(table_lock);
  holder.join();
}

/// Writes into a pipe every 10 ms. The main thread waits for this when it reads from the pipe.
PLANTED_FUNCTION void write_pipe(int fd) {
  while (goes_on()) {
    burn(2);
    usleep(8000);
    if (write(fd, "x", 1) != 1) break;
  }
  close(fd);
}

PLANTED_FUNCTION void pipes() {
  int ends[2];
  if (pipe(ends) != 0) abort();
  std::thread writer(write_pipe, ends[1]);
  char c = 0;
  while (read(ends[0], &c, 1) == 1) burn(1);
  writer.join();
}

PLANTED_FUNCTION void receive(int fd) {
  char c = 0;
  while (read(fd, &c, 1) == 1) burn(1);
  close(fd);
}

/// Receives from a process that it starts, through a Unix socket or a TCP connection.
PLANTED_FUNCTION void sockets(bool is_tcp) {
  int ends[2];
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* const at = reinterpret_cast<sockaddr*>(&address);
  socklen_t bytes = sizeof address;
  const int door = socket(AF_INET, SOCK_STREAM, 0);
  if (bind(door, at, bytes) != 0 || listen(door, 1) != 0) abort();
  if (getsockname(door, at, &bytes) != 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) abort();
  const pid_t child = fork();
  if (child == 0) {
    const int out = is_tcp ? socket(AF_INET, SOCK_STREAM, 0) : ends[1];
    if (is_tcp && connect(out, at, bytes) != 0) abort();
    write_pipe(out);
    _exit(0);
  }
  close(ends[1]);
  receive(is_tcp ? accept(door, nullptr, nullptr) : ends[0]);
  waitpid(child, nullptr, 0);
}

/// Receives from whichever of two descriptors is ready, as a server does, until both are at the
/// end.
PLANTED_FUNCTION void receive_any(const char* call, int first, int second, int own) {
  std::vector<pollfd> all{{first, POLLIN, 0}, {second, POLLIN, 0}};
  const int set = epoll_create1(0);
  if (own >= 0) all.push_back({own, POLLIN, 0});
  for (const pollfd& one : all) {
    epoll_event of{};
    of.events = EPOLLIN;
    of.data.fd = one.fd;
    epoll_ctl(set, EPOLL_CTL_ADD, one.fd, &of);
  }
  for (int open = 2; open > 0;) {
    int fd = -1;
    if (std::strcmp(call, "epoll") == 0) {
      epoll_event ready{};
      if (epoll_wait(set, &ready, 1, -1) == 1) fd = ready.data.fd;
    } else if (std::strcmp(call, "select") == 0) {
      fd_set reads{};
      for (const pollfd& one : all) {
        if (one.fd >= 0) FD_SET(one.fd, &reads);
      }
      select(64, &reads, nullptr, nullptr, nullptr);
      for (const pollfd& one : all) {
        if (one.fd >= 0 && FD_ISSET(one.fd, &reads)) fd = one.fd;
      }
    } else {
      poll(all.data(), all.size(), -1);
      for (const pollfd& one : all) {
        if (one.revents != 0) fd = one.fd;
      }
    }
    char c = 0;
    if (fd < 0 || read(fd, &c, 1) == 1) continue;
    epoll_ctl(set, EPOLL_CTL_DEL, fd, nullptr);
    for (pollfd& one : all) {
      if (one.fd == fd) one.fd = -1;
    }
    --open;
  }
}

/// Receives from a process that it starts, through two pipes.
/// @param is_woken  whether the program also waits for an event of its own.
PLANTED_FUNCTION void two_pipes(const char* call, bool is_woken) {
  int first[2];
  int second[2];
  if (pipe(first) != 0 || pipe(second) != 0) abort();
  const pid_t child = fork();
  if (child == 0) {
    while (goes_on()) {
      burn(2);
      usleep(8000);
      if (write(first[1], "x", 1) != 1 || write(second[1], "x", 1) != 1) break;
    }
    _exit(0);
  }
  close(first[1]);
  close(second[1]);
  receive_any(call, first[0], second[0], is_woken ? eventfd(0, 0) : -1);
  waitpid(child, nullptr, 0);
}

/// Receives from another program that listens at a port of this machine.
PLANTED_FUNCTION void client(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) abort();
  pollfd waits{fd, POLLIN, 0};
  char c = 0;
  while (poll(&waits, 1, -1) == 1 && read(fd, &c, 1) == 1) burn(1);
  close(fd);
}

PLANTED_FUNCTION void sleeps() {
  while (goes_on()) {
    burn(5);
    usleep(15'000);
  }
}

/// A program with its own profiler. The profiler's signals must arrive although lotus-tool samples
/// the program.
PLANTED_FUNCTION int profiled() {
  static volatile sig_atomic_t ticks = 0;
  struct sigaction action {};
  action.sa_handler = [](int) { ticks = ticks + 1; };
  action.sa_flags = SA_RESTART;
  sigaction(SIGPROF, &action, nullptr);
  const itimerval every{{0, 10'000}, {0, 10'000}};
  setitimer(ITIMER_PROF, &every, nullptr);
  const std::clock_t before = std::clock();
  burn(400);
  const std::clock_t used = std::clock() - before;
  const itimerval off{};
  setitimer(ITIMER_PROF, &off, nullptr);
  // The profiler sends a signal after each 10 ms of CPU time. The program succeeds if at least half
  // of these signals arrive.
  return ticks >= used / (CLOCKS_PER_SEC / 100) / 2 ? 0 : 1;
}

int main(int count, char** arguments) {
  if (count < 3) return 2;
  end_of_program = clock_type::now() + milliseconds(std::atoi(arguments[2]));
  const auto is = [&](const char* what) { return std::strcmp(arguments[1], what) == 0; };
  if (is("pool")) pool();
  if (is("tasks")) task_pool();
  if (is("burn")) burn(std::atoi(arguments[2]));
  if (is("locks")) locks();
  if (is("pipes")) pipes();
  if (is("unix") || is("tcp")) sockets(is("tcp"));
  for (const char* const call : {"poll", "select", "epoll"}) {
    if (is(call)) two_pipes(call, false);
  }
  if (is("woken")) two_pipes("epoll", true);
  if (is("outside")) receive_any("epoll", 0, 3, -1);
  if (is("client")) client(std::atoi(arguments[2]));
  if (is("sleeps")) sleeps();
  if (is("profiled")) return profiled();
  if (is("status")) return 7;
  if (is("killed")) raise(SIGKILL);
  return 0;
}
