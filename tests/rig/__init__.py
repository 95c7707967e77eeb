"""The rig: a fake provider, a real mitmdump and real clients, all on loopback; nothing here imports the product's addon."""
