#include "torch_common/options.hpp"

#include <CLI/CLI.hpp>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <iostream>
#include <string>
#include <utility>

#include "next_step.hpp"

namespace pipeline {
namespace {

/// Returns a validator for a range. Its description is empty, because the default description would
/// make the help hard to read.
template <class T>
CLI::Validator between(T least, T most) {
  CLI::Validator range = CLI::Range(least, most);
  range.description("");
  return range;
}

std::string not_empty(const std::string& value) {
  return value.empty() ? "must not be empty" : "";
}

template <class T>
void add_number(CLI::App& app, const std::string& name, T& value, T least, T most,
                const std::string& help) {
  app.add_option(name, value, help)
      ->type_name("N")
      ->capture_default_str()
      ->check(between(least, most));
}

void add_options(CLI::App& app, options& chosen) {
  app.add_option("--data", chosen.data,
                 "Keep the " + chosen.samples + " that are made below DIR, and use them again")
      ->type_name("DIR")
      ->check(not_empty);
  add_number<std::size_t>(app, "--count", chosen.count, 1, 1'000'000, "Samples");
  add_number<std::int64_t>(app, "--size", chosen.size, 16, 4096,
                           "Edge of a sample as the model gets it");
  add_number<std::size_t>(app, "--batch-size", chosen.batch_size, 1, 65'536, "Samples a batch");
  add_number<std::size_t>(app, "--workers", chosen.workers, 0, 256,
                          "0: the consumer does the work itself");
  add_number<std::size_t>(app, "--epochs", chosen.epochs, 1, 1'000'000,
                          "How often to go through the samples");
  add_number<std::int64_t>(app, "--model-width", chosen.model_width, 0, 4096,
                           "Channels of the model: more keep the consumer busy longer; 0: no "
                           "training");
  add_number<std::uint64_t>(app, "--seed", chosen.seed, 0, UINT64_MAX, "Of the made samples");
  app.add_option("--log-file", chosen.log_file, "Where the logs' names begin; none: do not record")
      ->type_name("PREFIX")
      ->capture_default_str()
      ->check(not_empty);
}

}  // namespace

int run_program(int argc, char** argv, options defaults,
                const std::function<void(const options&)>& run) {
  options chosen = std::move(defaults);
  CLI::App app{chosen.in_short, chosen.name};
  add_options(app, chosen);
  try {
    app.parse(argc, argv);
    run(chosen);
    print_next_step(chosen.log_file);
    return 0;
  } catch (const CLI::CallForHelp&) {
    std::cout << app.help();
    return 0;
  } catch (const CLI::ParseError& error) {
    std::cerr << chosen.name << ": " << error.what() << " (see --help)\n";
    return 2;
  } catch (const std::exception& error) {
    std::cerr << chosen.name << ": " << error.what() << "\n";
    return 1;
  }
}

}  // namespace pipeline
