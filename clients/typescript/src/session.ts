import { setTimeout as delay } from "node:timers/promises";
import { credentials, status, type ClientDuplexStream, type ServiceError } from "@grpc/grpc-js";
import type { Bot } from "./bot.js";
import { decide } from "./decide.js";
import { ConnectionLostError, ProtocolError, RefusedError } from "./errors.js";
import {
  Answer,
  ArenaServiceClient,
  ErrorReason,
  Hello,
  type Batch,
  type Ending,
  type MatchUpdate,
  type PlayRequest,
  type PlayResponse,
  type Welcome,
} from "./gen/tressette/v1/arena_service.js";
import type { Turn } from "./gen/tressette/v1/view.js";
import { Match, View } from "./view.js";

const PROTOCOL = 1;
/** How long a connection is tried while there is nothing to lose: at first, and between matches. */
const IDLE_GRACE_MS = 10_000;
/** How long one stream may take to its Welcome. */
const WELCOME_MS = 5_000;
/** How long the arena may take to end a stream: to its Ending after a Goodbye, to close after the Ending. */
const GOODBYE_MS = 5_000;
const FIRST_BACKOFF_MS = 50;
const LONGEST_BACKOFF_MS = 2_000;
/** Answers wait for each other, to share a message, no longer than this. */
const SLICE_MS = 5;
/** More bytes than an answer has: a handle, at most 64, two dozen small numbers. */
const ANSWER_BYTES = 200;
/** Matches that are over and still recognised, should a resumed session hear of them again. */
const REMEMBERED = 10_000;

/** What a session needs to know; see RunOptions. */
export interface SessionOptions {
  token: string;
  name: string;
  version: string;
  maxMatches: number;
  tlsRoots: Buffer | undefined;
  log: (line: string) => void;
}

/** One match under way. */
class Running {
  /** Number of the turn that the bot is thinking about. */
  deciding = 0;
  /** The last answer that was not refused; sent again if its turn is. */
  answer: Answer | undefined;

  constructor(
    readonly handle: string,
    readonly match: Match,
  ) {}
}

/** Whether an address ("host:port") is this machine, where nobody else listens. */
export function isLoopback(address: string): boolean {
  const host = address.replace(/:\d+$/, "").replace(/^\[(.*)\]$/, "$1");
  return host === "localhost" || host === "::1" || /^127(\.\d+){3}$/.test(host);
}

/** One session with the arena, kept up over as many streams as it takes. */
export class Session {
  #stream: ClientDuplexStream<PlayRequest, PlayResponse> | undefined;
  #welcome: Welcome | undefined;
  #welcomed = false;
  #ending: Ending | undefined;
  #failure: unknown;
  readonly #left = new AbortController();
  readonly #matches = new Map<string, Running>();
  readonly #over = new Map<string, number>();
  #turns: [Running, Turn][] = [];
  #outbox: Answer[] = [];

  constructor(
    readonly address: string,
    readonly bot: Bot,
    readonly options: SessionOptions,
    /** Told where the arena can be found besides. */
    readonly onAddresses: (addresses: string[]) => void,
  ) {}

  /** Play until the arena ends the session or leave() is called. */
  async play(): Promise<void> {
    await this.#keepUp();
    if (this.#failure !== undefined) {
      throw this.#failure;
    }
  }

  async #keepUp(): Promise<void> {
    let backoff = FIRST_BACKOFF_MS;
    let lostAt = performance.now();
    while (!this.#left.signal.aborted) {
      const error = await this.#connect();
      if (this.#left.signal.aborted || this.#ending?.reason === ErrorReason.SHUTTING_DOWN) {
        return;
      }
      if (this.#ending?.reason === ErrorReason.RESUME_UNKNOWN && this.#welcome) {
        this.#forget();
        backoff = FIRST_BACKOFF_MS;
        lostAt = performance.now();
        continue;
      }
      if (this.#ending !== undefined) {
        throw new RefusedError(this.#ending.reason, this.#ending.message);
      }
      const reason = error?.message ?? "closed by the arena";
      if (this.#welcomed) {
        this.options.log(`connection lost (${reason}), trying again`);
        backoff = FIRST_BACKOFF_MS;
        lostAt = performance.now();
      }
      const grace = this.#welcome && this.#matches.size > 0 ? this.#welcome.graceMs : IDLE_GRACE_MS;
      // Not there yet, or too slow: the stream was cancelled here, before its Welcome.
      const worthwhile = error?.code === status.UNAVAILABLE || error?.code === status.CANCELLED;
      const hopeless = this.#welcome === undefined && !worthwhile;
      if (hopeless || performance.now() - lostAt + backoff > grace) {
        throw new ConnectionLostError(`${this.address}: ${reason}`, { cause: error });
      }
      await delay(backoff * (0.5 + Math.random() / 2), undefined, { signal: this.#left.signal }).catch(() => {});
      backoff = Math.min(2 * backoff, LONGEST_BACKOFF_MS);
    }
  }

  /** The arena does not know the session any more: its matches are lost, and another session is as good. */
  #forget(): void {
    if (this.#matches.size > 0) {
      this.options.log(`${this.#matches.size} matches are lost`);
    }
    this.#ending = this.#welcome = undefined;
    this.#matches.clear();
    this.#over.clear();
  }

  /** Say Goodbye; play() returns when the arena has answered it. */
  leave(): void {
    if (this.#left.signal.aborted) {
      return;
    }
    this.#left.abort();
    if (this.#welcomed) {
      this.#send({ $case: "goodbye", value: { message: "" } });
      this.#cancelAfter(GOODBYE_MS);
    } else {
      this.#stream?.cancel();
    }
  }

  /** One stream, from dialling to its end; the error, if that was one. */
  #connect(): Promise<ServiceError | undefined> {
    const { tlsRoots } = this.options;
    const local = isLoopback(this.address);
    const plain = local && tlsRoots === undefined;
    const client = new ArenaServiceClient(
      this.address,
      plain ? credentials.createInsecure() : credentials.createSsl(tlsRoots ?? null),
      {
        "grpc.enable_http_proxy": local ? 0 : 1,
        "grpc.max_receive_message_length": -1,
        "grpc.use_local_subchannel_pool": 1, // the backoff is ours, not that of an older channel
      },
    );
    this.#welcomed = false;
    this.#turns = [];
    this.#outbox = [];
    const stream = (this.#stream = client.play());
    const slow = setTimeout(() => stream.cancel(), WELCOME_MS);
    this.#send({
      $case: "hello",
      value: Hello.create({
        token: this.options.token,
        label: this.options.name,
        version: this.options.version,
        client: "typescript grpc-js",
        minProtocol: PROTOCOL,
        maxProtocol: PROTOCOL,
        maxMatches: this.options.maxMatches,
        resumeToken: this.#welcome?.resumeToken ?? "",
        positions: this.#welcome === undefined ? [] : this.#positions(),
      }),
    });
    return new Promise((resolve) => {
      let error: ServiceError | undefined;
      stream.on("data", (response: PlayResponse) => {
        this.#guard(() => {
          clearTimeout(slow);
          this.#hear(response);
        });
      });
      stream.on("error", (cause: ServiceError) => {
        error = cause;
      });
      stream.on("end", () => {
        // Comes whatever the status, after the last message and, if there is one, the error.
        clearTimeout(slow);
        this.#stream = undefined;
        client.close();
        resolve(error);
      });
    });
  }

  /** Where the bot stands in each match, those included whose end the arena may not know to have arrived. */
  #positions(): Hello["positions"] {
    const running = [...this.#matches].map(([handle, { match }]) => ({ handle, lastEvent: match.events.length }));
    const over = [...this.#over].map(([handle, lastEvent]) => ({ handle, lastEvent }));
    return [...running, ...over];
  }

  #hear({ message }: PlayResponse): void {
    switch (message?.$case) {
      case "ping":
        this.#send({ $case: "pong", value: { nonce: message.value.nonce } });
        break;
      case "batch":
        this.#takeIn(message.value);
        break;
      case "welcome":
        this.#greeted(message.value);
        break;
      case "drain":
        this.options.log(`no new matches: ${message.value.message}`);
        break;
      case "ending":
        // An arena that promises to be back is a lost connection, to be resumed.
        this.#ending = message.value.willReturn ? undefined : message.value;
        this.#stream?.end();
        this.#cancelAfter(GOODBYE_MS);
        break;
    }
  }

  #greeted(welcome: Welcome): void {
    if (this.#welcome !== undefined && !welcome.resumed) {
      throw new ProtocolError("the session was not resumed and not refused either");
    }
    this.#welcome = welcome;
    this.#welcomed = true;
    this.onAddresses(welcome.addresses);
  }

  #takeIn({ errors, updates }: Batch): void {
    if (this.#left.signal.aborted) {
      return;
    }
    for (const error of errors) {
      this.options.log(`${ErrorReason[error.reason] ?? error.reason}: ${error.message} ${error.field}`.trimEnd());
      const running = this.#matches.get(error.handle);
      if (error.mayRetry && running?.answer?.turnId === error.turnId) {
        running.answer = undefined;
      }
    }
    for (const update of updates) {
      this.#update(update);
    }
    this.#work();
  }

  #update({ handle, started, firstEvent, events, turn }: MatchUpdate): void {
    if (this.#over.has(handle)) {
      return;
    }
    let running = this.#matches.get(handle);
    if (running === undefined) {
      if (started === undefined) {
        throw new ProtocolError(`news of ${handle}, a match that never started`);
      }
      running = new Running(handle, new Match(started));
      this.#matches.set(handle, running);
      this.bot.matchStarted(running.match);
    }
    const ended = running.match.take(firstEvent, events);
    if (ended !== undefined) {
      this.#matches.delete(handle);
      this.#over.set(handle, running.match.events.length);
      for (const oldest of this.#over.keys()) {
        if (this.#over.size <= REMEMBERED) break;
        this.#over.delete(oldest);
      }
      this.bot.matchEnded(running.match, ended);
    } else if (turn !== undefined) {
      this.#turns.push([running, turn]);
    }
  }

  /** Have the bot answer what is asked, and let go of the answers every few milliseconds. */
  #work(): void {
    const begun = performance.now();
    for (let asked = this.#turns.shift(); asked !== undefined; asked = this.#turns.shift()) {
      this.#ask(...asked);
      if (this.#turns.length > 0 && performance.now() - begun > SLICE_MS) {
        setImmediate(() => this.#guard(() => this.#work()));
        break;
      }
    }
    this.#flush();
  }

  #ask(running: Running, turn: Turn): void {
    const { handle } = running;
    const { turnId } = turn;
    if (running.answer?.turnId === turnId) {
      this.#outbox.push(running.answer); // sent before on a stream that broke
      return;
    }
    if (running.deciding === turnId) {
      return; // the answer will come
    }
    const chosen = decide(this.bot, new View(running.match, turn));
    if (chosen instanceof Promise) {
      running.deciding = turnId;
      chosen
        .then((choice) => {
          if (running.deciding !== turnId || this.#matches.get(handle) !== running) {
            return; // the arena has gone on without it
          }
          running.deciding = 0;
          running.answer = { ...choice, handle, turnId };
          this.#outbox.push(running.answer);
          this.#flush();
        })
        .catch((error: unknown) => this.#fail(error));
    } else {
      running.answer = { ...chosen, handle, turnId };
      this.#outbox.push(running.answer);
    }
  }

  #flush(): void {
    if (!this.#welcomed || this.#welcome === undefined) {
      return;
    }
    const { maxAnswers, maxMessageBytes } = this.#welcome;
    const most = Math.max(1, Math.min(maxAnswers, Math.floor(maxMessageBytes / ANSWER_BYTES)));
    while (this.#outbox.length > 0) {
      this.#send({ $case: "answers", value: { answers: this.#outbox.splice(0, most) } });
    }
  }

  #send(message: NonNullable<PlayRequest["message"]>): void {
    if (this.#ending === undefined) {
      this.#stream?.write({ message });
    }
  }

  #cancelAfter(ms: number): void {
    const stream = this.#stream;
    if (stream !== undefined) {
      const timer = setTimeout(() => stream.cancel(), ms);
      stream.once("end", () => clearTimeout(timer));
    }
  }

  /** An error in the bot, or one of the protocol, ends the session. */
  #guard(action: () => void): void {
    try {
      action();
    } catch (error) {
      this.#fail(error);
    }
  }

  #fail(error: unknown): void {
    this.#failure ??= error;
    this.leave();
  }
}
