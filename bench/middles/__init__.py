"""Programs that stand between a client and a server in the gateway benchmark; each is run as a process of its own."""
