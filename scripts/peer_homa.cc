// Runs a trace on the Homa of ns-3 and prints when each message ended.
//
// It uses the public interface of ns-3 and of its HomaL4Protocol alone. A line of the trace has the
// arrival in picoseconds, the source, the destination and the bytes of a message. A line of output
// per finished message is "received N at_ps T", with N from 0 and the time at the receiver.

#include <array>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "ns3/arp-l3-protocol.h"
#include "ns3/command-line.h"
#include "ns3/config.h"
#include "ns3/enum.h"
#include "ns3/homa-header.h"
#include "ns3/homa-l4-protocol.h"
#include "ns3/homa-socket-factory.h"
#include "ns3/inet-socket-address.h"
#include "ns3/ipv4-global-routing.h"
#include "ns3/ipv4-l3-protocol.h"
#include "ns3/pfifo-homa-queue-disc.h"
#include "ns3/point-to-point-helper.h"
#include "ns3/point-to-point-net-device.h"
#include "ns3/queue.h"
#include "ns3/rng-seed-manager.h"
#include "ns3/simulator.h"
#include "ns3/socket.h"
#include "ns3/string.h"
#include "ns3/traffic-control-layer.h"
#include "ns3/uinteger.h"

using namespace ns3;

namespace {

// Messages arrive after the nodes have started.
const Time START = MilliSeconds(1);
const uint16_t PORT = 1000;

struct Message {
    int64_t at_ps;
    uint32_t source;
    uint32_t destination;
    uint32_t bytes;
};

std::vector<Message> messages;
std::vector<Ptr<Socket>> sockets;
std::vector<Ipv4Address> addresses;
std::map<Ipv4Address, uint32_t> hosts;
// The message of each host that has an identifier now: Homa reuses identifiers.
std::map<std::pair<uint32_t, int>, uint32_t> open_messages;
uint32_t submitted;
uint64_t dropped, resends;

// Queue of a switch port with strict priorities, which it takes from the field of IPv4.
//
// PfifoHomaQueueDisc takes them from a tag that IPv4 removes at the sender, so all its packets have
// the first. Beneath it a device holds one more packet, which no urgent packet can pass. This queue
// replaces both.
class PriorityDeviceQueue : public Queue<Packet> {
  public:
    static TypeId GetTypeId() {
        static TypeId type = TypeId("PriorityDeviceQueue<Packet>").SetParent<Queue<Packet>>();
        return type;
    }

    bool Enqueue(Ptr<Packet> packet) override {
        const uint8_t own = priority(packet);
        const auto before = std::accumulate(waiting.begin(), waiting.begin() + own + 1, 0u);
        const bool kept = DoEnqueue(std::next(begin(), before), packet);
        waiting[own] += kept;
        return kept;
    }
    Ptr<Packet> Dequeue() override { return taken(DoDequeue(begin())); }
    Ptr<Packet> Remove() override { return taken(DoRemove(begin())); }
    Ptr<const Packet> Peek() const override { return DoPeek(begin()); }

  private:
    static uint8_t priority(Ptr<const Packet> packet) {
        // Two bytes of PPP, then version and length of IPv4, then its type of service.
        uint8_t bytes[4];
        packet->CopyData(bytes, sizeof bytes);
        return bytes[3];
    }
    Ptr<Packet> taken(Ptr<Packet> packet) {
        if (packet) {
            waiting[priority(packet)]--;
        }
        return packet;
    }

    std::array<uint32_t, 256> waiting{};
};

void on_drop(Ptr<const QueueDiscItem>) { dropped++; }
void on_device_drop(Ptr<const Packet>) { dropped++; }

void on_control(Ptr<const Packet>, Ipv4Address, Ipv4Address, uint16_t, uint16_t, uint8_t flag,
                uint16_t, uint8_t) {
    resends += flag & HomaHeader::Flags_t::RESEND ? 1 : 0;
}

void on_begin(Ptr<const Packet>, Ipv4Address from, Ipv4Address, uint16_t, uint16_t, int id) {
    open_messages[{hosts.at(from), id}] = submitted;
}

void on_finish(Ptr<const Packet>, Ipv4Address from, Ipv4Address, uint16_t, uint16_t, int id) {
    std::cout << "received " << open_messages.at({hosts.at(from), id}) << " at_ps "
              << (Simulator::Now() - START).GetPicoSeconds() << "\n";
}

void drain(Ptr<Socket> socket) {
    while (socket->Recv()) {
    }
}

void submit(uint32_t number) {
    const Message &message = messages[number];
    const InetSocketAddress to(addresses[message.destination], PORT);
    submitted = number;
    sockets[message.source]->SendTo(Create<Packet>(message.bytes), 0, to);
}

// Gives a node IPv4 and, if it is a host, Homa. Its first device must exist.
void install(Ptr<Node> node, bool host) {
    node->AggregateObject(CreateObject<ArpL3Protocol>());
    Ptr<Ipv4L3Protocol> ipv4 = CreateObject<Ipv4L3Protocol>();
    node->AggregateObject(ipv4);
    ipv4->SetRoutingProtocol(CreateObject<Ipv4GlobalRouting>());
    node->AggregateObject(CreateObject<TrafficControlLayer>());
    if (host) {
        node->AggregateObject(CreateObject<HomaL4Protocol>());
    }
}

uint32_t address_device(Ptr<NetDevice> device, Ipv4Address address) {
    Ptr<Ipv4> ipv4 = device->GetNode()->GetObject<Ipv4>();
    const uint32_t interface = ipv4->AddInterface(device);
    ipv4->AddAddress(interface, Ipv4InterfaceAddress(address, Ipv4Mask("255.255.255.252")));
    ipv4->SetMetric(interface, 1);
    ipv4->SetUp(interface);
    return interface;
}

Ptr<Ipv4GlobalRouting> routing(Ptr<Node> node) {
    return DynamicCast<Ipv4GlobalRouting>(node->GetObject<Ipv4>()->GetRoutingProtocol());
}

// The queue of a switch port.
void queue(Ptr<NetDevice> device, uint32_t priorities, uint32_t packets, bool device_priorities) {
    const QueueSize size(QueueSizeUnit::PACKETS, packets);
    if (device_priorities) {
        Ptr<PriorityDeviceQueue> queue = CreateObject<PriorityDeviceQueue>();
        queue->SetMaxSize(size);
        queue->TraceConnectWithoutContext("Drop", MakeCallback(&on_device_drop));
        DynamicCast<PointToPointNetDevice>(device)->SetQueue(queue);
        return;
    }
    Ptr<PfifoHomaQueueDisc> queue = CreateObject<PfifoHomaQueueDisc>();
    queue->SetAttribute("NumBands", UintegerValue(priorities));
    queue->SetMaxSize(size);
    queue->TraceConnectWithoutContext("Drop", MakeCallback(&on_drop));
    device->GetNode()->GetObject<TrafficControlLayer>()->SetRootQueueDiscOnDevice(device, queue);
}

void read(const std::string &file) {
    std::ifstream lines(file);
    Message one;
    while (lines >> one.at_ps >> one.source >> one.destination >> one.bytes) {
        messages.push_back(one);
    }
    if (!lines.eof() || messages.empty()) {
        std::cerr << file << ": a line must have four whole numbers\n";
        std::exit(2);
    }
}

}  // namespace

int main(int count, char **words) {
    Time::SetResolution(Time::PS);
    std::string trace;
    uint32_t nodes = 144, rack = 16, spines = 4, mtu = 1502, window = 7, run = 1;
    uint32_t priorities = 8, unscheduled = 2, overcommitment = 6, queue_packets = 500;
    uint64_t gbps = 10, spine_gbps = 40, link_ns = 250, resend_us = 1000, end_us = 0;
    bool device_priorities = false;
    CommandLine line;
    line.AddValue("trace", "messages", trace);
    line.AddValue("nodes", "hosts", nodes);
    line.AddValue("rack", "hosts of a rack", rack);
    line.AddValue("spines", "spines", spines);
    line.AddValue("gbps", "rate of a host's link", gbps);
    line.AddValue("spine-gbps", "rate of a spine's link", spine_gbps);
    line.AddValue("link-ns", "delay of a link", link_ns);
    line.AddValue("mtu", "bytes of a packet without its two bytes of PPP", mtu);
    line.AddValue("window", "RTTbytes in packets", window);
    line.AddValue("priorities", "all priorities", priorities);
    line.AddValue("unscheduled", "priorities of unscheduled data", unscheduled);
    line.AddValue("overcommitment", "messages granted at once", overcommitment);
    line.AddValue("queue", "packets of a switch port", queue_packets);
    line.AddValue("resend-us", "timeout of a receiver", resend_us);
    line.AddValue("end-us", "end of the run", end_us);
    line.AddValue("run", "number of the random streams", run);
    line.AddValue("device-priorities", "switches have priorities", device_priorities);
    line.Parse(count, words);
    read(trace);

    RngSeedManager::SetRun(run);
    Config::SetDefault("ns3::PointToPointNetDevice::Mtu", UintegerValue(mtu));
    Config::SetDefault("ns3::HomaL4Protocol::RttPackets", UintegerValue(window));
    Config::SetDefault("ns3::HomaL4Protocol::NumTotalPrioBands", UintegerValue(priorities));
    Config::SetDefault("ns3::HomaL4Protocol::NumUnschedPrioBands", UintegerValue(unscheduled));
    Config::SetDefault("ns3::HomaL4Protocol::OvercommitLevel", UintegerValue(overcommitment));
    Config::SetDefault("ns3::HomaL4Protocol::InbndRtxTimeout", TimeValue(MicroSeconds(resend_us)));
    Config::SetDefault("ns3::Ipv4GlobalRouting::EcmpMode",
                       EnumValue(Ipv4GlobalRouting::ECMP_RANDOM));

    const uint32_t racks = nodes / rack;
    NodeContainer host_nodes, leaves, spine_nodes;
    host_nodes.Create(nodes);
    leaves.Create(racks);
    spine_nodes.Create(spines);
    PointToPointHelper links;
    links.SetChannelAttribute("Delay", TimeValue(NanoSeconds(link_ns)));
    links.SetDeviceAttribute("DataRate", DataRateValue(DataRate(gbps * 1'000'000'000)));
    std::vector<NetDeviceContainer> host_links, spine_links;
    for (uint32_t host = 0; host < nodes; host++) {
        // A host chooses before a packet leaves Homa, so its queue holds grants at most.
        links.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("1000p"));
        host_links.push_back(links.Install(host_nodes.Get(host), leaves.Get(host / rack)));
        const auto port = DynamicCast<PointToPointNetDevice>(host_links.back().Get(1));
        port->GetQueue()->SetMaxSize(QueueSize("1p"));
    }
    links.SetDeviceAttribute("DataRate", DataRateValue(DataRate(spine_gbps * 1'000'000'000)));
    links.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("1p"));
    for (uint32_t leaf = 0; leaf < racks; leaf++) {
        for (uint32_t spine = 0; spine < spines; spine++) {
            spine_links.push_back(links.Install(leaves.Get(leaf), spine_nodes.Get(spine)));
        }
    }

    for (uint32_t host = 0; host < nodes; host++) {
        install(host_nodes.Get(host), true);
    }
    for (uint32_t leaf = 0; leaf < racks; leaf++) {
        install(leaves.Get(leaf), false);
    }
    for (uint32_t spine = 0; spine < spines; spine++) {
        install(spine_nodes.Get(spine), false);
    }

    // Both ends of a link have consecutive addresses; links of hosts come first.
    const auto address = [](uint32_t link, uint32_t end) {
        return Ipv4Address(0x0a000001 + 4 * link + end);
    };
    for (uint32_t host = 0; host < nodes; host++) {
        const NetDeviceContainer &link = host_links[host];
        addresses.push_back(address(host, 0));
        hosts[addresses.back()] = host;
        const uint32_t up = address_device(link.Get(0), address(host, 0));
        const uint32_t down = address_device(link.Get(1), address(host, 1));
        routing(host_nodes.Get(host))
            ->AddNetworkRouteTo(Ipv4Address("0.0.0.0"), Ipv4Mask("0.0.0.0"), address(host, 1), up);
        routing(leaves.Get(host / rack))->AddHostRouteTo(address(host, 0), address(host, 0), down);
        queue(link.Get(1), priorities, queue_packets, device_priorities);
    }
    for (uint32_t leaf = 0; leaf < racks; leaf++) {
        for (uint32_t spine = 0; spine < spines; spine++) {
            const uint32_t number = leaf * spines + spine;
            const NetDeviceContainer &link = spine_links[number];
            const Ipv4Address near = address(nodes + number, 0), far = address(nodes + number, 1);
            const uint32_t up = address_device(link.Get(0), near);
            const uint32_t down = address_device(link.Get(1), far);
            routing(leaves.Get(leaf))
                ->AddNetworkRouteTo(Ipv4Address("0.0.0.0"), Ipv4Mask("0.0.0.0"), far, up);
            for (uint32_t host = leaf * rack; host < (leaf + 1) * rack; host++) {
                routing(spine_nodes.Get(spine))->AddHostRouteTo(address(host, 0), near, down);
            }
            queue(link.Get(0), priorities, queue_packets, device_priorities);
            queue(link.Get(1), priorities, queue_packets, device_priorities);
        }
    }

    for (uint32_t host = 0; host < nodes; host++) {
        Ptr<Node> node = host_nodes.Get(host);
        sockets.push_back(node->GetObject<HomaSocketFactory>()->CreateSocket());
        sockets.back()->Bind(InetSocketAddress(addresses[host], PORT));
        sockets.back()->SetRecvCallback(MakeCallback(&drain));
        Ptr<HomaL4Protocol> homa = node->GetObject<HomaL4Protocol>();
        homa->TraceConnectWithoutContext("MsgBegin", MakeCallback(&on_begin));
        homa->TraceConnectWithoutContext("MsgFinish", MakeCallback(&on_finish));
        homa->TraceConnectWithoutContext("CtrlPktArrival", MakeCallback(&on_control));
    }
    for (uint32_t number = 0; number < messages.size(); number++) {
        const Message &message = messages[number];
        const uint32_t context = host_nodes.Get(message.source)->GetId();
        const Time at = START + PicoSeconds(message.at_ps);
        Simulator::ScheduleWithContext(context, at, &submit, number);
    }
    Simulator::Stop(START + MicroSeconds(end_us));
    Simulator::Run();
    std::cout << "dropped " << dropped << " resends " << resends << std::endl;
    Simulator::Destroy();
    return 0;
}
