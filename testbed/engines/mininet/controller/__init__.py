"""The OpenFlow controller: its process, its application, the rules and their encoding."""
