// A program with a loader, which lotus-tool run records because the program does not call
// lotus::start() itself. Its exit status is its argument; with the argument "wait" it waits until
// it is killed.
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <lotus/lotus.hpp>
#include <string>
#include <thread>

int main(int argc, char** argv) {
  using namespace std::chrono_literals;
  const std::string argument = argc > 1 ? argv[1] : "0";
  for (std::uint64_t i = 0; i < 20; ++i) {
    std::thread([i] {
      LOTUS_BATCH_PREPROCESSED(i);
      LOTUS_SCOPE("Read");
      std::this_thread::sleep_for(2ms);
    }).join();
    { LOTUS_BATCH_WAIT(i); }
    LOTUS_BATCH_CONSUMED(i);
    std::this_thread::sleep_for(1ms);
  }
  // std::endl flushes the text, because the process may be killed.
  std::cout << "trained on " << argument << std::endl;
  if (argument == "wait") pause();
  return std::atoi(argument.c_str());
}
