"""The operating system behind small functions: /proc, pidfd, epoll, splice, prctl, sockets."""
