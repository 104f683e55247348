#!/usr/bin/env python3
"""The boundary of core/: it includes and links nothing but Abseil and the standard library. No circles of folders.

Three parts: the includes of every file, which folders include each other, and the undefined symbols of the built
library. Each symbol must belong to the library itself, to Abseil, or to the C and C++ runtime. (The runtime of the
sanitizers counts as the runtime.)
"""
import collections
import os
import pathlib
import re
import subprocess
import sys
import unittest

SOURCE = pathlib.Path(os.environ.get("BERTH_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
BUILD = pathlib.Path(os.environ.get("BERTH_BUILD", SOURCE / "build" / "dev"))

INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^">]+)[">]', re.M)
# The C++ standard library without clocks, threads, IO and randomness.
STANDARD = set("""algorithm any array bit bitset cassert cctype charconv cinttypes climits cmath compare concepts cstddef
    cstdint cstdlib cstring deque exception expected forward_list functional initializer_list iterator limits list map
    memory new numbers numeric optional queue ranges ratio set span stack stdexcept string string_view tuple type_traits
    typeinfo unordered_map unordered_set utility variant vector version""".split())
FORBIDDEN_CALLS = re.compile(r"absl::(?:Now|SleepFor|Uniform|BitGen|GetCurrentTimeNanos)\b|std::random_device|\brand\(\)")
RUNTIME = re.compile(r"^(?:std::|operator (?:new|delete)|__gxx_personality|__cxa_|__cxxabiv1|__gnu_cxx|_Unwind|__asan|"
                     r"__ubsan|__tsan|__lsan|__(?:popcount|clz|ctz|u?div|u?mod|u?divmod|mul)[dt]i\d|"
                     r"__gcov|__sanitizer|_GLOBAL_OFFSET_TABLE_|__stack_chk|__dso_handle|"
                     r"(?:v?table|VTT|typeinfo|typeinfo name|vtable) for (?:std::|__cxxabiv1|absl::)|"
                     r"(?:construction vtable|non-virtual thunk|guard variable))")
LIBC = set("""abort __assert_fail memcpy memmove memset memcmp bcmp strlen strcmp strncmp memchr free malloc calloc realloc exit fputs
    fwrite fprintf fflush stderr stdout snprintf __snprintf_chk __fprintf_chk puts printf
    __libc_single_threaded""".split())   # the last: libstdc++ reads it before it counts references


class Includes(unittest.TestCase):
    def test_only_core_abseil_and_the_pure_standard_library(self):
        files = sorted((SOURCE / "core").rglob("*.h")) + sorted((SOURCE / "core").rglob("*.cc"))
        self.assertGreater(len(files), 5, "core/ has no sources: is BERTH_SOURCE right?")
        wrong = []
        for path in files:
            text = path.read_text()
            for kind, name in INCLUDE.findall(text):
                if not self.allowed(path, kind, name):
                    wrong.append(f"{path.relative_to(SOURCE)} includes {name}")
            for call in FORBIDDEN_CALLS.findall(re.sub(r"//.*", "", text)):
                wrong.append(f"{path.relative_to(SOURCE)} calls {call}")
        self.assertEqual(wrong, [])
        print(f"includes of {len(files)} files checked")

    @staticmethod
    def allowed(path, kind, name):
        if kind == "<":
            writes_a_last_word = path.relative_to(SOURCE).as_posix() == "core/base/check.cc"
            return name in STANDARD or (writes_a_last_word and name in ("cstdio", "iostream"))
        return name.startswith(("core/", "absl/")) and name != "absl/time/clock.h" and "/random/" not in name \
            and "absl/synchronization" not in name


class Folders(unittest.TestCase):
    """A folder may include those beside it, but not in a circle, so that each can be read on its own. The files directly
    in a top folder connect its parts."""

    def includes(self, top):
        """{folder: {folder that it includes: a file that does so}} below `top`"""
        found = collections.defaultdict(dict)
        for path in [*(SOURCE / top).rglob("*.h"), *(SOURCE / top).rglob("*.cc")]:
            at = path.parent.relative_to(SOURCE).as_posix()
            for _, name in INCLUDE.findall(path.read_text()):
                to = name.rpartition("/")[0]
                if name.startswith(top + "/") and top not in (at, to) and at != to:
                    found[at][to] = path.relative_to(SOURCE).as_posix()
        return found

    def reachable(self, includes, folder):
        seen, left = set(), [folder]
        while left:
            new = set(includes[left.pop()]) - seen
            seen |= new
            left += new
        return seen

    def test_no_circles(self):
        for top in ("core/engine", "server", "clients/agent", "clients/cli", "offline"):
            includes = self.includes(top)
            self.assertTrue((SOURCE / top).is_dir(), top)
            for folder in sorted(includes):
                for to, by in includes[folder].items():
                    self.assertNotIn(folder, self.reachable(includes, to), f"{by} includes {to}, which leads back")

    def test_dependencies_point_down(self):
        """For example, server/ includes no client, and nothing includes offline/."""
        above = {"core": ("storage/", "server/", "clients/", "offline/"), "storage": ("server/", "clients/", "offline/"),
                 "support": ("core/", "storage/", "server/", "clients/", "offline/"), "server": ("clients/", "offline/"),
                 "clients": ("storage/", "server/", "offline/"), "offline": ("clients/",)}
        wrong = []
        for top, barred in above.items():
            for path in [*(SOURCE / top).rglob("*.h"), *(SOURCE / top).rglob("*.cc")]:
                wrong += [f"{path.relative_to(SOURCE)} includes {name}" for _, name in INCLUDE.findall(path.read_text())
                          if name.startswith(barred)]
        self.assertEqual(wrong, [])


class LinkLine(unittest.TestCase):
    def setUp(self):
        self.library = BUILD / "core" / "libberth_core.a"
        self.assertTrue(self.library.exists(), f"{self.library} is not built")

    def symbols(self, *flags):
        lines = subprocess.run(["nm", "-C", *flags, str(self.library)], capture_output=True, text=True, check=True).stdout
        return {line[19:] for line in lines.split("\n") if len(line) > 19 and not line.endswith(":")}

    def test_undefined_symbols_belong_to_abseil_or_the_runtime(self):
        defined = self.symbols("--defined-only")
        undefined = self.symbols("--undefined-only") - defined
        strange = sorted(s for s in undefined if not self.known(s))
        self.assertEqual(strange, [], "libberth_core.a needs symbols of neither Abseil nor the runtime")
        print(f"{len(undefined)} undefined symbols, all of Abseil or the runtime")

    @staticmethod
    def known(symbol):
        plain = re.sub(r"^(?:[\w:<>,&*() ]+ )?(?=absl::|std::)", "", symbol)  # "bool absl::f<..>()" -> "absl::f<..>()"
        bare = symbol.split("@")[0]
        return plain.startswith(("absl::", "std::")) or bare in LIBC or bool(RUNTIME.match(symbol)) \
            or symbol.startswith("Absl")

    def test_the_link_line_of_a_core_program_names_only_abseil(self):
        ninja = BUILD / "build.ninja"
        text = ninja.read_text()
        match = re.search(r"^build bin/core_tests[ :].*\n((?:  .*\n)+)", text, re.M)
        self.assertIsNotNone(match, "core_tests is not in build.ninja")
        libraries = re.search(r"LINK_LIBRARIES = (.*)", match.group(1)).group(1).split()
        names = [os.path.basename(word) for word in libraries if not word.startswith("-Wl")]
        strange = [n for n in names if not re.match(r"lib(?:berth_core|Catch2|absl_\w+)\.|-l(?:rt|pthread|dl|atomic)$|-pthread$", n)]
        self.assertEqual(strange, [])
        print(f"{len(names)} libraries on the link line of core_tests")


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=2))
