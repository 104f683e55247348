// Invented machines, small enough to read.
#ifndef BERTH_TESTS_UNIT_DISCOVERY_SAMPLES_H_
#define BERTH_TESTS_UNIT_DISCOVERY_SAMPLES_H_

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace berth::discovery {

// Two sockets, one NUMA node each. Socket 0, one host bridge: a switch with two GPUs and a NIC, and
// a second switch below it with a third GPU; next to the switch, on a separate port, an old card.
// Socket 1: two host bridges with a GPU each, and a console that is not a GPU.
inline constexpr char kTwoSockets[] = R"(<?xml version="1.0" encoding="UTF-8"?>
<!-- written by hand -->
<!DOCTYPE topology SYSTEM "hwloc2.dtd">
<topology version="2.0">
  <object type="Machine" os_index="0" cpuset="0x0000000f" complete_cpuset="0x0000000f" allowed_cpuset="0x0000000f" nodeset="0x00000003" complete_nodeset="0x00000003" allowed_nodeset="0x00000003" gp_index="1">
    <info name="Architecture" value="x86_64"/>
    <object type="Package" os_index="0" cpuset="0x00000003" complete_cpuset="0x00000003" nodeset="0x00000001" complete_nodeset="0x00000001" gp_index="2">
      <info name="CPUModel" value="Sample CPU"/>
      <object type="NUMANode" os_index="0" cpuset="0x00000003" complete_cpuset="0x00000003" nodeset="0x00000001" complete_nodeset="0x00000001" gp_index="3" local_memory="1073741824"/>
      <object type="Core" os_index="0" cpuset="0x00000003" complete_cpuset="0x00000003" nodeset="0x00000001" complete_nodeset="0x00000001" gp_index="4">
        <object type="PU" os_index="0" cpuset="0x00000001" complete_cpuset="0x00000001" nodeset="0x00000001" complete_nodeset="0x00000001" gp_index="5"/>
        <object type="PU" os_index="1" cpuset="0x00000002" complete_cpuset="0x00000002" nodeset="0x00000001" complete_nodeset="0x00000001" gp_index="6"/>
      </object>
      <object type="Bridge" gp_index="20" bridge_type="0-1" depth="0" bridge_pci="0000:[00-1f]">
        <object type="Bridge" gp_index="21" bridge_type="1-1" depth="1" bridge_pci="0000:[01-10]" pci_busid="0000:00:01.0" pci_type="0604 [8086:0001] [0000:0000] 00" pci_link_speed="31.507692">
          <object type="Bridge" gp_index="22" bridge_type="1-1" depth="2" bridge_pci="0000:[02-10]" pci_busid="0000:01:00.0" pci_type="0604 [1000:c030] [0000:0000] 00" pci_link_speed="31.507692">
            <object type="Bridge" gp_index="23" bridge_type="1-1" depth="3" bridge_pci="0000:[03-03]" pci_busid="0000:02:00.0" pci_type="0604 [1000:c030] [0000:0000] 00" pci_link_speed="31.507692">
              <object type="PCIDev" gp_index="24" pci_busid="0000:03:00.0" pci_type="0302 [10de:2330] [10de:16c1] a1" pci_link_speed="31.507692">
                <object type="OSDev" gp_index="25" name="cuda0" subtype="CUDA" osdev_type="5">
                  <info name="GPUModel" value="Sample H100"/>
                  <info name="CUDAGlobalMemorySize" value="83886080"/>
                </object>
                <object type="OSDev" gp_index="26" name="nvml0" subtype="NVML" osdev_type="1">
                  <info name="NVIDIAUUID" value="GPU-11111111-1111-1111-1111-111111111111"/>
                </object>
              </object>
            </object>
            <object type="Bridge" gp_index="27" bridge_type="1-1" depth="3" bridge_pci="0000:[04-04]" pci_busid="0000:02:01.0" pci_type="0604 [1000:c030] [0000:0000] 00" pci_link_speed="31.507692">
              <object type="PCIDev" gp_index="28" pci_busid="0000:04:00.0" pci_type="0302 [10de:2330] [10de:16c1] a1" pci_link_speed="31.507692"/>
            </object>
            <object type="Bridge" gp_index="29" bridge_type="1-1" depth="3" bridge_pci="0000:[05-05]" pci_busid="0000:02:02.0" pci_type="0604 [1000:c030] [0000:0000] 00" pci_link_speed="31.507692">
              <object type="PCIDev" gp_index="30" pci_busid="0000:05:00.0" pci_type="0207 [15b3:1021] [15b3:0001] 00" pci_link_speed="31.507692">
                <info name="PCIDevice" value="ConnectX-7"/>
                <object type="OSDev" gp_index="31" name="ib0" osdev_type="2"/>
                <object type="OSDev" gp_index="32" name="mlx5_0" osdev_type="3">
                  <info name="NodeGUID" value="a088:c203:0001:0002"/>
                  <info name="Port1State" value="4"/>
                </object>
              </object>
            </object>
            <object type="Bridge" gp_index="33" bridge_type="1-1" depth="3" bridge_pci="0000:[06-08]" pci_busid="0000:02:03.0" pci_type="0604 [1000:c030] [0000:0000] 00" pci_link_speed="31.507692">
              <object type="Bridge" gp_index="34" bridge_type="1-1" depth="4" bridge_pci="0000:[07-08]" pci_busid="0000:06:00.0" pci_type="0604 [1000:c030] [0000:0000] 00" pci_link_speed="31.507692">
                <object type="Bridge" gp_index="35" bridge_type="1-1" depth="5" bridge_pci="0000:[08-08]" pci_busid="0000:07:00.0" pci_type="0604 [1000:c030] [0000:0000] 00" pci_link_speed="31.507692">
                  <object type="PCIDev" gp_index="36" pci_busid="0000:08:00.0" pci_type="0302 [10de:2330] [10de:16c1] a1" pci_link_speed="31.507692"/>
                </object>
              </object>
            </object>
          </object>
        </object>
        <object type="Bridge" gp_index="37" bridge_type="1-1" depth="1" bridge_pci="0000:[11-11]" pci_busid="0000:00:02.0" pci_type="0604 [8086:0001] [0000:0000] 00" pci_link_speed="15.753846">
          <object type="PCIDev" gp_index="38" pci_busid="0000:11:00.0" pci_type="0300 [10de:1b80] [10de:0001] a1" pci_link_speed="15.753846"/>
        </object>
      </object>
    </object>
    <object type="Package" os_index="1" cpuset="0x0000000c" complete_cpuset="0x0000000c" nodeset="0x00000002" complete_nodeset="0x00000002" gp_index="7">
      <object type="NUMANode" os_index="1" cpuset="0x0000000c" complete_cpuset="0x0000000c" nodeset="0x00000002" complete_nodeset="0x00000002" gp_index="8" local_memory="2147483648"/>
      <object type="Core" os_index="1" cpuset="0x0000000c" complete_cpuset="0x0000000c" nodeset="0x00000002" complete_nodeset="0x00000002" gp_index="9">
        <object type="PU" os_index="2" cpuset="0x00000004" complete_cpuset="0x00000004" nodeset="0x00000002" complete_nodeset="0x00000002" gp_index="10"/>
        <object type="PU" os_index="3" cpuset="0x00000008" complete_cpuset="0x00000008" nodeset="0x00000002" complete_nodeset="0x00000002" gp_index="11"/>
      </object>
      <object type="Bridge" gp_index="40" bridge_type="0-1" depth="0" bridge_pci="0000:[80-81]">
        <object type="PCIDev" gp_index="41" pci_busid="0000:80:03.0" pci_type="0300 [1d0f:1111] [0000:0000] 00" pci_link_speed="0.000000">
          <object type="OSDev" gp_index="42" name="opencl0d9" subtype="OpenCL" osdev_type="5"/>
        </object>
        <object type="Bridge" gp_index="43" bridge_type="1-1" depth="1" bridge_pci="0000:[81-81]" pci_busid="0000:80:01.0" pci_type="0604 [8086:0001] [0000:0000] 00" pci_link_speed="31.507692">
          <object type="PCIDev" gp_index="44" pci_busid="0000:81:00.0" pci_type="0302 [10de:2330] [10de:16c1] a1" pci_link_speed="31.507692"/>
        </object>
      </object>
      <object type="Bridge" gp_index="45" bridge_type="0-1" depth="0" bridge_pci="0000:[c0-c1]">
        <object type="Bridge" gp_index="46" bridge_type="1-1" depth="1" bridge_pci="0000:[c1-c1]" pci_busid="0000:c0:01.0" pci_type="0604 [8086:0001] [0000:0000] 00" pci_link_speed="31.507692">
          <object type="PCIDev" gp_index="47" pci_busid="0000:c1:00.0" pci_type="1200 [1002:74a0] [1002:74a0] 00" pci_link_speed="31.507692">
            <object type="OSDev" gp_index="48" name="rsmi0" subtype="RSMI" osdev_type="1">
              <info name="GPUModel" value="Sample MI300A"/>
              <info name="AMDUUID" value="0000000000000000"/>
            </object>
            <object type="OSDev" gp_index="49" name="rsmi1" subtype="RSMI" osdev_type="1">
              <info name="GPUModel" value=""/>
              <info name="AMDUUID" value="0000000000000000"/>
            </object>
          </object>
        </object>
      </object>
    </object>
  </object>
  <distances2 type="OSDev" nbobjs="2" kind="9" name="XGMIBandwidth" indexing="gp">
    <indexes length="6">48 49 </indexes>
    <u64values length="30">1000000 100000 100000 1000000 </u64values>
  </distances2>
</topology>
)";

// A switch with two GPUs and a NIC on NUMA node 0, another GPU on node 1.
inline constexpr char kNcclVm[] = R"(<!-- for a virtual machine -->
<system version="1">
  <cpu numaid="0" affinity="00000000,000000ff" arch="x86_64">
    <pci busid="ffff:ff:01.0" class="0x060400" link_speed="16 GT/s" link_width="16">
      <pci busid="0001:00:00.0" class="0x030200" link_speed="16 GT/s" link_width="16">
        <gpu dev="0" sm="80"><nvlink target="0002:00:00.0" count="12" tclass="0x030200"/></gpu>
      </pci>
      <pci busid="0002:00:00.0" class="0x030200" link_speed="16 GT/s" link_width="16">
        <gpu dev="1" sm="80"><nvlink target="0001:00:00.0" count="12" tclass="0x030200"/></gpu>
      </pci>
      <pci busid="0101:00:00.0" class="0x020700" link_speed="16 GT/s" link_width="16">
        <nic><net name="mlx5_3" dev="0" speed="200000" port="1" guid="0x1"/></nic>
      </pci>
    </pci>
  </cpu>
  <cpu numaid="1" affinity="00000000,0000ff00" arch="x86_64">
    <pci busid="0003:00:00.0" class="0x030200" link_speed="16 GT/s" link_width="16"/>
  </cpu>
</system>
)";

// A folder that is removed with everything in it.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "berth-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }
  // Writes a file and makes its folders. Returns the path.
  std::string Write(const std::string& name, const std::string& text) const {
    const std::filesystem::path path = std::filesystem::path(path_) / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
    return path.string();
  }

 private:
  std::string path_;
};

}  // namespace berth::discovery

#endif  // BERTH_TESTS_UNIT_DISCOVERY_SAMPLES_H_
