// A loader without markers whose pools of threads start in lambdas and pass on work through queues.
// The test compiles it with each compiler, because each names lambdas in its own way.
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#if defined(__clang__)
  #define PLANTED_FUNCTION __attribute__((noinline))
#else
  #define PLANTED_FUNCTION __attribute__((noinline, noclone))
#endif

using clock_type = std::chrono::steady_clock;

static volatile std::uint64_t result;
static clock_type::time_point end_of_program;

static bool goes_on() {
  return clock_type::now() < end_of_program;
}

/// Uses the CPU for about `ms` of its own CPU time.
PLANTED_FUNCTION void burn(int ms) {
  timespec begin{};
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
  do {
    std::uint64_t x = 1;
    for (int i = 0; i < 20'000; ++i) x = x * 6364136223846793005ULL + 1442695040888963407ULL;
    result = x;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  } while ((now.tv_sec - begin.tv_sec) * 1000 + (now.tv_nsec - begin.tv_nsec) / 1'000'000 < ms);
}

struct image {
  explicit image(int number) : file(number) {}
  int file;
  double pixels[4]{};
};

/// Holds at most two elements.
template <class T>
class bounded_queue {
 public:
  explicit bounded_queue(int push_ms) : push_ms_(push_ms) {}

  PLANTED_FUNCTION void push(T value) {
    burn(push_ms_);
    std::unique_lock<std::mutex> hold(mutex_);
    not_full_.wait(hold, [this] { return closed_ || values_.size() < 2; });
    values_.push_back(std::move(value));
    not_empty_.notify_one();
  }
  PLANTED_FUNCTION bool pop(T& value) {
    std::unique_lock<std::mutex> hold(mutex_);
    not_empty_.wait(hold, [this] { return closed_ || !values_.empty(); });
    if (values_.empty()) return false;
    value = std::move(values_.front());
    values_.pop_front();
    not_full_.notify_one();
    return true;
  }
  void close() {
    const std::lock_guard<std::mutex> hold(mutex_);
    closed_ = true;
    not_empty_.notify_all();
    not_full_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable not_empty_;
  std::condition_variable not_full_;
  std::deque<T> values_;
  bool closed_ = false;
  int push_ms_;
};

/// How long each step of the loader takes, in ms of CPU time.
struct costs {
  int read;
  int decode;
  int push;
};

PLANTED_FUNCTION void read_file(int ms) {
  usleep(300);
  burn(ms);
}

PLANTED_FUNCTION void decode_image(int ms) {
  burn(ms);
}

/// A reader and two decoders. The queues of the reader and of the decoders have addresses that are
/// close to each other; the tool must not mistake one for the other.
template <class Frame>
class loader {
 public:
  explicit loader(costs each) : each_(each), raw_(each.push), decoded_(each.push) {}
  PLANTED_FUNCTION void start();
  bool next(Frame& frame) { return decoded_.pop(frame); }
  void stop() {
    raw_.close();
    decoded_.close();
    for (std::thread& one : threads_) one.join();
  }

 private:
  costs each_;
  bounded_queue<int> raw_;
  bounded_queue<Frame> decoded_;
  std::vector<std::thread> threads_;
};

template <class Frame>
PLANTED_FUNCTION void loader<Frame>::start() {
  threads_.emplace_back([this] {  // the reader
    for (int i = 0; goes_on(); ++i) {
      read_file(each_.read);
      raw_.push(i);
    }
  });
  for (int i = 0; i < 2; ++i) {
    threads_.emplace_back([this] {  // a decoder
      int file = 0;
      while (raw_.pop(file)) {
        decode_image(each_.decode);
        decoded_.push(Frame(file));
      }
    });
  }
}

template <class Frame>
PLANTED_FUNCTION void load(costs each) {
  auto loading = std::make_unique<loader<Frame>>(each);
  loading->start();
  Frame frame(0);
  while (goes_on()) {
    if (loading->next(frame)) burn(1);
  }
  loading->stop();
}

/// Starts two pools of threads in two lambdas. The function is no template, so clang names the
/// lambdas in another way than those in loader::start().
PLANTED_FUNCTION void two_pools() {
  std::vector<std::thread> all;
  for (int i = 0; i < 2; ++i) {
    all.emplace_back([] {  // the first pool
      while (goes_on()) read_file(2);
    });
  }
  for (int i = 0; i < 3; ++i) {
    all.emplace_back([] {  // the second pool
      while (goes_on()) decode_image(3);
    });
  }
  for (std::thread& one : all) one.join();
}

/// A pool whose threads run any functions that are submitted.
class task_pool {
 public:
  task_pool() {
    for (int i = 0; i < 2; ++i) {
      threads_.emplace_back([this] {
        while (auto task = tasks_.take()) task();
      });
    }
  }
  void submit(std::function<void()> task) { tasks_.put(std::move(task)); }
  void stop() {
    for (std::size_t i = 0; i < threads_.size(); ++i) tasks_.put(nullptr);
    for (std::thread& one : threads_) one.join();
  }

 private:
  class task_queue {
   public:
    PLANTED_FUNCTION void put(std::function<void()> task) {
      const std::lock_guard<std::mutex> hold(mutex_);
      tasks_.push_back(std::move(task));
      not_empty_.notify_one();
    }
    PLANTED_FUNCTION std::function<void()> take() {
      std::unique_lock<std::mutex> hold(mutex_);
      not_empty_.wait(hold, [this] { return !tasks_.empty(); });
      std::function<void()> task = std::move(tasks_.front());
      tasks_.pop_front();
      return task;
    }

   private:
    std::mutex mutex_;
    std::condition_variable not_empty_;
    std::deque<std::function<void()>> tasks_;
  };

  task_queue tasks_;
  std::vector<std::thread> threads_;
};

PLANTED_FUNCTION image build_image(int number) {
  decode_image(8);
  return image(number);
}

/// Has four images in preparation, each with a std::future.
class prefetcher {
 public:
  PLANTED_FUNCTION image next() {
    while (futures_.size() < 4) futures_.push_back(submit(next_++));
    const image got = futures_.front().get();
    futures_.pop_front();
    return got;
  }
  void stop() { pool_.stop(); }

 private:
  PLANTED_FUNCTION std::future<image> submit(int number) {
    auto task = std::make_shared<std::packaged_task<image()>>([number] {
      return build_image(number);  // the task
    });
    pool_.submit([task] { (*task)(); });
    return task->get_future();
  }

  task_pool pool_;
  std::deque<std::future<image>> futures_;
  int next_ = 0;
};

/// Calls the prefetcher through a function that does no work of its own.
class stage {
 public:
  PLANTED_FUNCTION int next() { return prefetched_.next().file + 1; }
  void stop() { prefetched_.stop(); }

 private:
  prefetcher prefetched_;
};

PLANTED_FUNCTION void consume_futures() {
  stage last;
  while (goes_on()) {
    result = static_cast<std::uint64_t>(last.next());  // the consumer
    burn(1);
  }
  last.stop();
}

/// Waits only once, until all work is done.
PLANTED_FUNCTION void wait_once() {
  task_pool pool;
  std::promise<void> end;
  std::future<void> ended = end.get_future();
  pool.submit([&end] {
    while (goes_on()) build_image(1);
    end.set_value();
  });
  ended.get();
  pool.stop();
}

int main(int count, char** arguments) {
  if (count < 3) return 2;
  end_of_program = clock_type::now() + std::chrono::milliseconds(std::atoi(arguments[2]));
  const auto is = [&](const char* what) { return std::strcmp(arguments[1], what) == 0; };
  if (is("lambdas")) two_pools();
  if (is("two_types")) load<image>({1, 8, 0});  // slow decoders
  if (is("one_type")) load<int>({1, 8, 0});
  if (is("slow_push")) load<image>({1, 4, 3});  // threads run in bounded_queue::push
  if (is("futures")) consume_futures();
  if (is("one_future")) wait_once();
  if (is("slow_reader")) load<image>({8, 1, 0});
  return 0;
}
