import { ErrorReason } from "./gen/tressette/v1/arena_service.js";

/** The arena could not be reached, or the connection was lost for longer than the arena waits. */
export class ConnectionLostError extends Error {
  override readonly name = "ConnectionLostError";
}

/** The arena ended the session, and not because it was shutting down or asked to. */
export class RefusedError extends Error {
  override readonly name = "RefusedError";

  constructor(
    readonly reason: ErrorReason,
    message: string,
  ) {
    super(`${ErrorReason[reason] ?? reason}: ${message}`);
  }
}

/** The arena said something that this client cannot make sense of. */
export class ProtocolError extends Error {
  override readonly name = "ProtocolError";
}
