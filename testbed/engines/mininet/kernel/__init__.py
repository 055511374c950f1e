"""What is asked of the Linux kernel: network namespaces, netlink, netem, timerfd, packet steering."""
