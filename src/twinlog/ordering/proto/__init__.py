"""The messages of the ordering service: our own .proto files and the modules made from them.

Everything in `ordering` that reads or writes bytes of the wire imports these. The *_pb2 files are written by
`make proto` and never by hand; a test makes them again and compares. The package names inside (`common`,
`orderer`, `msp`, `protos`) are the wire's, so a process can load only one library that defines them.
"""
