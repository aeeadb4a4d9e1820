// A service without batches. A stage records the number of each request. A request enters a queue
// on one thread and leaves it on another, so an async_scope records the time in the queue.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <future>
#include <lotus/lotus.hpp>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bounded_queue.hpp"
#include "next_step.hpp"

namespace {

using words = std::vector<std::string>;

struct request {
  request(std::uint64_t of_number, std::string of_text)
      : number{of_number}, text{std::move(of_text)} {}

  std::uint64_t number;
  std::string text;
  std::promise<words> answer;
  lotus::async_scope queued{"Queued"};
};

words split(const std::string& text) {
  LOTUS_SCOPE("Split");
  std::istringstream in{text};
  words found;
  for (std::string word; in >> word;) found.push_back(word);
  return found;
}

words rank(const words& all) {
  LOTUS_SCOPE("Rank");
  std::map<std::string, int> counts;
  for (const std::string& word : all) ++counts[word];
  words ranked;
  for (const auto& [word, count] : counts) ranked.push_back(word);
  std::sort(ranked.begin(), ranked.end(),
            [&](const std::string& a, const std::string& b) { return counts[a] > counts[b]; });
  return ranked;
}

/// Answers requests: ranks the words of a text by how often they occur.
class service {
 public:
  explicit service(int threads) {
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { serve(); });
  }
  service(const service&) = delete;
  service& operator=(const service&) = delete;
  ~service() {
    queue_.finish();
    for (std::thread& thread : threads_) thread.join();
  }

  std::future<words> ask(std::uint64_t number, std::string text) {
    auto r = std::make_unique<request>(number, std::move(text));
    std::future<words> answer = r->answer.get_future();
    queue_.push(std::move(r));
    LOTUS_COUNTER("requests waiting", queue_.size());
    return answer;
  }

 private:
  void serve() {
    while (auto next = queue_.pop()) {
      request& r = **next;
      r.queued.suspend();
      LOTUS_STAGE("Request", r.number);  // all operations inside this block belong to the request
      r.answer.set_value(rank(split(r.text)));
    }
  }

  bounded_queue<std::unique_ptr<request>> queue_{64};
  std::vector<std::thread> threads_;
};

}  // namespace

int main() {
  if (!lotus::start("run/lotustrace_log")) return 1;
  std::size_t answered = 0;
  {
    service service{2};
    std::vector<std::future<words>> answers;
    for (std::uint64_t number = 0; number < 100; ++number) {
      std::string text = "to be or not to be ";
      for (std::uint64_t i = 0; i < 200 + number * 7; ++i) text += std::to_string(i * i % 97) + ' ';
      answers.push_back(service.ask(number, std::move(text)));
      std::this_thread::sleep_for(std::chrono::microseconds{300});
    }
    for (std::future<words>& answer : answers) answered += answer.get().empty() ? 0 : 1;
  }
  print_next_step("run/lotustrace_log");
  return answered == 100 ? 0 : 1;
}
