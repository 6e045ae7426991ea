"""What stands between the network and the endpoints: sizes, keys, hosts, errors, logs, metrics."""
