// Tests diagnose with programs that are slow for a known reason, and with the same programs cured.
// What it says of the slow one must name the cause; of the cured one it must not.
#include <cstddef>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "at_once.hpp"
#include "catch.hpp"
#include "tool/diagnose/contradictions.hpp"
#include "tool/tool_test.hpp"

using namespace lotus::tool_test;

namespace {

/// How a program is recorded: at the same time as others, because it sleeps; alone, because it
/// computes, or others that do would delay it; alone by `lotus-tool run`, with samples of threads.
enum class how_recorded { with_others, alone, by_run };

struct cause {
  std::string name;
  std::string verdict;
  std::string words;  ///< part of the first screen's reason
  how_recorded how = how_recorded::with_others;
};

const std::vector<cause>& causes() {
  static const std::vector<cause> all{
      {"unpickle", "hand-over-bound", "the wait contains work", how_recorded::alone},
      {"unpickle-2", "hand-over-bound", "the wait contains work", how_recorded::alone},
      {"poll", "hand-over-bound", "it polls"},
      {"poll-2", "hand-over-bound", "it polls"},
      {"pass", "hand-over-bound", "passes batches on too slowly", how_recorded::alone},
      {"pass-2", "hand-over-bound", "passes batches on too slowly", how_recorded::alone},
      {"windows", "hand-over-bound", "every 16th batch"},
      {"windows-2", "hand-over-bound", "every 6th batch", how_recorded::alone},
      {"epochs", "start-up-bound", "each epoch starts new workers"},
      {"lock", "lock-bound", "codec_mutex held by OpenCodec"},
      {"lock-2", "lock-bound", "codec_mutex held by Tokenize"},
      {"heap-lock", "lock-bound", "put_in_cache held by Lookup"},
      {"file-lock", "lock-bound", "Load waits for the file lock /"},
      {"static-lock", "lock-bound", "::shelf held by Load"},
      {"writer", "lock-bound", "the lock table_lock held by code outside of all operations"},
      {"audit-lock", "lock-bound", "Audit waits for the lock codec_mutex"},
      {"readers-lock", "lock-bound", "waits for the lock table_lock"},
      {"save", "consumer-bound", "while another thread is in Save", how_recorded::alone},
      {"rate", "preprocessing-bound", "calls of Get end at a steady"},
      {"rate-2", "preprocessing-bound", "calls of Get end at a steady"},
      {"rand", "preprocessing-bound", "wait for each other in rand", how_recorded::alone},
      {"unnotified", "hand-over-bound", "the wait lasts for a fixed time"},
      {"timed-wait", "hand-over-bound", "waits that last 25"},
      {"used-windows", "hand-over-bound", "every 8th batch"},
      {"used-windows-2", "hand-over-bound", "every 5th batch"},
      {"asked-parts", "stage-bound", "each batch is built only when the consumer asks for it"},
      {"asked-parts-2", "stage-bound", "each batch is built only when the consumer asks for it"},
      {"forks", "preprocessing-bound", "6 threads work on the same batch or item in Load at once"},
      {"step-lock", "consumer-bound", "step waits for the lock params_mutex", how_recorded::alone},
      {"cache", "preprocessing-bound", "then 30"},
      {"grows", "preprocessing-bound", "Read takes longer and longer"},
      {"rare", "order-bound", "at every 16th batch"},
      {"bound", "preprocessing-bound", "4 threads share 1 CPU", how_recorded::alone},
      {"many-workers", "preprocessing-bound", "more of them only take turns", how_recorded::alone},
      {"bound-later", "preprocessing-bound", "3 threads share 1 CPU", how_recorded::alone},
      {"main-spins", "preprocessing-bound", "most of it in the main thread", how_recorded::by_run},
      {"workers-spin", "preprocessing-bound",
       "outside of their markers (mostly `planted::loader::work`", how_recorded::by_run},
      {"consumer-spins", "preprocessing-bound", "(it spins)", how_recorded::alone},
      {"slow-worker", "order-bound", "times as long as the others"},
      {"library-threads", "preprocessing-bound", "code outside of all markers used",
       how_recorded::alone},
      {"spinning-pool", "preprocessing-bound", "code outside of all markers used",
       how_recorded::alone},
      {"spinners-beside-step", "preprocessing-bound",
       "Let these threads sleep while they have nothing", how_recorded::by_run},
      {"page-faults", "preprocessing-bound", "page faults per batch", how_recorded::alone},
      {"new-grids", "preprocessing-bound", "page faults per batch", how_recorded::by_run},
      {"pipe", "preprocessing-bound", "more threads at the same pipe gain nothing"},
      {"stage-pipe", "stage-bound", "what is at the other end of its pipe"},
      {"stage-rate", "stage-bound", "calls of Fetch end at a steady 125 per second"},
      {"stage-polls", "preprocessing-bound", "between their batches, the thread of Decode slept"},
      {"dispenser", "preprocessing-bound", "something before LOTUS_BATCH_PREPROCESSED(i) is slow"},
      {"thieves", "preprocessing-bound", "of 3 workers built one on average"},
      {"uneven", "preprocessing-bound", "the batches are distributed unevenly"},
      {"equal-stages", "stage-bound", "it hardly helps if only one of them becomes faster"},
      {"stages-lock", "lock-bound", "waits for the lock codec_mutex held by"},
      {"served-in-turn", "preprocessing-bound", "calls of Audit end at a steady"},
      {"stage-copy", "preprocessing-bound",
       "without markers (mostly `planted::", how_recorded::by_run},
      {"checksum", "preprocessing-bound", "mostly on a CPU in `planted::add_checksum`",
       how_recorded::by_run},
      {"no-scopes", "preprocessing-bound", "mostly on a CPU in `planted::add_checksum`",
       how_recorded::by_run},
      {"no-scopes-asleep", "preprocessing-bound", "mostly asleep in planted::close_decoder",
       how_recorded::by_run},
      {"index", "start-up-bound", "used a CPU mostly in `planted::load_index`",
       how_recorded::by_run},
      {"manifest", "consumer-bound", "did something else (mostly `planted::load_index`",
       how_recorded::by_run},
      {"optimizer", "consumer-bound", "use the CPU mostly in `planted::update_weights`",
       how_recorded::by_run},
      {"checkpoint", "consumer-bound", "consumer's steps wait mostly in", how_recorded::by_run},
      {"teardown", "preprocessing-bound", "mostly asleep in", how_recorded::by_run},
      {"round-trips", "preprocessing-bound", "12 calls for each batch", how_recorded::by_run},
      {"short-threads", "preprocessing-bound", "64 for each batch", how_recorded::by_run},
      {"read-in-wait", "hand-over-bound", "its own thread waits for a pipe"},
      {"late-reader", "preprocessing-bound", "such as a thread that hands out batches"},
      {"buffers", "preprocessing-bound",
       "only 2 batches may be between GetBuffer and the end of the", how_recorded::alone},
      {"tokens", "preprocessing-bound", "only 3 batches may be between GetToken and the end of",
       how_recorded::alone},
      {"pool", "preprocessing-bound", "go on; the others wait", how_recorded::by_run},
      {"one-asked-for", "preprocessing-bound", "built only when the consumer asks for it",
       how_recorded::alone},
      {"few-in-flight", "prefetch-bound", "too few batches are in flight"},
      {"stage-worker", "stage-bound", "times as long as the others"},
      {"preprocessing", "preprocessing-bound", "Load sleeps"},
      {"step", "consumer-bound", "own work"}};
  return all;
}

/// The folders where a slow program and the cured one are recorded.
struct pair_of_runs {
  const cause* of = nullptr;
  temp_dir slow{};
  temp_dir cured{};
  int status = -1;  ///< of the recordings that were made at the same time as others'
};

/// Records the program into the folder. Returns its status.
int record(const cause& of, const char* how, const temp_dir& dir) {
  std::filesystem::remove_all(dir.path());
  std::filesystem::create_directory(dir.path());
  const std::string program =
      std::string(PLANTED_CAUSES_PROGRAM) + ' ' + of.name + ' ' + how + " 1";
  const std::string command =
      of.how == how_recorded::by_run
          ? LOTUS_TOOL_PROGRAM " run --dir '" + dir.path() + "' -- " + program + " >/dev/null 2>&1"
          : "LOTUS_LOG_FILE='" + dir.path() + "/lotustrace_log' " + program;
  return std::system(command.c_str());
}

/// Returns a pair of folders for each cause, where those are recorded that sleep.
std::deque<pair_of_runs> recorded_pairs() {
  std::deque<pair_of_runs> pairs;
  std::vector<pair_of_runs*> sleeping;
  for (const cause& of : causes()) {
    pairs.emplace_back().of = &of;
    if (of.how == how_recorded::with_others) sleeping.push_back(&pairs.back());
  }
  lotus_test::at_once(sleeping.size(), 6, [&sleeping](std::size_t i) {
    pair_of_runs& one = *sleeping[i];
    one.status = record(*one.of, "slow", one.slow);
    if (one.status == 0) one.status = record(*one.of, "cured", one.cured);
  });
  return pairs;
}

/// Returns what diagnose says of the recorded program.
json diagnosis_of(const cause& of, const char* how, const temp_dir& dir) {
  const result r = run_well({"diagnose", dir.path(), "--json", "-q"});
  json found = parse_json(r.out);
  const std::vector<std::string> wrong = contradictions(found, dir.path());
  INFO(of.name << ' ' << how << '\n' << r.out);
  CHECK(wrong == std::vector<std::string>());
  CHECK(forbidden_predictions(found, dir.path()) == std::vector<std::string>());
  return found;
}

/// Whether other programs used so much of the CPUs that a verdict may be missing.
bool is_disturbed(const json& found) {
  return found.has("other_programs_cpus") && found["other_programs_cpus"].number() > 0.2;
}

bool names(const json& found, const cause& of) {
  return contains(found["screen"]["why"].text(), of.words);
}

/// Returns the text of the finding, if the diagnosis has it.
std::string text_of(const json& diagnosis, const std::string& id) {
  for (const json& one : diagnosis["findings"].array()) {
    if (one["id"].text() == id) return one["text"].text();
  }
  return {};
}

/// Checks that compare repeats what the diagnoses of both runs say, and contradicts neither.
void check_comparison(const json& cured, const json& slow, const temp_dir& before,
                      const temp_dir& after) {
  const json answer =
      parse_json(run_well({"compare", before.path(), after.path(), "--json", "-q"}).out);
  const json& told = answer["conclusions"][0];
  std::string facts;
  for (const json& one : told["facts"].array()) facts += one.text() + '\n';
  if (!cured["verdict"].is_null() && !slow["verdict"].is_null()) {
    const std::string limits = "bottleneck: " + cured["verdict"].text() + " before, " +
                               slow["verdict"].text() + " after\n";
    CHECK(contains(facts, limits) == (cured["verdict"].text() != slow["verdict"].text()));
  }
  for (const json& one : slow["findings"].array()) {
    const std::string id = one["id"].text();
    const bool of_threads = id == "cpu-limit" || id == "bound-threads" || id == "unmarked-threads";
    if (of_threads) CHECK_FALSE(contains(told["sentence"].text(), " share "));
    // Of the texts of a finding, compare has the evidence, but not what to do.
    if (!of_threads && id.compare(0, 4, "wait") != 0) continue;
    const bool is_new = text_of(cured, id).empty();
    const std::string evidence = one["text"].text();
    CHECK(contains(facts, "after: " + evidence.substr(0, evidence.find(". "))) == is_new);
  }
}

}  // namespace

TEST_CASE("the first screen names a planted cause, and only if it is there") {
  int disturbed = 0;
  std::vector<std::string> wrong;
  for (const pair_of_runs& runs : recorded_pairs()) {
    const cause& of = *runs.of;
    const bool is_recorded = of.how == how_recorded::with_others;
    if (is_recorded) REQUIRE(runs.status == 0);
    // Another program may delay recordings so much that they show something else.
    std::optional<json> recorded;
    for (int more = 3;; --more) {
      if (more < 3 || !is_recorded) REQUIRE(record(of, "slow", runs.slow) == 0);
      recorded.emplace(diagnosis_of(of, "slow", runs.slow));
      const json& found = *recorded;
      const bool right =
          names(found, of) && !found["verdict"].is_null() && found["verdict"].text() == of.verdict;
      if (right) break;
      if (more > 0 && (more == 3 || is_disturbed(found))) continue;
      if (is_disturbed(found)) {
        ++disturbed;
      } else {
        wrong.push_back(of.name + ": " + found["sentence"].text());
      }
      break;
    }
    if (of.name == "preprocessing" || of.name == "step") continue;  // have no cure
    if (!is_recorded) REQUIRE(record(of, "cured", runs.cured) == 0);
    json cured = diagnosis_of(of, "cured", runs.cured);
    if (is_recorded && names(cured, of)) {  // the others may have delayed it
      REQUIRE(record(of, "cured", runs.cured) == 0);
      cured = diagnosis_of(of, "cured", runs.cured);
    }
    INFO(of.name << " cured: " << cured["sentence"].text());
    CHECK_FALSE(names(cured, of));
    check_comparison(cured, *recorded, runs.cured, runs.slow);
  }
  CHECK(wrong == std::vector<std::string>());
  if (disturbed > 0) {
    lotus_test::skip("other programs used the CPUs while " + std::to_string(disturbed) +
                     " causes were recorded");
  }
}
