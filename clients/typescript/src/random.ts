/** Chance that can be repeated: xoshiro128** from the first 16 bytes of a seed. */
export class Random {
  readonly #state: Uint32Array;

  constructor(seed: Uint8Array) {
    if (seed.length < 16) {
      throw new RangeError("a seed has at least 16 bytes");
    }
    const bytes = new DataView(seed.buffer, seed.byteOffset);
    this.#state = Uint32Array.from([0, 4, 8, 12], (offset) => bytes.getUint32(offset, true));
    if (this.#state.every((word) => word === 0)) {
      this.#state[0] = 1;
    }
  }

  /** A whole number from 0 to 2 ** 32 - 1. */
  bits(): number {
    const [a, b, c, d] = this.#state as unknown as [number, number, number, number];
    const times5 = Math.imul(b, 5);
    const result = Math.imul((times5 << 7) | (times5 >>> 25), 9) >>> 0;
    const mixedC = c ^ a;
    const mixedD = d ^ b;
    this.#state[0] = a ^ mixedD;
    this.#state[1] = b ^ mixedC;
    this.#state[2] = mixedC ^ (b << 9);
    this.#state[3] = (mixedD << 11) | (mixedD >>> 21);
    return result;
  }

  /** A number from 0 to below 1. */
  next(): number {
    return this.bits() / 2 ** 32;
  }

  /** One of the items, all equally likely. */
  pick<T>(items: readonly T[]): T {
    if (items.length === 0) {
      throw new RangeError("nothing to pick from");
    }
    return items[Math.floor(this.next() * items.length)] as T;
  }
}
