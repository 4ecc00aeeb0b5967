"""gRPC and protobuf: the only hand-written server code that knows either."""
