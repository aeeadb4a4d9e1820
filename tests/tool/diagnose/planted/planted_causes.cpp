// A loader with one planted cause of slowness. Usage: planted_causes CAUSE slow|cured SECONDS
#include "planted_causes.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <future>
#include <mutex>
#include <thread>
#include <vector>

#include "lotus/lotus.hpp"
#include "planted_loader.hpp"

using namespace planted;

// In the global namespace, so that samples show their names.
std::mutex codec_mutex;
std::mutex params_mutex;
pthread_rwlock_t table_lock = PTHREAD_RWLOCK_INITIALIZER;

namespace {

/// Its lock has no symbol.
struct cache {
  std::mutex guard;
};

__attribute__((noinline)) void put_in_cache(cache& to) {
  std::unique_lock<std::mutex> guard(to.guard, std::defer_lock);
  if (slow) guard.lock();
  nap(5);
}

const cause_map& causes() {
  static const cause_map all{
      {"unpickle",
       [] {
         loader l;
         l.batches = batches_of(slow ? 9 : 4);
         l.make = [](int) { step("Load", [] { nap(4); }); };
         if (slow) l.unpack = [](int) { burn(6); };
         l.run([](int) { train(3); });
       }},
      {"unpickle-2",
       [] {
         loader l;
         l.workers = 3;
         l.batches = batches_of(slow ? 24 : 8);
         l.make = [](int) {
           step("Load", [] { burn(2); });
           step("Read", [] { nap(3); });
         };
         if (slow) l.unpack = [](int) { burn(16); };
         l.run([](int) { train(8); });
       }},
      {"poll",
       [] {
         loader l;
         l.batches = batches_of(slow ? 11 : 3);
         if (slow) l.poll_ms = 10;
         l.make = [](int) { step("Load", [] { nap(2); }); };
         l.run([](int) { train(1); });
       }},
      {"poll-2",
       [] {
         loader l;
         l.workers = 3;
         l.batches = batches_of(slow ? 27 : 8);
         if (slow) l.poll_ms = 20;
         l.make = [](int) {
           step("Load", [] { nap(7); });
           step("Crop", [] { burn(1); });
         };
         l.run([](int) { train(7); });
       }},
      {"pass",
       [] {
         loader l;
         l.batches = batches_of(slow ? 9 : 4);
         l.pass_on = [](int) { burn(slow ? 8 : 0.1); };
         l.make = [](int) { step("Load", [] { nap(4); }); };
         l.run([](int) { train(3); });
       }},
      {"pass-2",
       [] {
         loader l;
         l.workers = 3;
         l.batches = batches_of(slow ? 15 : 8);
         l.pass_on = [](int) { nap(slow ? 15 : 0.5); };
         l.make = [](int) {
           step("Load", [] { nap(5); });
           step("Crop", [] { burn(2); });
         };
         l.run([](int) { train(7); });
       }},
      {"windows",
       [] {
         loader l;
         l.workers = 16;
         l.ahead = 100;
         l.batches = std::max(48, batches_of(7) / 16 * 16);
         if (slow) l.may_begin = [](int i, int received) { return i / 16 * 16 <= received; };
         l.make = [](int) { step("Load", [] { nap(30); }); };
         l.run([](int) { train(4); });
       }},
      {"windows-2",
       [] {
         loader l;
         l.workers = 4;
         l.ahead = 100;
         l.batches = std::max(36, batches_of(10) / 6 * 6);
         if (slow) l.may_begin = [](int i, int received) { return i / 6 * 6 <= received; };
         l.make = [](int) {
           step("Load", [] { burn(2); });
           step("Read", [] { nap(14); });
         };
         l.run([](int) { train(7); });
       }},
      {"epochs",
       [] {
         for (int epoch = 0; epoch < std::max(3, static_cast<int>(seconds * 5)); ++epoch) {
           loader l;
           l.batches = 20;
           l.begin = [epoch](int) {
             if (slow || epoch == 0) nap(100);
           };
           l.make = [](int) { step("Load", [] { nap(6); }); };
           l.run([](int) { train(4); });
         }
       }},
      {"lock",
       [] {
         loader l;
         l.workers = 4;
         l.batches = batches_of(slow ? 6 : 3);
         l.make = [](int) {
           step("OpenCodec", [] {
             const auto guard = held(codec_mutex);
             nap(5);
           });
           step("Demux", [] {
             const auto guard = held(codec_mutex);
             nap(0.2);
           });
           step("Decode", [] { nap(3); });
         };
         l.run([](int) { train(1); });
       }},
      {"file-lock",
       [] {
         loader l;
         l.workers = 4;
         l.batches = batches_of(slow ? 5 : 2);
         l.make = [](int) {
           step("Load", [] {
             const int file = ::open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
             if (slow) ::flock(file, LOCK_EX);
             nap(5);
             ::close(file);
           });
         };
         l.run([](int) { train(1); });
       }},
      {"static-lock",
       [] {
         static struct {
           int shown[8];
           std::mutex guard;
         } shelf;
         loader l;
         l.workers = 3;
         l.batches = batches_of(slow ? 5 : 2);
         l.make = [](int) {
           step("Load", [] {
             const auto guard = held(shelf.guard);
             nap(5);
           });
         };
         l.run([](int) { train(1); });
       }},
      {"audit-lock",
       [] {
         loader l;
         l.workers = 3;
         l.batches = batches_of(slow ? 7 : 4);
         l.make = [](int) {
           step("Read", [] { nap(6); });
           step("Audit", [] {
             const auto guard = held(codec_mutex);
             nap(6.5);
           });
         };
         l.run([](int) { train(1); });
       }},
      {"readers-lock",
       [] {
         loader l;
         l.workers = 4;
         l.batches = batches_of(slow ? 4 : 2);
         l.make = [](int i) {
           const auto locked = [](auto lock, double ms) {
             if (slow) lock(&table_lock);
             nap(ms);
             if (slow) pthread_rwlock_unlock(&table_lock);
           };
           step("Read", [] { nap(1); });
           step("Normalize", [&] { locked(pthread_rwlock_rdlock, i % 4 == 0 ? 12 : 2); });
           step("Update", [&] { locked(pthread_rwlock_wrlock, 0.3); });
         };
         l.run([](int) { train(0.5); });
       }},
      {"writer",
       [] {
         std::atomic<bool> stop{false};
         std::thread writer([&] {  // has no markers
           while (!stop) {
             pthread_rwlock_wrlock(&table_lock);
             nap(slow ? 12 : 0.1);
             pthread_rwlock_unlock(&table_lock);
             nap(slow ? 1 : 10);
           }
         });
         loader l;
         l.workers = 3;
         l.batches = batches_of(slow ? 5 : 2);
         l.make = [](int) {
           step("Lookup", [] {
             pthread_rwlock_rdlock(&table_lock);
             nap(1);
             pthread_rwlock_unlock(&table_lock);
           });
         };
         l.run([](int) { train(1); });
         stop = true;
         writer.join();
       }},
      {"save",
       [] {
         loader l;
         l.batches = batches_of(slow ? 12 : 4);
         l.make = [](int) { step("Load", [] { nap(3); }); };
         l.run([](int) {
           burn(2);
           std::async(std::launch::async, [] { step("Save", [] { nap(slow ? 10 : 0.1); }); }).get();
         });
       }},
      {"lock-2",
       [] {
         loader l;
         l.workers = 3;
         l.batches = batches_of(slow ? 8 : 4);
         l.make = [](int) {
           step("Read", [] { nap(2); });
           step("Tokenize", [] {
             const auto guard = held(codec_mutex);
             nap(6);
           });
         };
         l.run([](int) { train(0.5); });
       }},
      {"heap-lock",
       [] {
         std::vector<cache> shared(1);
         loader l;
         l.workers = 4;
         l.batches = batches_of(slow ? 6 : 3);
         l.make = [&shared](int) {
           step("Lookup", [&shared] { put_in_cache(shared[0]); });
           step("Decode", [] { nap(2); });
         };
         l.run([](int) { train(1); });
       }},
      {"rate",
       [] {
         limited_service service{10, 15};
         loader l;
         l.workers = 4;
         l.batches = batches_of(slow ? 10 : 5);
         l.make = [&service](int) { step("Get", [&service] { service.call(); }); };
         l.run([](int) { train(2); });
       }},
      {"rate-2",
       [] {
         limited_service service{8, 24};
         loader l;
         l.workers = 6;
         l.batches = batches_of(slow ? 8 : 5);
         l.make = [&service](int) {
           step("Get", [&service] { service.call(); });
           step("Decode", [] { burn(1); });
         };
         l.run([](int) { train(3); });
       }},
      {"rand",
       [] {
         loader l;
         l.workers = 4;
         l.batches = batches_of(slow ? 10 : 4);
         l.make = [](int) {
           step("Augment", [] {
             unsigned sum = 0;
             unsigned own = 1;
             for (int i = 0; i < 200'000; ++i) {
               own = own * 1664525U + 1013904223U;
               // NOLINTNEXTLINE(misc-predictable-rand): its lock is the planted cause
               sum += slow ? static_cast<unsigned>(std::rand()) : own;
             }
             if (sum == 0) std::puts("");
           });
           step("Read", [] { nap(1); });
         };
         l.run([](int) { train(0.5); });
       }},
      {"unnotified",
       [] {
         loader l;
         l.batches = batches_of(slow ? 20 : 5);
         if (slow) l.look_again_ms = 20;
         l.make = [](int) { step("Load", [] { nap(5); }); };
         l.run([](int) { train(2); });
       }},
      {"forks",
       [] {
         loader l;
         l.workers = 1;
         l.batches = batches_of(14);
         l.make = [](int i) {
           const auto load = [i] {
             LOTUS_STAGE("Load", static_cast<unsigned>(i));
             nap(12);
           };
           std::vector<std::thread> threads;
           for (int t = 0; t < (slow ? 6 : 1); ++t) threads.emplace_back(load);
           for (std::thread& t : threads) t.join();
         };
         l.run([](int) { train(1); });
       }},
      {"step-lock",
       [] {
         std::atomic<bool> stop{false};
         std::thread saver([&] {
           while (!stop) {
             {
               const std::lock_guard<std::mutex> guard(params_mutex);
               nap(slow ? 12 : 0.1);
             }
             nap(slow ? 0.3 : 10);
           }
         });
         loader l;
         l.batches = batches_of(slow ? 16 : 5);
         l.make = [](int) { step("Load", [] { nap(3); }); };
         l.run([](int) {
           step("Forward", [] { burn(2); });
           step("Update", [] {
             const std::lock_guard<std::mutex> guard(params_mutex);
             burn(1);
           });
         });
         stop = true;
         saver.join();
       }},
      {"cache",
       [] {
         loader l;
         l.batches = batches_of(slow ? 11 : 4);
         const int full = l.batches / 3;
         l.make = [full](int i) {
           step("Read", [&] { nap(slow && i >= full ? 30 : 0.5); });
           step("Decode", [] { nap(2); });
         };
         l.run([](int) { train(3); });
       }},
      {"grows",
       [] {
         loader l;
         l.batches = std::max(40, batches_of(slow ? 11 : 4));
         const int n = l.batches;
         l.make = [n](int i) {
           step("Read", [&] { nap(slow ? 1 + 40.0 * i / n : 1); });
           step("Decode", [] { nap(2); });
         };
         l.run([](int) { train(3); });
       }},
      {"rare",
       [] {
         loader l;
         l.batches = std::max(64, batches_of(slow ? 9 : 4));
         l.make = [](int i) {
           step("Read", [&] { nap(slow && i % 16 == 7 ? 120 : 3); });
           step("Decode", [] { nap(2); });
         };
         l.run([](int) { train(3); });
       }},
      {"pipe",
       [] {
         int ends[2];
         if (pipe(ends) != 0) std::exit(1);
         loader l;
         l.workers = 1;
         l.batches = batches_of(slow ? 10 : 4);
         const pid_t writer = fork();
         std::array<char, 4096> block{};
         for (int i = 0; writer == 0 && i < l.batches; ++i) {
           nap(slow ? 9 : 0.1);
           if (write(ends[1], block.data(), block.size()) < 0) break;
         }
         if (writer == 0) _exit(0);
         close(ends[1]);
         l.make = [&](int) {
           step("Read", [&] {
             for (ssize_t got = 1, sum = 0; got > 0 && sum < 4096; sum += got) {
               got = read(ends[0], block.data(), block.size() - static_cast<std::size_t>(sum));
             }
           });
           step("Decode", [] { burn(2); });
         };
         l.run([](int) { train(1); });
         close(ends[0]);
         waitpid(writer, nullptr, 0);
       }},
      {"preprocessing",
       [] {
         loader l;
         l.batches = batches_of(10);
         l.make = [](int) {
           step("Load", [] { nap(14); });
           step("Crop", [] { nap(5); });
         };
         l.run([](int) { train(2); });
       }},
      {"step", [] {
         loader l;
         l.batches = batches_of(10);
         l.make = [](int) { step("Load", [] { nap(4); }); };
         l.run([](int) { train(10); });
       }}};
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  slow = std::strcmp(argv[2], "slow") == 0;
  seconds = std::atof(argv[3]);
  for (const cause_map* const some :
       {&causes(), &cpu_causes(), &stage_causes(), &asking_causes()}) {
    const auto at = some->find(argv[1]);
    if (at == some->end()) continue;
    at->second();
    return 0;
  }
  return 2;
}
