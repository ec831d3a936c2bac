"""Moves clients between the sites: the gate, health, who may be active, switchover and failover."""
