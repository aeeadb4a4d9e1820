// Waits for locks inside libraries. Usage: library_locks_program LOG_FILE LOCK [US], where LOCK is
// "malloc" (the lock of the only arena of glibc's malloc), "sqlite" (the mutex of a connection
// that all threads share) or "shared" (a std::shared_mutex that is locked for US microseconds).
#include <malloc.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <thread>
#include <vector>

#include "lotus/lotus.hpp"
#ifdef WITH_SQLITE
  #include <sqlite3.h>
#endif

namespace {

std::atomic<bool> stopping{false};

template <class Work>
void run_threads(const Work& work) {
  constexpr int count = 4;
  std::vector<std::thread> threads;
  threads.reserve(count);
  for (int i = 0; i < count; ++i) {
    threads.emplace_back([&work, i] {
      for (int n = i; !stopping; ++n) work(n);
    });
  }
  std::this_thread::sleep_for(std::chrono::seconds(2));
  stopping = true;
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

/// Allocates blocks that are too large for the cache of a thread.
extern "C" __attribute__((noinline)) void allocate_images(int n) {
  constexpr std::size_t blocks = 200;
  void* all[blocks];
  for (std::size_t i = 0; i < blocks; ++i) {
    all[i] = std::malloc(2000 + (static_cast<std::size_t>(n) * 37 + i * 101) % 60000);
  }
  for (void* const block : all) std::free(block);
}

#ifdef WITH_SQLITE
extern "C" __attribute__((noinline)) void query_labels(sqlite3* database, int n) {
  sqlite3_stmt* select = nullptr;
  sqlite3_prepare_v2(database, "select sum(v * v) from t where v % 7 = ?", -1, &select, nullptr);
  sqlite3_bind_int(select, 1, n % 7);
  while (sqlite3_step(select) == SQLITE_ROW) {
  }
  sqlite3_finalize(select);
}

void share_connection() {
  sqlite3* database = nullptr;
  sqlite3_open_v2(":memory:", &database,
                  SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX, nullptr);
  sqlite3_exec(database,
               "create table t(v); with recursive c(x) as (select 1 union all select x + 1 from c "
               "where x < 3000) insert into t select x from c",
               nullptr, nullptr, nullptr);
  run_threads([database](int n) {
    LOTUS_SCOPE("Query");
    query_labels(database, n);
  });
  sqlite3_close(database);
}
#endif

/// Readers and writers of one lock, in a loader with four workers. Nearly all time of a worker is
/// spent waiting for the lock, which another worker has locked during its Fetch.
std::shared_mutex users;

void build_batches(std::chrono::microseconds fetch) {
  constexpr std::uint32_t batches = 150;
  std::mutex mutex;
  std::condition_variable built;
  std::vector<bool> is_built(batches);
  std::atomic<std::uint32_t> next{0};
  const auto build = [&] {
    for (std::uint32_t i = next++; i < batches; i = next++) {
      {
        LOTUS_BATCH_PREPROCESSED(i);
        LOTUS_SCOPE("Join");
        for (int item = 0; item < 8; ++item) {
          // Otherwise, a thread may take the lock again and again, before those that wait wake up.
          std::this_thread::sleep_for(std::chrono::microseconds(20));
          {
            LOTUS_SCOPE("Lookup");
            const std::shared_lock<std::shared_mutex> lock(users);
          }
          LOTUS_SCOPE("Insert");
          const std::unique_lock<std::shared_mutex> lock(users);
          LOTUS_SCOPE("Fetch");
          std::this_thread::sleep_for(fetch);
        }
      }
      const std::lock_guard<std::mutex> lock(mutex);
      is_built[i] = true;
      built.notify_one();
    }
  };
  std::vector<std::thread> workers;
  for (int w = 0; w < 4; ++w) workers.emplace_back(build);
  for (std::uint32_t i = 0; i < batches; ++i) {
    {
      LOTUS_BATCH_WAIT(i);
      std::unique_lock<std::mutex> lock(mutex);
      built.wait(lock, [&] { return is_built[i]; });
    }
    LOTUS_BATCH_CONSUMED(i);
  }
  for (std::thread& worker : workers) worker.join();
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  lotus::options options;
  options.log_file = std::string(argv[1]);
  options.wait_samples_per_s = 1000;
  const std::string lock = argv[2];
  if (lock == "malloc") mallopt(M_ARENA_MAX, 1);
  if (!lotus::start(options)) return 1;
  if (lock == "malloc") {
    run_threads([](int n) {
      LOTUS_SCOPE("Allocate");
      allocate_images(n);
    });
  }
  if (lock == "shared" && argc > 3) build_batches(std::chrono::microseconds(std::atoi(argv[3])));
#ifdef WITH_SQLITE
  if (lock == "sqlite") share_connection();
#endif
  lotus::stop();
}
