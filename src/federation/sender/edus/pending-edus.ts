import type { Clock } from '../../../kernel/clock.ts';
import type { JsonObject } from '../../../protocol/index.ts';
import type { Edu } from './edu.ts';

/** An EDU that says something about now, and is worth less with time. */
export interface EphemeralEdu extends Edu {
  /** What it is about: it takes the place of an earlier one with the same type and key that was not sent yet. */
  readonly key: string;
  /** For how many milliseconds it is worth sending. */
  readonly lifetime: number;
  /** Makes as few contents as possible of several; without it, each is sent by itself. */
  readonly combine?: (contents: readonly JsonObject[]) => JsonObject[];
}

interface Pending {
  readonly edu: EphemeralEdu;
  readonly until: number;
}

/** How many wait for one destination at most; when there are more, the oldest are dropped. */
const maxPending = 500;

/** How many of those that can be combined are taken at a time. */
const maxCombined = 100;

/** The ephemeral EDUs that wait for one destination. */
export class PendingEdus {
  readonly #clock: Clock;
  #pending = new Map<string, Pending>();
  /** What was taken out and may have to be sent again. */
  readonly #taken = new Map<string, Pending>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get size(): number {
    return this.#pending.size;
  }

  add(edu: EphemeralEdu): void {
    const key = `${edu.type}\0${edu.key}`;
    this.#pending.delete(key);
    this.#pending.set(key, { edu, until: this.#clock.monotonic() + edu.lifetime });
    if (this.#pending.size <= maxPending) return;
    for (const oldest of this.#pending.keys()) {
      this.#pending.delete(oldest);
      break;
    }
  }

  /** What was taken has arrived, or is not wanted. */
  settled(): void {
    this.#taken.clear();
  }

  /** What was taken has not arrived: what nothing newer has taken the place of waits again, before the others. */
  putBack(): void {
    const newer = this.#pending;
    this.#pending = new Map([...this.#taken, ...newer]);
    this.#taken.clear();
    for (const oldest of [...this.#pending.keys()].slice(0, Math.max(0, this.size - maxPending))) {
      this.#pending.delete(oldest);
    }
  }

  /** Drops what will be stale in so many milliseconds. */
  dropStaleIn(pause: number): void {
    const then = this.#clock.monotonic() + pause;
    for (const [key, { until }] of this.#pending) if (until <= then) this.#pending.delete(key);
  }

  /** Takes out what makes `limit` EDUs at most, oldest first; what is stale is dropped. */
  take(limit: number): Edu[] {
    const now = this.#clock.monotonic();
    const taken: Edu[] = [];
    const combined = new Set<string>();
    for (const [key, pending] of this.#pending) {
      const { edu, until } = pending;
      if (taken.length >= limit) break;
      if (edu.combine) {
        if (combined.has(edu.type)) continue;
        combined.add(edu.type);
        taken.push(...this.#takeCombined(edu, limit - taken.length, now));
      } else {
        this.#pending.delete(key);
        if (until <= now) continue;
        this.#taken.set(key, pending);
        taken.push({ type: edu.type, content: edu.content });
      }
    }
    return taken;
  }

  #takeCombined(sample: EphemeralEdu, limit: number, now: number): Edu[] {
    const { type, combine = (contents) => [...contents] } = sample;
    const chosen = new Map<string, Pending>();
    for (const [key, pending] of this.#pending) {
      if (pending.edu.type !== type) continue;
      if (pending.until <= now) this.#pending.delete(key);
      else if (chosen.size < maxCombined) chosen.set(key, pending);
    }
    const render = () => combine(Array.from(chosen.values(), ({ edu }) => edu.content));
    let contents = render();
    while (contents.length > limit) {
      for (const key of [...chosen.keys()].slice(Math.ceil(chosen.size / 2))) chosen.delete(key);
      contents = render();
    }
    for (const [key, pending] of chosen) {
      this.#pending.delete(key);
      this.#taken.set(key, pending);
    }
    return contents.map((content) => ({ type, content }));
  }
}
