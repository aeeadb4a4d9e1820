// Loaders that are slow because of how CPUs are used.
#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "planted_causes.hpp"
#include "planted_loader.hpp"

namespace planted {

// Work without markers, in functions that samples name.
__attribute__((noinline)) void add_checksum(double ms) {
  burn(ms);
}
__attribute__((noinline)) void load_index(double ms) {
  burn(ms);
}
__attribute__((noinline)) void update_weights(double ms) {
  burn(ms);
}

// The same for waits. The empty statement keeps the function in its callers' stacks.
__attribute__((noinline)) void write_checkpoint(double ms) {
  nap(ms);
  asm volatile("");
}
__attribute__((noinline)) void close_decoder(double ms) {
  nap(ms);
  asm volatile("");
}

void touch_new_pages() {
  constexpr std::size_t bytes = 16 << 20;
  void* const pages =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  for (std::size_t at = 0; at < bytes; at += 4096) static_cast<char*>(pages)[at] = 1;
  munmap(pages, bytes);
}

const cause_map& cpu_causes() {
  static const cause_map all{
      {"checkpoint",
       [] {
         loader l;
         l.batches = batches_of(slow ? 12 : 5);
         l.make = [](int) { step("Load", [] { nap(5); }); };
         l.run([](int) { slow ? write_checkpoint(12) : nap(1); });
       }},
      {"teardown",
       [] {
         loader l;
         l.batches = batches_of(slow ? 6 : 3);
         l.make = [](int) {
           step("Load", [] { nap(4); });
           if (slow) close_decoder(8);
         };
         l.run([](int) { train(2); });
       }},
      {"round-trips",
       [] {
         loader l;
         l.batches = batches_of(slow ? 10 : 3);
         l.make = [](int) {
           for (int i = 0; i < (slow ? 12 : 1); ++i) step("Fetch", [] { nap(1.5); });
         };
         l.run([](int) { train(3); });
       }},
      {"bound",
       [] {
         loader l;
         l.workers = 4;
         l.batches = batches_of(slow ? 9 : 5);
         l.begin = [](int) {
           cpu_set_t one;
           CPU_ZERO(&one);
           CPU_SET(0, &one);
           if (slow) sched_setaffinity(0, sizeof one, &one);
         };
         l.make = [](int) { step("Decode", [] { burn(8); }); };
         l.run([](int) { train(0, 1); });
       }},
      {"many-workers",
       [] {
         const int cpus = static_cast<int>(std::thread::hardware_concurrency());
         loader l;
         l.workers = slow ? 6 * cpus : cpus;
         l.batches = std::max(60, batches_of(4));
         l.make = [](int) { step("Decode", [] { burn(7); }); };
         l.run([](int) { train(0, 0.5); });
       }},
      {"bound-later",
       [] {
         loader l;
         l.workers = 3;
         l.batches = batches_of(slow ? 9 : 5);
         l.make = [](int i) {
           step("Decode", [] { burn(8); });
           if (!slow || i != 2) return;
           cpu_set_t one;
           CPU_ZERO(&one);
           CPU_SET(0, &one);
           for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
             sched_setaffinity(std::stoi(thread.path().filename()), sizeof one, &one);
           }
         };
         l.run([](int) { train(0, 1); });
       }},
      {"main-spins",
       [] {
         std::atomic<bool> done{false};
         std::thread watching([&] {
           while (!done) {
             burn(0.3);
             nap(10);
           }
         });
         std::thread consuming([&] {
           loader l;
           l.batches = batches_of(slow ? 8 : 5);
           l.make = [](int) { step("Decode", [] { burn(7); }); };
           l.run([](int) { train(1); });
           done = true;
         });
         while (slow && !done) {
         }
         consuming.join();
         watching.join();
       }},
      {"workers-spin",
       [] {
         loader l;
         l.workers = 4;
         l.batches = batches_of(slow ? 10 : 5);
         l.spins = slow;
         const auto began = std::chrono::steady_clock::now();
         if (slow) {  // something lists the files of a batch in 9 ms
           l.may_begin = [began](int i, int) {
             return std::chrono::steady_clock::now() - began > std::chrono::milliseconds(9 * i);
           };
         }
         l.make = [](int) { step("Decode", [] { burn(4); }); };
         l.run([](int) { train(0, 1); });
       }},
      {"consumer-spins",
       [] {
         loader l;
         l.batches = batches_of(slow ? 8 : 6);
         l.consumer_spins = slow;
         l.make = [](int) { step("Decode", [] { burn(10); }); };
         l.run([](int) { train(1, 1); });
       }},
      {"slow-worker",
       [] {
         static thread_local bool is_slow = false;
         loader l;
         l.workers = 4;
         l.batches = std::max(60, batches_of(slow ? 10 : 4));
         l.begin = [](int w) { is_slow = slow && w == 2; };
         l.make = [](int) { step("Load", [] { nap(is_slow ? 60 : 6); }); };
         l.run([](int) { train(2); });
       }},
      {"library-threads",
       [] {
         loader l;
         l.batches = batches_of(slow ? 24 : 8);
         l.make = [](int) {
           step("Read", [] { nap(2); });
           step("Resize", [] {
             if (!slow) return burn(6);
             std::vector<std::thread> threads;
             for (int t = 0; t < 8; ++t) threads.emplace_back([] { burn(4); });
             for (std::thread& t : threads) t.join();
           });
         };
         l.run([](int) { train(0, 2); });
       }},
      {"spinning-pool",
       [] {
         std::atomic<bool> stop{false};
         std::vector<std::thread> pool;
         for (int t = 0; slow && t < 4; ++t) {
           pool.emplace_back([&] {
             while (!stop) {
             }
           });
         }
         loader l;
         l.batches = batches_of(slow ? 24 : 8);
         l.make = [](int) { step("Decode", [] { burn(7); }); };
         l.run([](int) { train(0, 2); });
         stop = true;
         for (std::thread& t : pool) t.join();
       }},
      {"spinners-beside-step",
       [] {
         std::atomic<bool> stop{false};
         std::vector<std::thread> helpers;
         for (int t = 0; slow && t < 6; ++t) {
           helpers.emplace_back([&] {
             while (!stop) {
             }
           });
         }
         loader l;
         l.batches = batches_of(slow ? 16 : 12);
         l.make = [](int) { step("Load", [] { nap(2); }); };
         l.run([](int) { train(1, 1); });
         stop = true;
         for (std::thread& t : helpers) t.join();
       }},
      {"checksum",
       [] {
         loader l;
         l.batches = batches_of(slow ? 9 : 6);
         l.make = [](int) {
           step("Read", [] { nap(2); });
           if (slow) add_checksum(7);
         };
         l.run([](int) { train(0, 0.5); });
       }},
      {"no-scopes",
       [] {
         loader l;
         l.batches = batches_of(slow ? 9 : 3);
         l.make = [](int) { slow ? add_checksum(8) : nap(3); };
         l.run([](int) { train(1); });
       }},
      {"no-scopes-asleep",
       [] {
         loader l;
         l.batches = batches_of(slow ? 5 : 2);
         l.make = [](int) { slow ? close_decoder(9) : nap(3); };
         l.run([](int) { train(1); });
       }},
      {"index",
       [] {
         loader l;
         l.batches = batches_of(5);
         std::once_flag once;
         l.begin = [&once](int) {
           std::call_once(once, [] {
             if (slow) load_index(1000);
           });
         };
         l.make = [](int) { step("Read", [] { nap(3); }); };
         l.run([](int) { train(4); });
       }},
      {"manifest",
       [] {
         for (int epoch = 0; epoch < 6; ++epoch) {
           if (slow && epoch > 0) load_index(150);
           loader l;
           l.batches = 25;
           l.make = [](int) { step("Load", [] { nap(3); }); };
           l.run([](int) { train(4); });
         }
       }},
      {"optimizer",
       [] {
         loader l;
         l.batches = batches_of(slow ? 10 : 3);
         l.make = [](int) { step("Read", [] { nap(3); }); };
         l.run([](int) { slow ? update_weights(9) : burn(0.1); });
       }},
      {"page-faults",
       [] {
         loader l;
         l.batches = batches_of(slow ? 10 : 6);
         l.make = [](int) { step("Resize", [] { slow ? touch_new_pages() : burn(4); }); };
         l.run([](int) { train(0, 0.5); });
       }},
      {"new-grids", [] {
         loader l;
         l.batches = batches_of(slow ? 12 : 6);
         l.make = [](int) {
           step("Read", [] { nap(2); });
           slow ? touch_new_pages() : burn(2);  // has no marker
         };
         l.run([](int) { train(0, 0.5); });
       }}};
  return all;
}

}  // namespace planted
