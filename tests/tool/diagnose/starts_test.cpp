// Tests what is said about starts: of a run, of its workers, and what belongs to several batches.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "tool/diagnose/logged_facts.hpp"

using namespace lotus::tool_test;

TEST_CASE("an operation before the first batch is a start, and no work that lacks a batch") {
  planted_logs logs(8);
  const std::int64_t loaded = 600 * ms;
  logs.op(5, "LoadIndex", 0, loaded);
  logs.off_cpu(5, loaded - 1000, loaded - 100'000, 0);
  std::int64_t now = 0;
  std::int64_t built = loaded;
  for (std::int64_t i = 0; i < 100; ++i) {
    slept(logs, 1, i, built + 10'000, 2 * ms);
    built += 2 * ms + 10'000;
    now = received_when(logs, i, now, built + 20'000) + ms;
  }
  const answer a = diagnose(logs);
  INFO(a.text());
  CHECK(a.verdict() == "start-up-bound");
  CHECK(contains(a.text(), "Before that, LoadIndex takes 600.0 ms."));
}

TEST_CASE("an operation between batches is told, whether it serves one batch or several") {
  for (const bool each : {true, false}) {
    planted_logs logs(8);
    std::int64_t now = 0;
    std::int64_t built = 0;
    for (std::int64_t i = 0; i < 200; ++i) {
      // Either a part of each batch is outside of its mark, or one read serves 20 batches.
      const std::int64_t read = each ? 4 * ms : i % 20 == 0 ? 80 * ms : 0;
      if (read > 0) {
        logs.op(1, "ReadGroup", built + 5000, read);
        logs.off_cpu(1, built + read, read - 20'000, 0);
      }
      built += read + 10'000;
      logs.made(1, i, built, ms / 4);
      built += ms / 4;
      now = received_when(logs, i, now, built + 20'000) + ms;
    }
    const answer a = diagnose(logs);
    INFO(a.text());
    CHECK(a.verdict() == "preprocessing-bound");
    CHECK(contains(a.text(), "of their time in ReadGroup, " +
                                 std::string(each ? "4.000 ms per call" : "80.00 ms per call")));
  }
}

TEST_CASE("workers that are started again and again within an epoch are found") {
  for (const bool again : {true, false}) {
    planted_logs logs(8);
    std::int64_t now = 0;
    for (std::int64_t part = 0; part < 6; ++part) {
      // Two threads need 60 ms before their first batch; or the same threads pause for as long.
      const int first = again ? static_cast<int>(1 + 2 * part) : 1;
      std::int64_t free[2] = {now + 60 * ms, now + 60 * ms};
      for (std::int64_t i = 30 * part; i < 30 * part + 30; ++i) {
        std::int64_t& thread = free[i % 2];
        slept(logs, first + static_cast<int>(i % 2), i, thread, 4 * ms);
        thread += 4 * ms + 10'000;
        now = received_when(logs, i, now, thread + 10'000) + ms;
      }
    }
    const answer a = diagnose(logs);
    INFO(a.text());
    CHECK((a.verdict() == "start-up-bound") == again);
    CHECK(found(a, "workers-start-again").empty() == !again);
    CHECK(found(a, "nobody-builds").empty() == again);
  }
}

TEST_CASE("a worker with a share of its own is compared with others while these work") {
  planted_logs logs(8);
  std::vector<std::pair<std::int64_t, std::int64_t>> ready;  // the time, the batch
  for (std::int64_t worker = 0; worker < 3; ++worker) {
    const std::int64_t took = (worker == 1 ? 16 : 4) * ms;
    for (std::int64_t i = 0; i < 60; ++i) {
      const std::int64_t start = i * (took + 10'000);
      slept(logs, 1 + static_cast<int>(worker), 60 * worker + i, start, took);
      ready.emplace_back(start + took, 60 * worker + i);
    }
  }
  std::sort(ready.begin(), ready.end());
  std::int64_t now = 0;
  for (const auto& [at, i] : ready) {
    received(logs, i, now, std::max(now + 2000, at + 20'000));
    now = std::max(now + 2000, at + 20'000) + ms / 2;
  }
  const answer a = diagnose(logs);
  INFO(a.text());
  CHECK(contains(a.text(), "needs 16.00 ms for a batch, 4 times as long as the others"));
}

TEST_CASE("the operation that fills the consumer's steps is named") {
  for (const bool most : {true, false}) {
    planted_logs logs(8);
    std::int64_t now = 5 * ms;
    for (std::int64_t i = 0; i < 80; ++i) {
      slept(logs, 1, i, now - 4 * ms, 2 * ms);
      received(logs, i, now, now + 50'000);
      logs.op(0, "Upload", now + 100'000, (most ? 8 : 3) * ms / 2);
      if (!most) logs.op(0, "Collate", now + 2 * ms, 3 * ms - 200'000);
      now += 5 * ms;
    }
    const answer a = diagnose(logs);
    INFO(a.text());
    CHECK(a.verdict() == "consumer-bound");
    CHECK(contains(a.text(), "Upload takes 81 % of the time of the consumer's steps") == most);
    CHECK(contains(found(a, "step-operation"),
                   "Collate takes 57 % of the time of the consumer's steps") == !most);
    CHECK(contains(a.text(), "If one of them prepares data") == !most);
  }
}

TEST_CASE("what the consumer does between epochs is told apart from its steps") {
  for (const bool pauses : {true, false}) {
    planted_logs logs;
    logs.cpus(8);
    std::int64_t now = 5 * ms;
    for (std::int64_t i = 0; i < 120; ++i) {
      if (i % 40 == 0 && i > 0) now += (pauses ? 200 : 1) * ms;
      slept(logs, 1, i % 40, now - 4 * ms, 2 * ms);
      received(logs, i % 40, now, now + 50'000);
      now += 5 * ms;
    }
    const answer a = diagnose(logs);
    INFO(a.text());
    CHECK(contains(found(a, "pauses-between-epochs"), "400.2 ms in all, 200.1 ms each") == pauses);
    CHECK(found(a, "pauses-between-epochs").empty() == !pauses);
  }
}

TEST_CASE("workers that meet at a barrier are under no limit of batches in flight") {
  planted_logs logs;
  logs.cpus(8);
  std::int64_t round = 0;
  std::int64_t now = 0;
  for (std::int64_t i = 0; i < 120; i += 3) {
    // The slowest of a round lets all begin the next one, just after it is received.
    for (std::int64_t n = 0; n < 3; ++n) {
      const std::int64_t took = (n == 2 ? 12 : 3) * ms;
      const int thread = 1 + static_cast<int>((i / 3 + n) % 3);
      slept(logs, thread, i + n, round + n * 20'000, took);
      const std::int64_t at = std::max(now + 2000, round + n * 20'000 + took + 30'000);
      received(logs, i + n, now, at);
      now = at + ms / 5;
    }
    round += 12 * ms + 100'000;
  }
  const answer a = diagnose(logs);
  INFO(a.text());
  CHECK(a.verdict() != "prefetch-bound");
  CHECK(found(a, "workers-wait-for-consumer").empty());
  CHECK_FALSE(found(a, "workers-begin-late").empty());
}

TEST_CASE("a lock whose holders fill the run once limits it, although few waits are seen") {
  for (const bool once : {true, false}) {
    planted_logs logs;
    logs.cpus(4);
    // Two threads compute in Lookup, all of the time or about half of it.
    std::int64_t now = 0;
    for (std::int64_t i = 0; i < 100; ++i) {
      const int thread = 1 + static_cast<int>(i % 2);
      const std::int64_t start = i * (once ? 5 : 9) * ms;
      logs.op(thread, "Lookup", start, 7 * ms);
      logs.made(thread, i, start - 1000, 7 * ms + 2000);
      logs.off_cpu(thread, start + 7 * ms - 1000, 2 * ms, 0);
      if (i % 3 == 0) {
        logs.wait_sample(thread, start + ms, "lock", "table_lock", 77, 1 + (thread % 2));
      }
      const std::int64_t at = std::max(now + 2000, start + 7 * ms + 20'000);
      received(logs, i, now, at);
      now = at + ms;
    }
    const answer a = diagnose(logs);
    INFO(a.text());
    CHECK((a.verdict() == "lock-bound") == once);
  }
}

TEST_CASE("a consumer that builds several batches in one wait builds them itself") {
  planted_logs logs(8);
  std::int64_t now = 0;
  for (std::int64_t window = 0; window < 20; ++window) {
    const std::int64_t asked = now;
    for (std::int64_t k = 0; k < 8; ++k) {
      logs.made(0, 8 * window + k, now + 10'000, 6 * ms);
      logs.op(0, "ReadCube", now + 20'000, 6 * ms - 20'000);
      logs.off_cpu(0, now + 6 * ms, 6 * ms - 200'000, 0);
      now += 6 * ms + 10'000;
    }
    for (std::int64_t k = 0; k < 8; ++k) {
      const std::int64_t from = k == 0 ? asked : now;
      now += 10'000;
      logs.waited(0, 8 * window + k, from, now - from);
      logs.used(0, 8 * window + k, now);
      now += 4 * ms;
    }
  }
  const answer a = diagnose(logs);
  INFO(a.text());
  CHECK(a.verdict() == "preprocessing-bound");
  CHECK(contains(a.text(), "batches are built on the consumer's own thread"));
  CHECK(contains(a.text(), "batches built ahead by"));
  CHECK(contains(a.text(), "ReadCube                          60 %"));
}

TEST_CASE("calls of one thread may be served in succession while those of others wait") {
  for (const bool limited : {true, false}) {
    planted_logs logs(8);
    generator random(3);
    constexpr std::size_t threads = 4;
    std::int64_t free[threads] = {};  // when each thread asks again
    std::int64_t turn = 0;
    std::int64_t now = 0;
    std::int64_t next_batch = 0;
    std::size_t own = 0;
    // A thread that was served is mostly served again. The others wait meanwhile.
    for (std::int64_t served = 0; served < 240; ++served) {
      if (random() % 6 == 0) own = random() % threads;
      const std::int64_t start = free[own];
      const std::int64_t noise = limited ? 0 : static_cast<std::int64_t>(random() % (12 * ms));
      turn = std::max(turn, start) + 6 * ms + noise;
      const int log = 1 + static_cast<int>(own);
      logs.made(log, next_batch, start, turn - start + 10'000);
      logs.op(log, "GetTile", start + 1000, turn - start - 1000);
      logs.off_cpu(log, turn, turn - start - 10'000, 0);
      free[own] = turn + 20'000;
      now = received_when(logs, next_batch, now, turn + 30'000) + ms / 10;
      ++next_batch;
    }
    const answer a = diagnose(logs);
    INFO(a.text());
    CHECK(contains(found(a, "calls-at-a-rate"),
                   "calls of GetTile end at a steady 166 per second") == limited);
    if (limited) CHECK(found(a, "slow-worker").empty());
  }
}

TEST_CASE("a few clusters of slow batches have no period") {
  for (const bool all_through : {true, false}) {
    planted_logs logs(8);
    generator random(4);
    std::int64_t built = 0;
    std::int64_t now = 0;
    for (std::int64_t i = 0; i < 200; ++i) {
      const bool slow = i % (all_through ? 9 : 3) == 0 && (all_through || i % 60 < 15);
      const std::int64_t took =
          (slow ? 60 * ms : 4 * ms) + static_cast<std::int64_t>(random() % (3 * ms));
      slept(logs, 1, i, built + 10'000, took);
      built += took + 10'000;
      now = received_when(logs, i, now, built + 20'000) + ms;
    }
    const answer a = diagnose(logs);
    INFO(a.text());
    CHECK(contains(found(a, "changes-over-time"), "at every 9th batch") == all_through);
    CHECK(contains(found(a, "changes-over-time"), "at 20 batches") == !all_through);
  }
}

TEST_CASE("processes at the other ends of many pipes are no other programs") {
  for (const bool many : {true, false}) {
    planted_logs logs(2);
    std::int64_t built = 0;
    std::int64_t now = 0;
    for (std::int64_t i = 0; i < 80; ++i) {
      logs.made(1, i, built + 10'000, 15 * ms);
      logs.op(1, "PdfToText", built + 11'000, 15 * ms - 2000);
      logs.off_cpu(1, built + 15 * ms, 14 * ms, 0);
      for (const std::int64_t part : {4, 9}) {
        const std::int64_t at = built + part * ms;
        many ? logs.wait_sample(1, at, "pipe", "pipe:[" + std::to_string(i) + ']', 0, 0)
             : logs.wait_sample(1, at, "sleep", 10 * ms);
      }
      built += 15 * ms + 10'000;
      now = received_when(logs, i, now, built + 20'000) + ms;
    }
    logs.cpu_time(0, 0, 0);
    logs.cpu_time(now, 80 * ms, now / 10);
    const answer a = diagnose(logs);
    INFO(a.text());
    CHECK(contains(a.text(), "waits for 80 pipes during") == many);
    CHECK(found(a, "many-pipes").empty() == !many);
    CHECK_FALSE((many && contains(a.text(), "Record again on an idle machine")));
    CHECK_FALSE((many && suggests(a, "workers")));
  }
}

TEST_CASE("a faster consumer gains only what the downloads of others allow") {
  struct downloads {
    const char* what;
    std::int64_t takes;      ///< time of the download for 25 batches, which take 81 ms
    bool at_once = false;    ///< whether two downloads overlap
    const char* waits = "";  ///< what wait samples show
    std::string threads{};   ///< "each": each download has a thread of its own
    bool may_limit = true;
  };
  for (const downloads& of :
       {downloads{"one thread", 70 * ms},
        downloads{"a thread for each", 70 * ms, false, "", "each"},
        downloads{"short ones", 25 * ms, false, "", "", false},
        downloads{"two at once", 100 * ms, true, "", "each", false},
        downloads{"asleep", 70 * ms, false, "sleep"},
        downloads{"waiting for others", 70 * ms, false, "condition", "", false}}) {
    planted_logs logs(8);
    std::int64_t now = 0;
    std::int64_t shard = -of.takes;
    for (std::int64_t i = 0; i < 300; ++i) {
      if (i % 25 == 0) {
        // The next shard is downloaded while the batches of this one are used.
        const int thread = of.threads == "each" ? 10 + static_cast<int>(i / 25) : 10;
        shard = std::max(now, shard + of.takes / (of.at_once ? 2 : 1));
        logs.op(thread, "DownloadShard", shard, of.takes - 1000);
        logs.off_cpu(thread, shard + of.takes - 2000, of.takes - 100'000, 0);
        for (std::int64_t at = 5 * ms; *of.waits != 0 && at < of.takes; at += 10 * ms) {
          logs.wait_sample(thread, shard + at, of.waits, "shard", 0, 0);
        }
      }
      logs.made(1, i, now + 1000, ms / 4);
      now = received_when(logs, i, now, now + ms / 4 + 10'000) + 3 * ms;
      logs.off_cpu(0, now - 1000, 3 * ms - 200'000, 0);
    }
    const answer a = diagnose(logs);
    INFO(of.what << '\n' << a.text());
    REQUIRE(a.verdict() == "consumer-bound");
    CHECK(contains(a.text(), "the consumer's step 2x faster"));
    CHECK(contains(a.text(), "only if DownloadShard keeps up") == of.may_limit);
    // At 1.25 times the speed, the batches of a shard would take 66 ms, and the download 70 ms.
    const result r = run_well({"whatif", a.logs->path(), "--json"});
    for (const json& one : parse_json(r.out)["changes"].array()) {
      if (!one["change"].has("step")) continue;
      const double now_per_s = a.whole["achieved_batches_per_s"].number();
      CHECK((one["low"].number() < 1.18 * now_per_s) == of.may_limit);
      CHECK(one["low"].number() > 1.1 * now_per_s);
    }
  }
}

TEST_CASE("what workers do between batches is told, and a verdict is given") {
  for (const bool archives : {true, false}) {
    planted_logs logs(8);
    std::int64_t now = 0;
    std::int64_t free_ns[2] = {};
    for (std::int64_t i = 0; i < 200; ++i) {
      const int turn = static_cast<int>(i % 2);
      const std::int64_t start = free_ns[turn] + (i == 1 ? 3 * ms : 10'000);
      slept(logs, 1 + turn, i, start, 4 * ms);
      free_ns[turn] = start + 4 * ms + 20'000;
      if (archives) {
        logs.op(1 + turn, "Archive", free_ns[turn], 6 * ms);
        logs.off_cpu(1 + turn, free_ns[turn] + 6 * ms, 6 * ms - 50'000, 0);
        free_ns[turn] += 6 * ms;
      }
      now = received_when(logs, i, now, start + 4 * ms + 10'000) + ms / 2;
    }
    const answer a = diagnose(logs);
    INFO(a.text());
    CHECK(a.verdict() == "preprocessing-bound");
    CHECK(contains(a.text(), "spend 59 % of their time in Archive, 6.000 ms per call") == archives);
  }
}

TEST_CASE("a start-up that happens once is no limit of a run of long steps") {
  for (const bool each_epoch : {true, false}) {
    planted_logs logs(8);
    std::int64_t now = 0;
    for (int epoch = 0; epoch < 4; ++epoch) {
      const std::int64_t start = epoch == 0 || each_epoch ? 200 * ms : 0;
      for (std::int64_t i = 0; i < 60; ++i) {
        const std::int64_t ready = now + (i == 0 ? start : 0);
        slept(logs, 1 + static_cast<int>(i % 2), i, ready - (i == 0 ? 0 : 2 * ms), 2 * ms);
        now = received_when(logs, i, now, ready + (i == 0 ? 2 * ms : 0) + 10'000) + 3 * ms;
      }
    }
    const answer a = diagnose(logs);
    INFO(a.text());
    CHECK(a.verdict() == (each_epoch ? "start-up-bound" : "consumer-bound"));
  }
}
