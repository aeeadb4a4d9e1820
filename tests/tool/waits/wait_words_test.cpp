// Tests how waits of an operation are put into words.
#include <string>
#include <vector>

#include "catch.hpp"
#include "waits/join/blocked_on.hpp"

using namespace lotus::tool;

namespace {

blocked_on waited(wait_reason reason, const std::string& name, double share) {
  blocked_on one;
  one.reason = reason;
  one.what.name = name;
  one.share = share;
  one.samples = 10;
  return one;
}

}  // namespace

TEST_CASE("many connections and files are one wait, unless one of them has most of it") {
  blocked_list list;
  for (const char* name : {"10.0.0.7 port 1", "10.0.0.7 port 2", "10.0.0.7 port 3"}) {
    list.by.push_back(waited(wait_reason::socket, name, 0.2));
  }
  for (const char* name : {"/data/a", "/data/b"}) {
    list.by.push_back(waited(wait_reason::file, name, 0.15));
  }
  list.by.push_back(waited(wait_reason::sleep, "", 0.1));
  CHECK(wait_phrases(list, "Query", 1) ==
        "waits for the network (3 connections) during 60 % of its time and waits for the disk (2 "
        "files) during 30 % of its time and sleeps during 10 % of its time");
  list.by[0].share = 0.5;
  list.by[1].share = list.by[2].share = 0.05;
  CHECK(wait_phrases(list, "Query", 1)
            .rfind("waits for the network: 10.0.0.7 port 1 during 50 %", 0) == 0);
  // A socket without an address may belong to another process of the machine.
  for (std::size_t i = 0; i < 3; ++i) list.by[i].what.name = "socket:[1]";
  CHECK(wait_phrases(list, "Query", 1).rfind("waits for a socket during 60 %", 0) == 0);
}

TEST_CASE("everybody who often holds a lock is named") {
  blocked_on lock = waited(wait_reason::lock, "codec", 1);
  lock.held_by = "Decode";
  CHECK(wait_phrase(lock, "Augment") == "waits for the lock codec held by Decode");
  CHECK(wait_phrase(lock, "Decode") == "waits for the lock codec held by Decode on other threads");
  lock.also_held_by = "Augment";
  CHECK(wait_phrase(lock, "Decode") == "waits for the lock codec held by Decode and Augment");
}
