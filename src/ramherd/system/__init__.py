"""Small functions for the operating system: /proc, pidfd, epoll, splice, prctl, sockets."""
