#!/usr/bin/env node
import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { Bot, run, type Card, type View } from "./index.js";

const USAGE = `Usage: first-legal [--address HOST:PORT] [--token TEXT] [--label TEXT] [--max-matches N] [--tls-root FILE]

Play the first legal card until the arena ends the session. Address, token and label are else taken from
TRESSETTE_ADDRESS, TRESSETTE_TOKEN and TRESSETTE_BOT_NAME. The exit status is 0 when the arena shut down or the
bot was stopped by SIGINT or SIGTERM, 2 for a wrong command line, 1 for anything else.`;

class FirstLegal extends Bot {
  override choose(view: View): Card {
    return view.legal.cards[0] as Card;
  }
}

function options() {
  const { values } = parseArgs({
    options: {
      address: { type: "string" },
      token: { type: "string" },
      label: { type: "string" },
      "max-matches": { type: "string" },
      "tls-root": { type: "string" },
      help: { type: "boolean", short: "h" },
    },
  });
  const maxMatches = Number(values["max-matches"] ?? 64);
  if (!Number.isInteger(maxMatches) || maxMatches < 1) {
    throw new TypeError("--max-matches is a whole number, 1 or more");
  }
  if (!values.help && !(values.address ?? process.env["TRESSETTE_ADDRESS"])) {
    throw new TypeError("--address is missing and TRESSETTE_ADDRESS is not set");
  }
  const tlsRoot = values["tls-root"];
  return { ...values, maxMatches, tlsRoots: tlsRoot === undefined ? undefined : readFileSync(tlsRoot) };
}

let given: ReturnType<typeof options>;
try {
  given = options();
} catch (error) {
  console.error(`${error instanceof Error ? error.message : error}\n\n${USAGE}`);
  process.exit(2);
}
if (given.help) {
  console.log(USAGE);
  process.exit(0);
}
const { maxMatches, tlsRoots } = given;
const version = "1";
const name = given.label ?? (process.env["TRESSETTE_BOT_NAME"] || "first-legal");
try {
  await run(new FirstLegal(), given.address, given.token, { name, version, maxMatches, tlsRoots });
} catch (error) {
  console.error(String(error));
  process.exitCode = 1;
}
