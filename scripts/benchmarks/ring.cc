// For scripts/bench simulator: the flood of Overlay in ns-3. A hypercube of processes on a ring of
// point-to-point links, messages in UDP datagrams, routes by ns-3's own global routing.
//   ring DIMENSIONS MESSAGES    prints the hops of all packets, and the seconds of processor they took
#include <cstring>
#include <ctime>
#include <iostream>
#include <string>
#include <vector>

#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"

using namespace ns3;

namespace {

constexpr uint16_t PORT = 5000;
constexpr uint32_t BYTES = 32;
uint64_t hops = 0;

struct Message {
  uint32_t source, seq, sender;
};

class Process {
public:
  void Start(uint32_t me, uint32_t dimensions, const std::vector<Ipv4Address> &addresses, Ptr<Node> node) {
    m_me = me;
    m_dimensions = dimensions;
    m_addresses = &addresses;
    m_seen.assign(addresses.size(), 0);
    m_socket = Socket::CreateSocket(node, UdpSocketFactory::GetTypeId());
    m_socket->Bind(InetSocketAddress(Ipv4Address::GetAny(), PORT));
    m_socket->SetRecvCallback(MakeCallback(&Process::Receive, this));
  }

  void Multicast() { Flood({m_me, ++m_seen[m_me], m_me}, m_me); }

private:
  void Flood(Message message, uint32_t but) {
    message.sender = m_me;
    uint8_t data[BYTES] = {};
    std::memcpy(data, &message, sizeof message);
    for (uint32_t dimension = 0; dimension < m_dimensions; ++dimension) {
      uint32_t peer = m_me ^ (1 << dimension), way = 1 << dimension;
      if (peer == but) continue;
      m_socket->SendTo(Create<Packet>(data, BYTES), 0, InetSocketAddress((*m_addresses)[peer], PORT));
      hops += std::min<uint32_t>(way, m_addresses->size() - way);
    }
  }

  void Receive(Ptr<Socket> socket) {
    while (Ptr<Packet> packet = socket->Recv()) {
      Message message;
      packet->CopyData(reinterpret_cast<uint8_t *>(&message), sizeof message);
      if (message.seq <= m_seen[message.source]) continue;
      m_seen[message.source] = message.seq;
      Flood(message, message.sender);
    }
  }

  uint32_t m_me = 0, m_dimensions = 0;
  const std::vector<Ipv4Address> *m_addresses = nullptr;
  std::vector<uint32_t> m_seen;
  Ptr<Socket> m_socket;
};

} // namespace

int main(int, char *argv[]) {
  const uint32_t dimensions = std::stoul(argv[1]), messages = std::stoul(argv[2]), processes = 1 << dimensions;
  NodeContainer nodes(processes);
  InternetStackHelper().Install(nodes);
  PointToPointHelper link;
  link.SetDeviceAttribute("DataRate", StringValue("10Mbps"));
  link.SetChannelAttribute("Delay", StringValue("500us"));
  link.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("1000000p"));
  Ipv4AddressHelper networks("10.0.0.0", "255.255.255.252");
  std::vector<Ipv4Address> addresses(processes);
  for (uint32_t i = 0; i < processes; ++i) {
    auto ends = networks.Assign(link.Install(nodes.Get(i), nodes.Get((i + 1) % processes)));
    networks.NewNetwork();
    addresses[i] = ends.GetAddress(0);
  }
  Ipv4GlobalRoutingHelper::PopulateRoutingTables();
  std::vector<Process> all(processes);
  for (uint32_t i = 0; i < processes; ++i) all[i].Start(i, dimensions, addresses, nodes.Get(i));
  for (uint32_t k = 0; k < messages; ++k)
    for (uint32_t i = 0; i < processes; ++i)
      Simulator::Schedule(MilliSeconds(k), &Process::Multicast, &all[i]);
  const std::clock_t begun = std::clock();
  Simulator::Run();
  std::cout << hops << " " << double(std::clock() - begun) / CLOCKS_PER_SEC << std::endl;
  Simulator::Destroy();
}
