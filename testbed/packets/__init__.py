"""Packets: how messages are framed, captured, stored as pcap files and decoded."""
