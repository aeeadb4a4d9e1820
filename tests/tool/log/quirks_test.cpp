// Tests that the unusual logs in the folder `quirks` of the test data are handled as specified.
#include <string>
#include <vector>

#include "catch.hpp"
#include "tool/tool_test.hpp"

using namespace lotus::tool_test;

namespace {

struct quirk {
  const char* name;
  const char* diagnostics;  ///< text that stderr must contain; if empty, stderr must be empty
  bool malformed;           ///< whether a line is skipped, so that --strict fails
  int slices;               ///< number of slices and instants (events X and i) that viz must write
};

// The run has one batch with a wait, a step, its preprocessing and five operations: 8 slices.
const std::vector<quirk> quirks{
    {"good", "", false, 8},
    {"good_coarse", "", false, 8},
    {"empty_worker_file", "lotustrace_log_worker_pid_101: empty", false, 2},
    {"only_newlines", "2 blank lines ignored", false, 2},
    {"blank_lines_and_crlf", "lines end in CR LF", false, 8},
    {"no_final_newline", "", false, 8},
    {"space_after_comma", "spaces after commas ignored", false, 8},
    {"space_before_name", "pid_101:2: the name does not begin with S", true, 3},
    {"four_fields_later_line", "pid_101:7: more than three fields", true, 8},
    {"four_fields_first_line", "pid_101:1: more than three fields", true, 8},
    {"two_fields_line", "pid_101:7: two fields", true, 8},
    {"torn_last_line", "pid_101:7: incomplete last line ignored", false, 8},
    {"text_in_ts", "pid_101:7: START is not a whole number", true, 8},
    {"float_in_dur", "pid_101:7: DURATION is not a whole number", true, 8},
    {"negative_dur", "pid_101:7: DURATION is negative", true, 8},
    {"ts_over_int64", "pid_101:7: START is out of range", true, 8},
    {"empty_name", "pid_101:7: the name is empty", true, 8},
    {"name_without_S", "pid_101:7: the name does not begin with S", true, 8},
    {"quoted_name", "pid_101:7: more than three fields", true, 8},
    {"unbalanced_quote", "", false, 10},
    {"batch_id_missing", "pid_101:7: the batch number is not a whole number", true, 8},
    {"batch_no_underscore", "pid_100:3: a batch record without a batch number", true, 8},
    {"batch_id_two_parts", "pid_101:7: the batch number is not a whole number", true, 8},
    {"batch_id_text", "pid_101:7: the batch number is not a whole number", true, 8},
    {"queued_lines", "", false, 9},
    {"op_class_named_Batch", "", false, 9},
    {"op_class_named_BatchWaiter", "", false, 9},
    {"preprocessed_never_consumed", "", false, 9},
    {"ids_repeat_two_epochs", "", false, 16},
    {"name_not_ending_in_number", "worker_pid_abc: ignored: the name of a log", false, 8},
    {"name_with_extension", "worker_pid_102.bak: ignored: the name of a log", false, 8},
    {"time_log_of_the_scripts", "", false, 8},
    {"name_no_role_but_number", "", false, 6},
    {"other_files_ignored", "", false, 8},
    {"subdirs", "", false, 16},
    {"logs_above_empty_subdir", "", false, 8},
    {"out_name_json", "", false, 8},
    {"out_name_has_prefix", "", false, 8},
    {"out_dir_missing", "", false, 8},
    {"trace_dir_missing", "", false, 8},
};

int slices_of(const std::string& json) {
  const auto document = parse_json(json);
  int slices = 0;
  for (const auto& event : document["traceEvents"].array()) {
    const std::string phase = event["ph"].text();
    if (phase == "X" || phase == "i") ++slices;
  }
  return slices;
}

}  // namespace

TEST_CASE("each unusual input is drawn, reported and counted as specified") {
  for (const quirk& q : quirks) {
    const std::string dir = traces() + "/quirks/" + q.name;
    const result drawn = run({"viz", dir, "-o", "-"});
    INFO(q.name << ": " << drawn.err);
    CHECK(drawn.status == 0);
    CHECK(slices_of(drawn.out) == q.slices);
    if (std::string(q.diagnostics).empty()) {
      CHECK(drawn.err.empty());
    } else {
      CHECK(contains(drawn.err, q.diagnostics));
    }
    const bool reported =
        contains(drawn.err, "malformed line") || contains(drawn.err, "incomplete");
    CHECK(reported == (q.malformed || contains(q.diagnostics, "incomplete")));

    const result strict = run({"viz", dir, "-o", "-", "--strict"});
    CHECK(strict.status == (q.malformed ? 1 : 0));
    CHECK(strict.out.empty() == q.malformed);

    const result stats = run({"stats", dir, "--json"});
    CHECK(stats.status == 0);
    parse_json(stats.out);
    CHECK(contains(stats.err, q.diagnostics));
    CHECK(run({"stats", dir, "--strict"}).status == (q.malformed ? 1 : 0));
  }
}

TEST_CASE("a directory without logs is an error of one line") {
  const temp_dir empty;
  for (const std::string& dir :
       {empty.path(), traces() + "/quirks/other_prefix", empty.path() + "/nowhere"}) {
    const result r = run({"viz", dir, "-o", empty.path() + "/out.json"});
    INFO(r.err);
    CHECK(r.status == 1);
    CHECK(std::count(r.err.begin(), r.err.end(), '\n') == 1);
    CHECK(empty.names().empty());
    CHECK(run({"stats", dir}).status == 1);
  }
  CHECK(run({"viz", traces() + "/quirks/other_prefix", "--prefix", "foo", "-o", "-"}).status == 0);
}

TEST_CASE("logs without a usable line are an error, and the old output stays") {
  const temp_dir dir;
  dir.file("lotustrace_log_worker_pid_1", "junk\n\n");
  dir.file("lotustrace_log_worker_pid_2", "");
  const std::string out = dir.file("out.json", "old");
  for (const auto* form : {"--compat", "--coarse"}) {
    const result r = run({"viz", dir.path(), "-o", out, form});
    CHECK(r.status == 1);
    CHECK(contains(r.err, "nothing usable"));
    CHECK(read_file(out) == "old");
  }
  CHECK(run({"stats", dir.path()}).status == 1);
  CHECK(dir.names().size() == 3);
}
