// Tests how functions and threads are named: what is taken from names of the compiler, and which
// call of a stack counts.
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "threads/analysis/named_stacks.hpp"
#include "threads/data/thread_samples.hpp"

using namespace lotus::tool;

namespace {

const std::string program = "/home/user/prog";

source_place own(std::string function, int line = 0) {
  source_place place;
  place.function = std::move(function);
  place.module = program;
  place.file = line > 0 ? "/home/user/prog.cpp" : "";
  place.line = line;
  return place;
}

source_place in(std::string module, std::string function, bool has_name = true) {
  source_place place;
  place.function = std::move(function);
  place.module = std::move(module);
  place.has_name = has_name;
  return place;
}

source_place inlined(source_place place) {
  place.is_inlined = true;
  return place;
}

const source_place began = in("/usr/lib/libc.so.6", "start_thread");

}  // namespace

TEST_CASE("classes, lambdas and template arguments are found in names") {
  CHECK(class_of("a::Queue<int>::next") == "a::Queue<int>");
  CHECK(class_of("a::Queue<b::c<int> >::next") == "a::Queue<b::c<int> >");
  CHECK(class_of("next<a::b>").empty());
  CHECK(class_of("call(a::b)").empty());
  CHECK(class_of("next").empty());
  CHECK(class_of("Loader::start::{lambda(int)#1}::operator()") == "Loader");
  CHECK(containing_function("main::{lambda(int)#1}::operator()") == "main");
  CHECK(containing_function("main::$_0::operator()") == "main");
  CHECK(containing_function("main::$_12") == "main");
  CHECK(containing_function("run::{lambda()#1}::operator()::{lambda({unnamed})#2}") == "run");
  // A lambda among template arguments is none of the function itself.
  const std::string task = "call<main::{lambda()#1}>::run";
  CHECK(containing_function(task) == task);
  CHECK(is_lambda(own("operator()")));
  CHECK(is_lambda(own("main::{lambda()#2}::operator()")));
  CHECK_FALSE(is_lambda(own(task)));
  CHECK(without_arguments("a::Queue<b<int>, c>::next") == "a::Queue<>::next");
  CHECK(without_arguments("a::Queue<int>::next<c>") == "a::Queue<>::next<>");
  CHECK(file_name("/usr/lib/x.so") == "x.so");
  CHECK(file_name("x.so") == "x.so");
}

TEST_CASE("long names lose their innermost arguments first") {
  const std::string fits(60, 'f');
  CHECK(short_function(fits) == fits);
  const std::string longer = fits + "<a<b<c<d<e>>>>>";
  CHECK(short_function(longer) == fits + "<...>");
  CHECK(short_function(
            "pipeline::stage<std::vector<std::pair<long, std::tuple<int, char, a>>>>::run") ==
        "pipeline::stage<std::vector<std::pair<...>>>::run");
  CHECK(short_function(
            "run_all_of_them<std::reference_wrapper<a::b<int>>, std::reference_wrapper<c>>") ==
        "run_all_of_them<a::b<int>, c>");
  const std::string scope = "a_long_namespace_of_the_program::another_one_of_it::";
  CHECK(short_function(scope + "queue<int, long>::pop") == "...::queue<int, long>::pop");
  const std::string less = "operator<<another_type_of_the_program, and_one_more_type_of_it>";
  CHECK(short_function(less) == less);
  const std::string arrow = fits + "<decltype(x->y)>";
  CHECK(short_function(arrow) == fits + "<...>");
}

TEST_CASE("a place is shown with its line, or with its library") {
  CHECK(shown_place(own("run", 7)) == "`run` (prog.cpp:7)");
  CHECK(shown_place(own("run")) == "`run`");
  CHECK(shown_place(own("main::{lambda()#1}::operator()", 7)) == "a lambda in `main` (prog.cpp:7)");
  CHECK(shown_place(own("operator()", 7)) == "a lambda (prog.cpp:7)");
  CHECK(shown_place(in("/usr/lib/libz.so.1", "inflate")) == "`inflate` (libz.so.1)");
  CHECK(shown_place(in("/usr/lib/libz.so.1", "libz.so.1+0x10", false)) == "`libz.so.1+0x10`");
  source_place calls = own("pack", 7);
  calls.callee = "deflate";
  CHECK(shown_place(calls) == "`pack` (prog.cpp:7, in deflate)");
  calls.line = 0;
  CHECK(shown_place(calls) == "`pack` (in deflate)");
  CHECK(shown_work(in("/usr/lib/libgomp.so.1", "x")).rfind("the runtime of OpenMP (libgomp", 0) ==
        0);
}

TEST_CASE("what belongs to the C and C++ libraries is known by module and by name") {
  for (const char* module : {"/usr/lib/libc.so.6", "/lib/ld-linux.so.2", "/usr/lib/libstdc++.so.6",
                             "/usr/lib/libm.so.6", "/usr/lib/libgcc_s.so.1"}) {
    CHECK(is_of_runtime(in(module, "x")));
    CHECK(is_in_runtime_module(in(module, "x")));
  }
  for (const char* function :
       {"pthread_join", "futex_wait", "__read", "std::thread::join", "clone3"}) {
    CHECK(is_of_runtime(own(function)));
    CHECK_FALSE(is_in_runtime_module(own(function)));
  }
  for (const char* function : {"reader", "stdlib", "my::thread::run", "polled"}) {
    CHECK_FALSE(is_of_runtime(own(function)));
  }
}

TEST_CASE("a running thread works in the innermost function of the program") {
  const source_place memset = in("/usr/lib/libc.so.6", "__memset_avx512_unaligned_erms");
  source_place found = working_place({memset, own("grow", 3), own("work", 2), began}, program);
  CHECK(found.function == "grow");
  CHECK(found.callee == "memset");
  const source_place plain = in("/usr/lib/libc.so.6", "memcpy");
  CHECK(working_place({plain, own("grow"), began}, program).callee == "memcpy");
  const source_place checked = in("/usr/lib/libc.so.6", "__memcpy_chk");  // no variant
  CHECK(working_place({checked, own("grow"), began}, program).callee == "__memcpy_chk");
  // The outermost of several functions of the library was called.
  const source_place z = in("/usr/lib/libz.so.1", "deflate");
  found = working_place({in("/usr/lib/libz.so.1", "libz.so.1+0x1", false), z, own("pack"), began},
                        program);
  CHECK(found.function == "pack");
  CHECK(found.callee == "deflate");
  const source_place unnamed = in("/usr/lib/libq.so.1", "libq.so.1+0x1", false);
  CHECK(working_place({unnamed, own("pack"), began}, program).callee == "libq.so.1");
  // Functions of the C++ library are no callees.
  CHECK(working_place({own("std::sort"), own("order"), began}, program).callee.empty());
  CHECK(working_place({own("std::sort"), own("order"), began}, program).function == "order");
}

TEST_CASE("inlined functions count for the function that contains them") {
  named_stack stack{inlined(own("less", 1)), inlined(own("swap", 2)), own("order", 3),
                    own("run", 4), began};
  CHECK(working_place(stack, program).function == "order");
  // But not for the function with which the thread began, which says little.
  stack.erase(stack.begin() + 3);
  CHECK(working_place(stack, program).function == "swap");
  source_place intrinsic = inlined(own("_mm_add_epi8", 9));
  intrinsic.file = "/usr/lib/gcc/include/emmintrin.h";
  CHECK(working_place({intrinsic, own("align", 5), own("run"), began}, program).function ==
        "align");
}

TEST_CASE("functions without a name are named by their callers or their library") {
  const source_place unnamed = in(program, "prog+0x10", false);
  source_place found = working_place({unnamed, own("pack"), own("run"), began}, program);
  CHECK(found.function == "pack");
  CHECK(found.callee == "prog+0x10");
  const source_place copy = in("/usr/lib/libc.so.6", "memcpy");
  CHECK(working_place({copy, unnamed, unnamed, began}, program).callee == "memcpy");
  found = working_place({unnamed, unnamed, began}, program);
  CHECK(found.function == "prog+0x10");
  // No function of the program: one that its library exports, and what that calls.
  const source_place hts = in("/usr/lib/libhts.so.3", "bgzf_compress");
  found = working_place({in("/usr/lib/libdeflate.so.0", "compress"), hts, began}, program);
  CHECK(found.function == "compress");
  found = working_place({in("/usr/lib/libdeflate.so.0", "x+0x1", false), hts, began}, program);
  CHECK(found.function == "bgzf_compress");
  CHECK(found.callee == "libdeflate.so.0");
  found = working_place({own("std::sort"), began}, program);
  CHECK(found.function == "start_thread");
  CHECK(found.callee.empty());
  CHECK(working_place({}, program).function.empty());
}

TEST_CASE("a waiting thread waits in the innermost call that has a name") {
  const source_place wait = in("/usr/lib/libc.so.6", "futex_wait");
  const source_place unnamed = in("/usr/lib/libq.so.1", "libq.so.1+0x1", false);
  CHECK(waiting_call({wait, own("pop"), own("run"), began}) == 1);
  CHECK(waiting_call({wait, unnamed, own("run"), began}) == 2);
  CHECK(waiting_call({wait, unnamed, unnamed, began}) == 1);
  CHECK(waiting_call({wait, began}) == 0);
  CHECK(waiting_call({}) == 0);
  CHECK(
      waits_for_future({wait, own("std::__future_base::_State_baseV2::wait"), own("get"), began}));
  CHECK(waits_for_future({wait, own("std::future<int>::get"), own("get"), began}));
  CHECK_FALSE(waits_for_future({wait, own("std::condition_variable::wait"), own("get"), began}));
  // The thread that makes the result of a future does not wait for one.
  CHECK_FALSE(waits_for_future({wait, own("get"), own("std::__future_base::run"), began}));
}

TEST_CASE("a thread is named by the function with which it began") {
  thread_start start = start_of_thread({own("burn"), own("loop", 5), began});
  CHECK(start.symbol == "loop");
  CHECK(start.function == "loop");
  CHECK(start.lambda.empty());
  CHECK(start.line == 0);
  CHECK(start_of_thread({own("burn"), own("loop")}).symbol.empty());  // the stack is cut off
  CHECK(start_of_thread({began}).symbol.empty());
  CHECK(start_of_thread({}).symbol.empty());
  source_place lambda = own("Loader::start::{lambda()#2}::operator()", 9);
  lambda.defined_in = "/home/user/load.cpp";
  lambda.defined_at = 8;
  const source_place runs =
      own("std::thread::_State_impl<std::thread::_Invoker<std::tuple<Loader::start::{lambda()#2}> "
          "> >::_M_run");
  start = start_of_thread({own("burn"), lambda, runs, began});
  CHECK(start.symbol == "Loader::start::{lambda()#2}");
  CHECK(start.function == "Loader::start");
  CHECK(start.lambda == "{lambda()#2}");
  CHECK(start.file == "/home/user/load.cpp");
  CHECK(start.line == 8);
  // The lambda was inlined into the library's function, or calls another function first.
  start = start_of_thread({own("burn"), runs, began});
  CHECK(start.lambda == "{lambda()#2}");
  CHECK(start.line == 0);
  lambda.function = "Loader::stop::{lambda()#1}::operator()";
  CHECK(start_of_thread({own("burn"), lambda, runs, began}).line == 0);
  const source_place arguments =
      own("std::thread::_State_impl<std::thread::_Invoker<std::tuple<void (*)(int, a), int> > "
          ">::_M_run");
  CHECK(start_of_thread({own("burn"), own("loop"), arguments, began}).symbol == "loop");
  const source_place libcxx = own(
      "std::__1::__thread_proxy<std::__1::tuple<std::__1::unique_ptr<std::__1::__thread_struct, "
      "std::__1::default_delete<std::__1::__thread_struct> >, main::$_1> >");
  CHECK(start_of_thread({own("burn"), libcxx, began}).symbol == "main::$_1");
  CHECK(start_of_thread({in("/usr/lib/libq.so.1", "libq.so.1+0x1", false), began})
            .in_unnamed_library);
  CHECK_FALSE(start_of_thread({in("/usr/lib/libq.so.1", "q", true), began}).in_unnamed_library);
  CHECK_FALSE(start_of_thread({in(program, "prog+0x1", false), began}).in_unnamed_library);

  const named_stack stack{own("burn"), own("std::sort"), own("order"), own("loop"), began};
  const std::vector<const source_place*> calls = calls_from_start(stack);
  REQUIRE(calls.size() == 2);
  CHECK(calls[0]->function == "order");
  CHECK(calls[1]->function == "burn");
  CHECK(calls_from_start({own("burn"), own("loop")}).empty());
}
