import type { Bot } from "./bot.js";
import { ConnectionLostError } from "./errors.js";
import { Session, type SessionOptions } from "./session.js";

/** What run() can be told besides the address and the token. */
export interface RunOptions {
  /** What the bot calls itself; else TRESSETTE_BOT_NAME, else the name of its class. */
  name?: string;
  /** The bot's own version, for the record. */
  version?: string;
  /** Matches at once; 64 unless told. */
  maxMatches?: number;
  /** Root certificates (PEM) to trust instead of the usual ones; asks for TLS on loopback too. */
  tlsRoots?: Buffer;
  /** Leaves the arena when aborted. */
  signal?: AbortSignal;
  /** Whether SIGINT and SIGTERM make the bot leave the arena, as they do unless told. */
  stopOnSignals?: boolean;
  /** Where lines about trouble go; to standard error unless told. */
  log?: (line: string) => void;
}

/**
 * Play until the arena shuts down or the bot leaves.
 *
 * The address (host:port) is else that of TRESSETTE_ADDRESS, the token that of TRESSETTE_TOKEN. Rejects with
 * a ConnectionLostError or a RefusedError if the arena cannot be reached (at one of its addresses: when the
 * sessions at the others are over) or does not want the bot, and with whatever the bot throws.
 */
export async function run(bot: Bot, address?: string, token?: string, options: RunOptions = {}): Promise<void> {
  const env = process.env;
  const first = address ?? env["TRESSETTE_ADDRESS"];
  if (!first) {
    throw new TypeError("no address: give one or set TRESSETTE_ADDRESS");
  }
  const settings: SessionOptions = {
    token: token ?? env["TRESSETTE_TOKEN"] ?? "",
    name: options.name ?? (env["TRESSETTE_BOT_NAME"] || bot.constructor.name || "bot"),
    version: options.version ?? "",
    maxMatches: options.maxMatches ?? 64,
    tlsRoots: options.tlsRoots,
    log: options.log ?? ((line) => console.error(line)),
  };
  const sessions = new Map<string, Session>();
  const leave = () => sessions.forEach((session) => session.leave());
  const { signal, stopOnSignals = true } = options;
  signal?.throwIfAborted();
  signal?.addEventListener("abort", leave);
  if (stopOnSignals) {
    process.once("SIGINT", leave).once("SIGTERM", leave);
  }
  try {
    await new Promise<void>((resolve, reject) => {
      const failures: unknown[] = [];
      let open = 0;
      const start = (at: string) => {
        if (sessions.has(at)) {
          return;
        }
        const session = new Session(at, bot, settings, (more) => more.forEach(start));
        sessions.set(at, session);
        open += 1;
        session
          .play()
          .catch((error: unknown) => {
            failures.push(error);
            // One address that cannot be reached is no reason to leave the others.
            if (!(error instanceof ConnectionLostError)) {
              leave();
            } else if (open > 1) {
              settings.log(`no arena at ${error.message}`);
            }
          })
          .finally(() => {
            open -= 1;
            if (open === 0) {
              failures.length > 0 ? reject(failures[0]) : resolve();
            }
          });
      };
      start(first);
    });
  } finally {
    signal?.removeEventListener("abort", leave);
    process.off("SIGINT", leave).off("SIGTERM", leave);
  }
}
