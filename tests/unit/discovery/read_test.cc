// PCI addresses, XML, files, and machines read from hwloc's and NCCL's XML.
#include <sys/stat.h>

#include <catch2/catch.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "clients/agent/discovery/cpu_list.h"
#include "clients/agent/discovery/discover.h"
#include "clients/agent/discovery/names.h"
#include "clients/agent/discovery/xml_file.h"
#include "tests/unit/discovery/samples.h"

namespace berth::discovery {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

Machine Read(const std::string& text, const std::string& topology = "") {
  const TemporaryFolder folder;
  DiscoverOptions options{.from = folder.Write("machine.xml", text)};
  if (!topology.empty()) options.topology_file = folder.Write("topology.xml", topology);
  absl::StatusOr<Machine> machine = Discover(options);
  INFO(machine.status());
  REQUIRE(machine.ok());
  return *machine;
}

std::vector<std::string> Addresses(const Machine& machine) {
  std::vector<std::string> addresses;
  for (const Gpu& gpu : machine.gpus) addresses.push_back(ToString(gpu.pci));
  return addresses;
}

// "PIX PXB ..." of one GPU to all.
std::string Row(const Machine& machine, size_t gpu) {
  std::string row;
  for (const Distance& distance : machine.gpu_gpu[gpu]) row += Label(distance) + " ";
  for (const Distance& distance : machine.gpu_nic[gpu]) row += Label(distance) + " ";
  return row;
}

TEST_CASE("PCI addresses are read as the kernel, hwloc and NVML write them") {
  const auto written = [](const char* text) {
    const absl::optional<PciAddress> address = ParsePciAddress(text);
    return address ? ToString(*address) : "none";
  };
  CHECK(written("0000:1a:00.0") == "0000:1a:00.0");
  CHECK(written("00000000:1A:00.0") == "0000:1a:00.0");
  CHECK(written("10000:01:1f.7") == "10000:01:1f.7");
  CHECK(written("1a:00.1") == "0000:1a:00.1");
  for (const char* bad : {"", "1a", "0000:1a", "0000:1a:00.8", "0000:100:00.0", "g:00.0",
                          "0000:1a:00.0.0", "0:0:0:0.0", "-1:00:00.0", "fffffff:ffff:ff"}) {
    INFO(bad);
    CHECK(written(bad) == "none");
  }
}

TEST_CASE("malformed XML is refused with its line and a reason") {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "line 1: no element"},
      {"<a>", "line 1: the file ends inside <a>"},
      {"<a>\n<b></a>", "line 2: mismatched tag"},
      {"<a/><b/>", "junk after document element"},
      {"<a x=1/>", "not well-formed"},
      {"<a x='1/>", "unclosed token"},
      {"<a>\n\n<b", "line 3: unclosed token"},
      {"<a x='<'/>", "not well-formed"},
      {"<a x='1' x='2'/>", "duplicate attribute"},
      {"<!-- x", "unclosed token"},
      {"text<a/>", "not well-formed"},
      {"< a/>", "not well-formed"},
      {std::string("<a>\0</a>", 8), "a control character"},
      {"<a>\n<b x='\x1b[31m'/></a>", "line 2: a control character"},
      {"<a x='\x7f'/>", "a control character"},
      {"<a x='over\rwritten'/>", "a control character"},
      {"<a x='\xc2\x9b'/>", "a control character"},
      {"<a x='&#27;'/>", "reference to invalid character number"},
  };
  for (const auto& [text, reason] : cases) {
    INFO(text);
    const auto document = ParseXml(text);
    REQUIRE_FALSE(document.ok());
    CHECK_THAT(std::string(document.status().message()), Contains(reason));
  }
}

TEST_CASE("XML has no entities of its own, and reads nothing external") {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"<a x='&boom;'/>", "undefined entity"},
      {"<!DOCTYPE a SYSTEM 'a.dtd'>\n<a x='&boom;'/>", "line 2: an undefined entity"},
      {"<!DOCTYPE a SYSTEM 'a.dtd'>\n<a>&boom;</a>", "line 2: an undefined entity"},
      {"<!DOCTYPE a [<!ENTITY b 'c'>]><a/>", "declarations"},
      {"<!DOCTYPE a [<!ENTITY b SYSTEM '/etc/passwd'>]><a>&b;</a>", "declarations"},
      {"<!DOCTYPE a SYSTEM 'a.dtd' [<!ENTITY % b SYSTEM 'c'> %b;]><a/>", "declarations"},
  };
  for (const auto& [text, reason] : cases) {
    INFO(text);
    CHECK_THAT(std::string(ParseXml(text).status().message()), Contains(reason));
  }
}

TEST_CASE("XML is UTF-8, whatever it declares") {
  const std::string latin = "<?xml version='1.0' encoding='ISO-8859-1'?>";
  CHECK(ParseXml(latin + "<a x='\xc3\xa9'/>")->elements[0].Get("x") == "\xc3\xa9");
  for (const char* wrong : {"\xe9", "\xff", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80"}) {
    CHECK_FALSE(ParseXml(absl::StrCat(latin, "<a x='", wrong, "'/>")).ok());
  }
}

TEST_CASE("XML is read within limits") {
  std::string deep;
  for (int i = 0; i < 2'000'000; ++i) deep += "<a>";
  CHECK_THAT(std::string(ParseXml(deep).status().message()), Contains("nested too deeply"));
  std::string wide = "<a";
  for (int i = 0; i < 100; ++i) wide += " a" + std::to_string(i) + "='1'";
  CHECK_THAT(std::string(ParseXml(wide + "/>").status().message()),
             Contains("too many attributes"));
  std::string many = "<a>";
  for (size_t i = 0; i < kMaxXmlElements; ++i) many += "<b/>";
  CHECK_THAT(std::string(ParseXml(many + "</a>").status().message()),
             Contains("too many elements"));
}

TEST_CASE("XML's own escapes and comments") {
  const auto document = ParseXml("<?xml version='1.0'?><!-- < --><a x='&lt;&#65;&amp;'><b/></a>");
  REQUIRE(document.ok());
  REQUIRE(document->elements.size() == 2);
  CHECK(document->elements[0].Get("x") == "<A&");
  CHECK(document->elements[1].parent == 0);
  CHECK(document->root_begin == 31);
  CHECK(ParseXml("<a x='1&#10;&#x85;&#127;2'/>")->elements[0].Get("x") == "1???2");
  CHECK(ParseXml("<a>\r\n\t<b/>\r\n</a>").ok());
  CHECK(ParseXml("\xef\xbb\xbf<a x='\xc3\xa9'/>").ok());  // a byte order mark, and a letter
  CHECK(WithoutComments("<a><!-- 1 --><b/><!--2--></a>") == "<a> <b/> </a>");
}

TEST_CASE("masks of CPUs become lists") {
  CHECK(CpuList("00000000,000000ff") == "0-7");
  CHECK(CpuList("ffff,,00000001,80000000") == "31-32,96-111");
  CHECK(CpuList("0000ffff") == "0-15");
  for (const char* none : {"", "0", "zz", "ff ", "0xf...f"})
    CHECK(CpuList(std::string(none)) == "");
  CHECK(CpuList(std::string(5000, 'f')) == "");
}

TEST_CASE("files that are not a topology are refused by name") {
  const TemporaryFolder folder;
  const auto refusal = [](const std::string& path) {
    const absl::StatusOr<XmlFile> file = ReadXmlFile(path);
    REQUIRE_FALSE(file.ok());
    CHECK_THAT(std::string(file.status().message()), StartsWith(path + ": "));
    return std::string(file.status().message());
  };
  CHECK_THAT(refusal(folder.path() + "/none.xml"), Contains("no such file"));
  CHECK_THAT(refusal(folder.path()), Contains("not a regular file"));
  const std::string pipe = folder.path() + "/pipe";
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  CHECK_THAT(refusal(pipe), Contains("not a regular file"));
  CHECK_THAT(refusal(folder.Write("html", "<html></html>")), Contains("the root is <html>"));
  CHECK_THAT(refusal(folder.Write("graph", "<graphs version='1'/>")), Contains("NCCL graph"));
  CHECK_THAT(refusal(folder.Write("v3", "<topology version=\"3.0\"></topology>")),
             Contains("version 3.0") && Contains("--export-xml-flags v2"));
  CHECK_THAT(refusal(folder.Write("vx", "<topology version=\"x\"></topology>")),
             Contains("unknown version"));
  CHECK_THAT(refusal(folder.Write("large", std::string(kMaxXmlBytes + 1, ' '))),
             Contains("larger than"));
}

TEST_CASE("hwloc XML: one GPU per function, vendor and class together, ROCm names are GPUs") {
  const Machine machine = Read(kTwoSockets);
  CHECK(Addresses(machine) ==
        std::vector<std::string>{"0000:03:00.0", "0000:04:00.0", "0000:08:00.0", "0000:11:00.0",
                                 "0000:81:00.0", "0000:c1:00.0", "0000:c1:00.0"});
  const Gpu& first = machine.gpus[0];
  CHECK(first.model == "Sample H100");
  CHECK(first.uuid == "GPU-11111111-1111-1111-1111-111111111111");
  CHECK(first.memory_bytes == int64_t{80} << 30);
  CHECK(first.os_devices == std::vector<std::string>{"cuda0", "nvml0"});
  CHECK(first.numa_node == 0);
  CHECK(first.package == 0);
  CHECK(first.partition == -1);
  CHECK(machine.gpus[1].uuid == "PCI-0000:04:00.0");
  CHECK(machine.gpus[4].numa_node == 1);
  CHECK(machine.gpus[5].vendor == "amd");
  CHECK(machine.gpus[5].partition == 0);
  CHECK(machine.gpus[6].partition == 1);
  CHECK(machine.gpus[6].model == "Instinct MI300A");
  CHECK(machine.gpus[6].uuid == "PCI-0000:c1:00.0-p1");
}

TEST_CASE("hwloc XML: NUMA nodes, NICs and the relevant part of the PCI tree") {
  const Machine machine = Read(kTwoSockets);
  REQUIRE(machine.numa_nodes.size() == 2);
  CHECK(machine.numa_nodes[1].cpus == "2-3");
  CHECK(machine.numa_nodes[1].package == 1);
  CHECK(machine.host_memory_bytes == int64_t{3} << 30);
  CHECK(machine.packages[0].model == "Sample CPU");
  REQUIRE(machine.nics.size() == 1);
  CHECK(machine.nics[0].name == "mlx5_0");
  CHECK(machine.nics[0].net_devices == std::vector<std::string>{"ib0"});
  CHECK(machine.nics[0].guid == "a088:c203:0001:0002");
  CHECK(machine.nics[0].port_state == "active");
  for (const PciNode& node : machine.pci) CHECK(ToString(node.address) != "0000:80:03.0");
}

TEST_CASE("distance classes of the hand-made machine") {
  const Machine machine = Read(kTwoSockets);
  CHECK(Row(machine, 0) == "X PIX PXB PHB SYS SYS SYS PIX ");
  CHECK(Row(machine, 2) == "PXB PXB X PHB SYS SYS SYS PXB ");
  CHECK(Row(machine, 3) == "PHB PHB PHB X SYS SYS SYS PHB ");
  CHECK(Row(machine, 4) == "SYS SYS SYS SYS X NODE NODE SYS ");
  CHECK(Row(machine, 5) == "SYS SYS SYS SYS NODE X XGMI SYS ");
  CHECK(machine.gpu_gpu[5][6].mb_per_s == 100000);
  CHECK(machine.gpu_gpu[5][6].pci == LinkClass::kPix);
  CHECK(machine.gpu_gpu[0][3].same_package);
  CHECK_FALSE(machine.gpu_gpu[0][4].same_package);
}

TEST_CASE("memory of GPUs is not host memory") {
  const char* const plain = "gp_index=\"8\" local_memory=\"2147483648\"/>";
  const std::string marked = absl::StrReplaceAll(
      kTwoSockets, {{plain, "gp_index=\"8\" subtype=\"GPUMemory\" local_memory=\"2147483648\"/>"}});
  const Machine machine = Read(marked);
  CHECK(machine.numa_nodes[1].gpu_memory);
  CHECK(machine.host_memory_bytes == int64_t{1} << 30);
  CHECK(machine.gpus[4].numa_node == -1);  // near no host node, so far from all
  CHECK(Row(machine, 4) == "SYS SYS SYS SYS X SYS SYS SYS ");
}

TEST_CASE("NCCL XML: switches, links, names") {
  const Machine machine = Read(kNcclVm);
  CHECK(Addresses(machine) ==
        std::vector<std::string>{"0001:00:00.0", "0002:00:00.0", "0003:00:00.0"});
  CHECK(Row(machine, 0) == "X NV12 SYS PIX ");
  CHECK(Row(machine, 2) == "SYS SYS X SYS ");
  CHECK(machine.gpu_gpu[0][1].pci == LinkClass::kPix);
  CHECK(machine.numa_nodes[1].cpus == "8-15");
  CHECK(machine.nics[0].name == "mlx5_3");
  CHECK(machine.nics[0].megabits_per_s == 200000);
}

TEST_CASE("invalid NCCL XML is refused with line and element") {
  const TemporaryFolder folder;
  const auto refusal = [&](const std::string& from, const std::string& to) {
    const std::string path =
        folder.Write("topology.xml", absl::StrReplaceAll(kNcclVm, {{from, to}}));
    const absl::StatusOr<Machine> machine = Discover({.from = path});
    REQUIRE_FALSE(machine.ok());
    CHECK_THAT(std::string(machine.status().message()), StartsWith(path + ": line "));
    return std::string(machine.status().message());
  };
  CHECK_THAT(refusal("0002:00:00.0\" class", "nowhere\" class"), Contains("busid \"nowhere\""));
  CHECK_THAT(refusal("numaid=\"1\"", "numaid=\"one\""), Contains("numaid"));
  CHECK_THAT(refusal("count=\"12\"", "count=\"-3\""), Contains("count"));
  CHECK_THAT(refusal("<cpu numaid=\"1\"", "<gpu/><cpu numaid=\"1\""), Contains("<gpu>"));
}

TEST_CASE("an operator's file moves devices, and unknown devices are reported") {
  // The same two GPUs on one flat bus, as a virtual machine shows them.
  const std::string flat = R"(<system version="1"><cpu numaid="0" affinity="ffff">
    <pci busid="0001:00:00.0" class="0x030200" vendor="0x10de"/>
    <pci busid="0002:00:00.0" class="0x030200" vendor="0x10de"/>
    <pci busid="0009:00:00.0" class="0x030200" vendor="0x10de"/>
  </cpu></system>)";
  CHECK(Row(Read(flat), 0) == "X PHB PHB ");
  const Machine machine = Read(flat, kNcclVm);
  REQUIRE(machine.gpus.size() == 3);
  CHECK(Row(machine, 0) == "X NV12 NODE ");
  CHECK(machine.gpu_gpu[0][1].pci == LinkClass::kPix);
  const std::string warnings = absl::StrJoin(machine.warnings, "\n");
  CHECK_THAT(warnings, Contains("0009:00:00.0 is not in the topology file"));
  CHECK_THAT(warnings, Contains("0003:00:00.0 is in the topology file, but not in the machine"));
  CHECK_THAT(warnings, Contains("0101:00:00.0 is in the topology file, but not in the machine"));
}

TEST_CASE("a folder without a copy of /sys is refused") {
  const TemporaryFolder folder;
  const auto machine = Discover({.from = folder.path()});
  REQUIRE_FALSE(machine.ok());
  CHECK_THAT(std::string(machine.status().message()), Contains("no copy of /sys"));
}

TEST_CASE("this machine can be read, whatever it has") {
  const absl::StatusOr<Machine> machine = Discover({});
  REQUIRE(machine.ok());
  CHECK(machine->host_memory_bytes > 0);
  CHECK_FALSE(machine->numa_nodes.empty());
}

}  // namespace
}  // namespace berth::discovery
