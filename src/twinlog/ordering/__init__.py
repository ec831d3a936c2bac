"""The ordering service: Hyperledger Fabric's Kafka-based orderer on the log of a site.

Many orderers accept transactions, the log orders them, every orderer cuts the same blocks from it, and
clients receive those. From the bottom: `proto`; identities and configuration (`identity`, `policy`,
`bundle`); from the log to blocks (`consuming`, `topic`, `chain`, `ledger`); the front (`processing`,
`broadcast`, `deliver`, `registrar`, `server`).
"""
