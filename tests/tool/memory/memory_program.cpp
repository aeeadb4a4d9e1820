// Programs with known allocations; an argument selects one. memory_test.cpp and heaptrack_test.cpp
// start them.

#include <dlfcn.h>
#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <new>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "lotus/lotus.hpp"

namespace {

/// Makes the compiler believe that the block is used.
void* kept(void* block) {
  asm volatile("" : "+r"(block)::"memory");
  return block;
}

void families() {
  {
    LOTUS_SCOPE("Malloc");
    free(kept(malloc(100)));
  }
  {
    LOTUS_SCOPE("Calloc");
    free(kept(calloc(3, 70)));
  }
  {
    LOTUS_SCOPE("Realloc");
    void* block = kept(malloc(10));
    block = kept(realloc(block, 5000));
    block = kept(realloc(block, 20));
    free(block);
    free(kept(realloc(nullptr, 7)));
  }
  {
    LOTUS_SCOPE("Aligned");
    free(kept(aligned_alloc(256, 512)));
  }
  {
    LOTUS_SCOPE("Posix");
    void* block = nullptr;
    if (posix_memalign(&block, 4096, 333) != 0) abort();
    if (reinterpret_cast<std::uintptr_t>(block) % 4096 != 0) abort();
    free(kept(block));
  }
  {
    LOTUS_SCOPE("Memalign");
    free(kept(memalign(64, 65)));
  }
  {
    LOTUS_SCOPE("Valloc");
    free(kept(valloc(1000)));
  }
  {
    LOTUS_SCOPE("New");
    delete static_cast<std::uint64_t*>(kept(new std::uint64_t));
  }
  {
    LOTUS_SCOPE("NewArray");
    delete[] static_cast<char*>(kept(new char[1001]));
  }
  {
    LOTUS_SCOPE("NewAligned");
    struct alignas(128) wide {
      char bytes[256];
    };
    delete static_cast<wide*>(kept(new wide));
  }
  {
    LOTUS_SCOPE("Large");
    free(kept(malloc(std::size_t{50} << 20)));
  }
  {
    LOTUS_SCOPE("Nothing");
    free(nullptr);
  }
  {
    LOTUS_SCOPE("Refused");
    std::size_t too_much = SIZE_MAX / 2;
    asm volatile("" : "+r"(too_much));
    if (kept(malloc(too_much)) != nullptr || kept(calloc(too_much, 3)) != nullptr) abort();
    void* const block = kept(malloc(40));
    // `volatile` hides from g++ that realloc is used incorrectly, which is intended here.
    void* (*volatile reallocate)(void*, std::size_t) = realloc;
    if (reallocate(block, too_much) != nullptr) abort();
    free(block);
  }
  {
    LOTUS_SCOPE("Usable");
    auto* block = static_cast<char*>(kept(malloc(25)));
    const std::size_t usable = malloc_usable_size(block);
    if (usable < 25) abort();
    std::memset(block, 0x5A, usable);  // the program may write all usable bytes
    free(block);
  }
  {
    LOTUS_SCOPE("Outer");
    void* const before = kept(malloc(1000));
    {
      LOTUS_SCOPE("Inner");
      free(before);
      (void)kept(malloc(48));
    }
    void* const most = kept(malloc(3000));
    free(most);
  }
}

/// Allocates blocks of random sizes on four threads. A third of each thread's blocks are freed by
/// the next thread.
void random_allocations(unsigned seed, int each) {
  struct delivery {
    std::mutex lock;
    std::vector<void*> blocks;
  };
  delivery between[4];
  // Reserves the memory now: later allocations must not depend on the order in which threads run.
  for (delivery& to : between) to.blocks.reserve(static_cast<std::size_t>(each));
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(seed + t);
      std::vector<void*> own(64, nullptr);
      for (int i = 0; i < each; ++i) {
        LOTUS_SCOPE("Allocate");
        void*& place = own[random() % own.size()];
        const auto kind = random() % 6;
        const std::size_t bytes = random() % 100 == 0 ? random() % 1'000'000 : random() % 2000;
        if (kind == 0 && place != nullptr) {
          const std::lock_guard<std::mutex> guard(between[(t + 1) % 4].lock);
          between[(t + 1) % 4].blocks.push_back(place);
          place = nullptr;
        }
        if (kind == 1) {
          place = kept(realloc(place, bytes + 1));
        } else {
          free(place);
          place = kept(kind == 2   ? calloc(1, bytes)
                       : kind == 3 ? aligned_alloc(64, bytes)
                                   : malloc(bytes));
        }
        const std::lock_guard<std::mutex> guard(between[t].lock);
        for (void* block : between[t].blocks) free(block);
        between[t].blocks.clear();
      }
      for (void* block : own) free(block);
    });
  }
  for (std::thread& t : threads) t.join();
  for (delivery& left : between) {
    for (void* block : left.blocks) free(block);
  }
}

/// Two workers build batches, with caches, a warm-up and growing arrays; the consumer frees the
/// batches.
/// @param leaked  number of bytes per sample that are never freed.
void pipeline(int batches, std::size_t leaked) {
  struct made {
    int number;
    std::vector<std::unique_ptr<std::string>> samples;
  };
  std::mutex lock;
  std::condition_variable changed;
  std::deque<made> ready;
  std::atomic<int> next{0};
  std::vector<std::thread> workers;
  for (unsigned w = 0; w < 2; ++w) {
    workers.emplace_back([&, w] {
      std::mt19937 random(w + static_cast<unsigned>(getpid()));
      std::deque<std::string> cache;  // contains the last 20 batches
      for (int b = next++; b < batches; b = next++) {
        made batch{b, {}};
        {
          LOTUS_BATCH_PREPROCESSED(static_cast<std::uint64_t>(b));
          for (int s = 0; s < 8; ++s) {
            LOTUS_SCOPE("Decode");
            batch.samples.push_back(std::make_unique<std::string>(random() % 100'000, 'x'));
            if (leaked > 0) (void)kept(malloc(leaked));
            if (random() % 3 == 0) {
              cache.emplace_back(random() % 3000, 'c');
              if (cache.size() > 20) cache.pop_front();
            }
          }
        }
        std::unique_lock<std::mutex> guard(lock);
        changed.wait(guard, [&] { return ready.size() < 6; });
        ready.push_back(std::move(batch));
        changed.notify_all();
      }
    });
  }
  std::vector<double> losses;
  for (int i = 0; i < batches; ++i) {
    made batch;
    {
      LOTUS_BATCH_WAIT(static_cast<std::uint64_t>(i));
      std::unique_lock<std::mutex> guard(lock);
      changed.wait(guard, [&] { return !ready.empty(); });
      batch = std::move(ready.front());
      ready.pop_front();
      changed.notify_all();
    }
    LOTUS_BATCH_CONSUMED(static_cast<std::uint64_t>(batch.number));
    LOTUS_SCOPE("Train");
    losses.push_back(static_cast<double>(batch.samples.size()));
  }
  for (std::thread& w : workers) w.join();
}

void forks() {
  (void)kept(malloc(5000));  // both parent and child hold this block
  {
    LOTUS_SCOPE("Before");
    (void)kept(malloc(111));
  }
#ifdef __SANITIZE_ADDRESS__
  // libasan of g++ 12 does not handle the locks of its allocator in a fork. So this waits until the
  // drain thread has started and allocates nothing any more.
  while (std::system("grep -q lotus-drain /proc/$PPID/task/*/comm") != 0) {
  }
#endif
  void* const inherited = kept(malloc(70));
  LOTUS_SCOPE("Around");
  const pid_t child = fork();
  if (child == 0) {
    {
      LOTUS_SCOPE("Child");
      free(inherited);
      (void)kept(malloc(222));
    }
    std::thread([] {
      LOTUS_SCOPE("ChildThread");
      (void)kept(malloc(444));
    }).join();
    for (std::uint64_t i = 0; i < 40; ++i) {
      LOTUS_BATCH_PREPROCESSED(i);
      LOTUS_SCOPE("ChildLeak");
      (void)kept(malloc(32));
    }
    exit(0);
  }
  {
    LOTUS_SCOPE("Parent");
    free(inherited);
    (void)kept(malloc(333));
  }
  waitpid(child, nullptr, 0);
}

void until_killed() {
  for (std::uint64_t i = 0; i < 100; ++i) {
    LOTUS_BATCH_PREPROCESSED(i);
    LOTUS_SCOPE("Work");
    (void)kept(malloc(64));
    free(kept(malloc(1000)));
  }
  std::puts("ready");
  std::fflush(stdout);
  for (;;) pause();
}

void plugin(const char* path) {
  for (int i = 0; i < 3; ++i) {
    void* const object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (object == nullptr) abort();
    reinterpret_cast<void (*)()>(dlsym(object, "allocate_in_a_scope"))();
    dlclose(object);
  }
}

}  // namespace

int main(int count, char** arguments) {
  const std::string what = count > 1 ? arguments[1] : "";
  if (count > 2 && what == "random") random_allocations(7, std::atoi(arguments[2]));
  if (count > 2 && what == "leak") pipeline(std::atoi(arguments[2]), 64);
  if (count > 2 && what == "tidy") pipeline(std::atoi(arguments[2]), 0);
  if (count > 2 && what == "plugin") plugin(arguments[2]);
  if (what == "families") families();
  if (what == "fork") forks();
  if (what == "kill") until_killed();
  return 0;
}
