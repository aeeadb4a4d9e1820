#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "bounded_queue.hpp"
#include "imagenet/workers.hpp"

namespace imagenet {
namespace {

class worker_threads : public workers {
 public:
  worker_threads(std::size_t count, std::size_t max_tasks,
                 const std::function<batch_maker()>& new_maker)
      : made_{max_tasks} {
    for (std::size_t i = 0; i < count; ++i) {
      tasks_.push_back(std::make_unique<bounded_queue<batch_task>>(max_tasks));
    }
    for (auto& tasks : tasks_) {
      threads_.emplace_back([this, &tasks = *tasks, new_maker] { work(tasks, new_maker); });
    }
  }
  worker_threads(const worker_threads&) = delete;
  worker_threads& operator=(const worker_threads&) = delete;

  ~worker_threads() override {
    made_.close();
    for (auto& tasks : tasks_) tasks->close();
    for (std::thread& thread : threads_) thread.join();
  }

  void give(std::size_t worker, const batch_task& task) override { tasks_[worker]->push(task); }

  batch_task take() override {
    const outcome made = made_.pop().value();
    if (made.failure) std::rethrow_exception(made.failure);
    return made.task;
  }

 private:
  struct outcome {
    batch_task task;
    std::exception_ptr failure;
  };

  void work(bounded_queue<batch_task>& tasks, const std::function<batch_maker()>& new_maker) {
    try {
      const batch_maker make = new_maker();
      while (const std::optional<batch_task> task = tasks.pop()) {
        make(*task);
        made_.push({*task, nullptr});
      }
    } catch (...) {
      made_.push({{}, std::current_exception()});
    }
  }

  std::vector<std::unique_ptr<bounded_queue<batch_task>>> tasks_;
  bounded_queue<outcome> made_;
  std::vector<std::thread> threads_;
};

class consumer_itself : public workers {
 public:
  explicit consumer_itself(batch_maker make) : make_{std::move(make)} {}

  void give(std::size_t /*worker*/, const batch_task& task) override { tasks_.push_back(task); }

  batch_task take() override {
    const batch_task task = tasks_.front();
    tasks_.pop_front();
    make_(task);
    return task;
  }

 private:
  batch_maker make_;
  std::deque<batch_task> tasks_;
};

}  // namespace

std::unique_ptr<workers> start_worker_threads(std::size_t count, std::size_t max_tasks,
                                              const std::function<batch_maker()>& new_maker) {
  return std::make_unique<worker_threads>(count, max_tasks, new_maker);
}

std::unique_ptr<workers> no_workers(const std::function<batch_maker()>& new_maker) {
  return std::make_unique<consumer_itself>(new_maker());
}

}  // namespace imagenet
