#include "lotus/record/names.hpp"

#include <sys/resource.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "catch.hpp"

using lotus::detail::name_table;

namespace {

std::string line_name(std::string_view name) {
  char out[lotus::detail::max_line_name_bytes];
  return {out, lotus::detail::write_line_name(name, out)};
}

}  // namespace

TEST_CASE("no name can end a field or a line, or look like a batch record") {
  CHECK(line_name("RandomResizedCrop") == "SRandomResizedCrop");
  CHECK(line_name("a b") == "Sa b");
  CHECK(line_name("a,b") == "Sa%2Cb");
  CHECK(line_name("\"x\"") == "S%22x%22");
  CHECK(line_name("50%") == "S50%25");
  CHECK(line_name(std::string_view{"\n\r\t\0\x1f\x7f", 6}) == "S%0A%0D%09%00%1F%7F");
  CHECK(line_name("\xc3\xa9") == "S%C3%A9");
  CHECK(line_name(" x ") == "S%20x%20");
  CHECK(line_name(" ") == "S%20");
  CHECK(line_name("BatchWait_3") == "S%42atchWait_3");
  CHECK(line_name("BatchNorm") == "S%42atchNorm");
  CHECK(line_name("Batc") == "SBatc");
  CHECK(line_name("MyBatchWait_3") == "SMyBatchWait_3");
  CHECK(line_name("") == "S");
}

TEST_CASE("a name longer than 1024 bytes is cut") {
  CHECK(line_name(std::string(2000, 'x')) == "S" + std::string(1024, 'x'));
  const auto table = std::make_unique<name_table>();
  CHECK(table->intern(std::string(1024, 'x')) == table->intern(std::string(5000, 'x')));
}

TEST_CASE("names are interned by content") {
  const auto table = std::make_unique<name_table>();
  std::string crop = "Crop";
  const auto id = table->intern(crop);
  crop[0] = 'D';
  CHECK(table->intern("Crop") == id);
  CHECK(table->intern(crop) == id + 1);
  CHECK(table->entry(id).raw() == "Crop");
  CHECK(table->entry(id).line_start() == "SCrop,");
  CHECK(table->entry(table->intern("")).line_start() == "S,");
}

TEST_CASE("many threads that intern the same names get the same ids") {
  const auto table = std::make_unique<name_table>();
  constexpr int threads = 4;
  constexpr int names = 10'000;
  std::vector<std::vector<std::uint32_t>> ids(threads);
  std::vector<std::thread> running;
  for (int t = 0; t < threads; ++t) {
    running.emplace_back([&, t] {
      for (int i = 0; i < names; ++i) {
        ids[static_cast<std::size_t>(t)].push_back(table->intern("name " + std::to_string(i)));
      }
    });
  }
  for (auto& t : running) t.join();
  CHECK(table->size() == names);
  for (int t = 1; t < threads; ++t) CHECK(ids[static_cast<std::size_t>(t)] == ids[0]);
  for (int i = 0; i < names; ++i) {
    REQUIRE(table->entry(ids[0][static_cast<std::size_t>(i)]).raw() == "name " + std::to_string(i));
  }
}

TEST_CASE("a name without memory or beyond the limit becomes the unnamed one") {
  using lotus::detail::unnamed_id;
  const auto table = std::make_unique<name_table>();
  rlimit before{};
  getrlimit(RLIMIT_AS, &before);
  const rlimit none{1 << 20, before.rlim_max};
  setrlimit(RLIMIT_AS, &none);
  const std::uint32_t without_memory = table->intern("Crop");
  setrlimit(RLIMIT_AS, &before);
  CHECK(without_memory == unnamed_id);
  CHECK(table->entry(without_memory).raw() == "(unnamed)");
  CHECK(table->entry(without_memory).line_start() == "S(unnamed),");
  CHECK(line_name(table->entry(without_memory).raw()) + "," == "S(unnamed),");
  CHECK(table->intern("Crop") == 1);  // memory is available again

  const auto small = std::make_unique<name_table>(2);
  CHECK(small->intern("a") == 1);
  CHECK(small->intern("b") == 2);
  CHECK(small->intern("c") == unnamed_id);
  CHECK(small->intern("b") == 2);
  CHECK(small->size() == 2);
}
