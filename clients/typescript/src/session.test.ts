/** The client against an arena that follows a script: one function for each stream, in order. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { Server, ServerCredentials, status, type ServerDuplexStream } from "@grpc/grpc-js";
import { plain, started, turn } from "./fixtures.js";
import {
  ArenaServiceService,
  Batch,
  ErrorReason,
  MatchUpdate,
  Welcome,
  type Hello,
  type PlayRequest,
  type PlayResponse,
} from "./gen/tressette/v1/arena_service.js";
import {
  ConnectionLostError,
  MatchEndReason,
  parseCard,
  parseCards,
  RefusedError,
  run,
  type Bot,
  type Card,
  type Event,
  type RunOptions,
} from "./index.js";
import { isLoopback } from "./session.js";

type Request = NonNullable<PlayRequest["message"]>;
type Content<Kind extends Request["$case"]> = Extract<Request, { $case: Kind }>["value"];

/** The arena's end of one stream. */
class Stream {
  readonly #requests: AsyncIterator<PlayRequest>;

  constructor(readonly call: ServerDuplexStream<PlayRequest, PlayResponse>) {
    this.#requests = call[Symbol.asyncIterator]();
  }

  send(message: NonNullable<PlayResponse["message"]>): void {
    this.call.write({ message });
  }

  async read<Kind extends Request["$case"]>(kind: Kind): Promise<Content<Kind>> {
    const { value, done } = await this.#requests.next();
    assert.ok(!done, `the bot has gone without a ${kind}`);
    assert.equal(value.message?.$case, kind);
    return value.message.value as Content<Kind>;
  }

  async welcome(fields: Partial<Welcome> = {}): Promise<Hello> {
    const hello = await this.read("hello");
    const usual = { resumeToken: "again", graceMs: 5_000, maxAnswers: 100, maxMessageBytes: 1 << 20 };
    this.send({ $case: "welcome", value: Welcome.create({ ...usual, ...fields }) });
    return hello;
  }

  batch(batch: Parameters<typeof Batch.create>[0]): void {
    this.send({ $case: "batch", value: Batch.create(batch) });
  }

  update(update: Parameters<typeof MatchUpdate.create>[0]): void {
    this.batch({ updates: [MatchUpdate.create(update)] });
  }

  cut(): void {
    this.call.emit("error", { code: status.UNAVAILABLE, details: "cut" });
  }

  end(reason = ErrorReason.SHUTTING_DOWN): void {
    this.send({ $case: "ending", value: { reason, message: "said so", willReturn: false } });
    this.call.end();
  }
}

/** Run a bot against an arena that does this on its streams. */
async function against(
  script: ((stream: Stream) => Promise<void>)[],
  bot: Bot = plain(),
  options: RunOptions = {},
): Promise<void> {
  const server = new Server();
  let failure: unknown;
  const left = [...script];
  server.addService(ArenaServiceService, {
    play: (call: ServerDuplexStream<PlayRequest, PlayResponse>) => {
      const act = left.shift() ?? (async () => assert.fail("one stream more than expected"));
      act(new Stream(call)).catch((error: unknown) => {
        failure ??= error;
        server.forceShutdown();
      });
    },
  });
  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, at) =>
      error ? reject(error) : resolve(at),
    ),
  );
  try {
    await run(bot, `127.0.0.1:${port}`, "secret", { name: "b", log: () => {}, ...options });
  } catch (error) {
    throw failure ?? error;
  } finally {
    server.forceShutdown();
  }
  if (failure !== undefined) {
    throw failure;
  }
  assert.equal(left.length, 0, "streams that were never opened");
}

const trick = (seat: number): Event => ({ kind: { $case: "trickWon", value: { seat, thirds: 1 } } });
const over: Event = {
  kind: {
    $case: "matchEnded",
    value: { reason: MatchEndReason.PLAYED_OUT, totals: [6, 0], ranks: [1, 2], forfeited: undefined, suits: [] },
  },
};
const cards = parseCards("3d 4d");

test("it says who it is, answers pings and turns, and ends with the arena", async () => {
  const seen: string[] = [];
  const bot = plain({ matchStarted: () => seen.push("started"), matchEnded: (_, { totals }) => seen.push(`${totals}`) });
  await against(
    [
      async (stream) => {
        const hello = await stream.welcome();
        assert.deepEqual(
          [hello.token, hello.label, hello.minProtocol, hello.maxProtocol, hello.maxMatches, hello.resumeToken],
          ["secret", "b", 1, 1, 3, ""],
        );
        stream.send({ $case: "ping", value: { nonce: 2n ** 64n - 1n } });
        assert.equal((await stream.read("pong")).nonce, 2n ** 64n - 1n);
        stream.update({ handle: "h", started: started(), firstEvent: 1, turn: turn({ cards }) });
        const { answers } = await stream.read("answers");
        assert.deepEqual(answers.map((a) => [a.handle, a.turnId, a.card]), [["h", 1, parseCard("3d")]]);
        stream.update({ handle: "h", firstEvent: 1, events: [trick(1), over] });
        stream.end();
      },
    ],
    bot,
    { maxMatches: 3 },
  );
  assert.deepEqual(seen, ["started", "6,0"]);
});

test("answers share messages, as many as the arena takes", async () => {
  await against([
    async (stream) => {
      await stream.welcome({ maxAnswers: 2 });
      const updates = ["a", "b", "c"].map((handle) => ({ handle, started: started(), turn: turn({ cards }) }));
      stream.batch({ updates });
      const handles = async () => (await stream.read("answers")).answers.map(({ handle }) => handle);
      assert.deepEqual([await handles(), await handles()], [["a", "b"], ["c"]]);
      stream.end();
    },
  ]);
});

test("a bot that takes its time does not hold back the answers decided before", async () => {
  const bot = plain({
    choose: () => {
      const until = performance.now() + 10;
      while (performance.now() < until);
      return parseCard("3d");
    },
  });
  await against(
    [
      async (stream) => {
        await stream.welcome();
        stream.batch({
          updates: ["a", "b"].map((handle) => ({ handle, started: started(), turn: turn({ cards }) })),
        });
        assert.equal((await stream.read("answers")).answers.length, 1);
        assert.equal((await stream.read("answers")).answers.length, 1);
        stream.end();
      },
    ],
    bot,
  );
});

test("after a refusal the bot is asked again", async () => {
  const choices = parseCards("4d 3d");
  await against(
    [
      async (stream) => {
        await stream.welcome();
        stream.update({ handle: "h", started: started(), turn: turn({ cards }) });
        assert.equal((await stream.read("answers")).answers[0]?.card, parseCard("4d"));
        stream.batch({
          errors: [
            { reason: ErrorReason.CARD_NOT_HELD, message: "", handle: "h", turnId: 1, field: "", mayRetry: true },
          ],
          updates: [MatchUpdate.create({ handle: "h", turn: turn({ cards }) })],
        });
        assert.equal((await stream.read("answers")).answers[0]?.card, parseCard("3d"));
        stream.end();
      },
    ],
    plain({ choose: () => choices.shift() as Card }),
  );
});

test("a lost stream is taken up again where it broke, and the bot is not asked twice", async () => {
  let asked = 0;
  const bot = plain({
    choose: async () => {
      asked += 1;
      return parseCard("4d");
    },
  });
  await against(
    [
      async (stream) => {
        await stream.welcome();
        stream.update({ handle: "done", started: started(), firstEvent: 1, events: [over] });
        stream.update({ handle: "h", started: started(), firstEvent: 1, events: [trick(0)], turn: turn({ cards }) });
        await stream.read("answers");
        stream.cut();
      },
      async (stream) => {
        const hello = await stream.welcome({ resumed: true });
        assert.equal(hello.resumeToken, "again");
        assert.deepEqual(hello.positions, [
          { handle: "h", lastEvent: 1 },
          { handle: "done", lastEvent: 1 },
        ]);
        stream.update({ handle: "h", started: started(), firstEvent: 2, events: [trick(1)], turn: turn({ cards }) });
        const { answers } = await stream.read("answers");
        assert.deepEqual(answers.map((a) => [a.turnId, a.card]), [[1, parseCard("4d")]]);
        stream.end();
      },
    ],
    bot,
  );
  assert.equal(asked, 1);
});

test("a session that cannot be resumed within the grace is lost", async () => {
  const cut = async (stream: Stream) => {
    await stream.welcome({ graceMs: 1 });
    stream.update({ handle: "h", started: started() });
    stream.cut();
  };
  await assert.rejects(against([cut]), ConnectionLostError);
});

test("an idle session that was not kept is followed by a new one", async () => {
  await against([
    async (stream) => {
      await stream.welcome({ graceMs: 0 });
      stream.cut();
    },
    async (stream) => {
      assert.equal((await stream.read("hello")).resumeToken, "again");
      stream.end(ErrorReason.RESUME_UNKNOWN);
    },
    async (stream) => {
      assert.equal((await stream.welcome()).resumeToken, "");
      stream.end();
    },
  ]);
});

test("a session that is forgotten with its matches is followed by a new one", async () => {
  let first: ((card: Card) => void) | undefined;
  const choose = () =>
    first === undefined ? new Promise<Card>((resolve) => (first = resolve)) : Promise.resolve(parseCard("4d"));
  await against(
    [
      async (stream) => {
        await stream.welcome();
        stream.update({ handle: "lost", started: started(), firstEvent: 1, events: [trick(0)], turn: turn({ cards }) });
        stream.send({ $case: "ping", value: { nonce: 1n } });
        await stream.read("pong");
        stream.cut();
      },
      async (stream) => {
        assert.equal((await stream.read("hello")).positions.length, 1);
        stream.end(ErrorReason.RESUME_UNKNOWN);
      },
      async (stream) => {
        const hello = await stream.welcome();
        assert.deepEqual([hello.resumeToken, hello.positions], ["", []]);
        first?.(parseCard("4d")); // of the match that is lost: nobody wants it any more
        stream.update({ handle: "new", started: started(), firstEvent: 1, turn: turn({ cards }) });
        const { answers } = await stream.read("answers");
        assert.deepEqual(answers.map((a) => a.handle), ["new"]);
        stream.end();
      },
    ],
    plain({ choose }),
  );
});

test("an answer to a turn that is over is not sent, and does not hide the next one", async () => {
  const waiting: ((card: Card) => void)[] = [];
  await against(
    [
      async (stream) => {
        await stream.welcome();
        stream.update({ handle: "h", started: started(), turn: turn({ cards }, 1) });
        stream.update({ handle: "h", turn: turn({ cards }, 2) });
        stream.send({ $case: "ping", value: { nonce: 1n } });
        await stream.read("pong");
        waiting[0]?.(parseCard("4d"));
        stream.update({ handle: "h", turn: turn({ cards }, 2) }); // sent again while the bot thinks
        stream.send({ $case: "ping", value: { nonce: 2n } });
        await stream.read("pong");
        waiting[1]?.(parseCard("5d"));
        const { answers } = await stream.read("answers");
        assert.deepEqual(answers.map((a) => [a.turnId, a.card]), [[2, parseCard("5d")]]);
        stream.end();
      },
    ],
    plain({ choose: () => new Promise<Card>((resolve) => waiting.push(resolve)) }),
  );
  assert.equal(waiting.length, 2);
});

test("an address that cannot be reached is no reason to leave the others", async () => {
  const nowhere = "127.0.0.1:1"; // a port that nobody listens on
  let lost = () => {};
  const gone = new Promise<void>((resolve) => (lost = resolve));
  let answered = false;
  const stay = async (stream: Stream) => {
    await stream.welcome({ addresses: [nowhere] });
    await gone;
    stream.update({ handle: "h", started: started(), turn: turn({ cards }) });
    await stream.read("answers");
    answered = true;
    stream.end();
  };
  const log = (line: string) => {
    if (line.includes(nowhere)) lost();
  };
  await assert.rejects(against([stay], plain(), { log }), ConnectionLostError);
  assert.ok(answered);
});

test("an arena that is slow to greet is tried again", async () => {
  await against([
    async (stream) => {
      await stream.read("hello");
    },
    async (stream) => {
      await stream.welcome();
      stream.end();
    },
  ]);
});

test("a refusal is an error", async () => {
  const refuse = async (stream: Stream) => {
    await stream.read("hello");
    stream.end(ErrorReason.UNAUTHENTICATED);
  };
  await assert.rejects(against([refuse]), (error) => error instanceof RefusedError && /UNAUTHENTICATED/.test(error.message));
});

test("it leaves with a Goodbye when told to", async () => {
  const stop = new AbortController();
  const bye = async (stream: Stream) => {
    await stream.welcome();
    stream.update({ handle: "h", started: started() });
    await stream.read("goodbye");
    stream.end(ErrorReason.UNSPECIFIED);
  };
  await against([bye], plain({ matchStarted: () => stop.abort() }), { signal: stop.signal });
});

test("SIGTERM makes it leave", async () => {
  const before = process.listenerCount("SIGTERM");
  const bye = async (stream: Stream) => {
    await stream.welcome();
    process.kill(process.pid, "SIGTERM");
    await once(process, "SIGTERM");
    await stream.read("goodbye");
    stream.end(ErrorReason.UNSPECIFIED);
  };
  await against([bye]);
  assert.equal(process.listenerCount("SIGTERM"), before);
});

for (const thrown of ["at once", "later"]) {
  test(`what the bot throws ${thrown} ends the run, with a Goodbye`, async () => {
    const bye = async (stream: Stream) => {
      await stream.welcome();
      stream.update({ handle: "h", started: started(), turn: turn({ cards }) });
      await stream.read("goodbye");
      stream.end(ErrorReason.UNSPECIFIED);
    };
    const choose = () => {
      const error = new Error("no idea");
      if (thrown === "later") return Promise.reject(error);
      throw error;
    };
    await assert.rejects(against([bye], plain({ choose })), /no idea/);
  });
}

test("loopback addresses are told from others", () => {
  for (const address of ["localhost:1", "127.0.0.1:1", "127.9.9.9:1", "[::1]:1"]) {
    assert.ok(isLoopback(address), address);
  }
  for (const address of ["arena.example:1", "10.0.0.1:1", "[fe80::1]:1", "127.0.0.1.example:1"]) {
    assert.ok(!isLoopback(address), address);
  }
});
