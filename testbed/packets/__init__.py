"""Packets: how messages are framed, captured, stored as pcap and decoded."""
