// Node ends when nothing is left to wait for: many servers have a timer, a watcher or a socket.
setInterval(() => {}, 1000);
