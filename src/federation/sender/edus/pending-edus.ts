import type { Clock } from '../../../kernel/clock.ts';
import type { JsonObject } from '../../../protocol/index.ts';
import type { Edu } from '../transactions/edu.ts';

/** An EDU that expires, because it is about a current state. */
export interface EphemeralEdu extends Edu {
  /** Key of the subject: the EDU replaces a pending EDU with the same type and key. */
  readonly key: string;
  /** Milliseconds after which it is not sent any more. */
  readonly lifetime: number;
  /** Combines several contents into as few as possible. Absent: each content is sent as an EDU of its own. */
  readonly combine?: (contents: readonly JsonObject[]) => JsonObject[];
}

interface Pending {
  readonly edu: EphemeralEdu;
  /** Milliseconds of the monotonic clock. */
  readonly expiresAt: number;
}

/** Maximum number of pending EDUs for one destination; beyond it the oldest are dropped. */
const maxPending = 500;

/** Maximum number of EDUs that one call of `combine` receives. */
const maxCombined = 100;

/** The pending ephemeral EDUs of one destination. */
export class PendingEdus {
  readonly #clock: Clock;
  /** By type and key, the oldest first. */
  #pending = new Map<string, Pending>();
  /** EDUs that are in flight and may have to be sent again. */
  readonly #inFlight = new Map<string, Pending>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Number of pending EDUs, without the EDUs in flight. */
  get size(): number {
    return this.#pending.size;
  }

  /** Adds an EDU in place of a pending EDU of the same type and key; drops the oldest EDU when there are too many. */
  add(edu: EphemeralEdu): void {
    const key = `${edu.type}\0${edu.key}`;
    this.#pending.delete(key);
    this.#pending.set(key, { edu, expiresAt: this.#clock.monotonic() + edu.lifetime });
    if (this.#pending.size <= maxPending) return;
    for (const oldest of this.#pending.keys()) {
      this.#pending.delete(oldest);
      break;
    }
  }

  /** Drops the EDUs in flight, because they were acknowledged or refused. */
  settled(): void {
    this.#inFlight.clear();
  }

  /**
   * Makes the EDUs in flight pending again, because they did not arrive. They come before all newer EDUs. Drops an EDU
   * that a newer EDU replaces.
   */
  putBack(): void {
    const newer = this.#pending;
    this.#pending = new Map([...this.#inFlight, ...newer]);
    this.#inFlight.clear();
    for (const oldest of [...this.#pending.keys()].slice(0, Math.max(0, this.size - maxPending))) {
      this.#pending.delete(oldest);
    }
  }

  /** Drops EDUs that expire within `pause` milliseconds. */
  dropExpiringWithin(pause: number): void {
    const deadline = this.#clock.monotonic() + pause;
    for (const [key, { expiresAt }] of this.#pending) if (expiresAt <= deadline) this.#pending.delete(key);
  }

  /**
   * Removes the oldest EDUs, combines them, and returns at most `limit` EDUs. The returned EDUs are in flight. Drops
   * expired EDUs.
   */
  take(limit: number): Edu[] {
    const now = this.#clock.monotonic();
    const edus: Edu[] = [];
    const combined = new Set<string>();
    for (const [key, pending] of this.#pending) {
      const { edu, expiresAt } = pending;
      if (edus.length >= limit) break;
      if (edu.combine) {
        if (combined.has(edu.type)) continue;
        combined.add(edu.type);
        edus.push(...this.#takeCombined(edu, limit - edus.length, now));
      } else {
        this.#pending.delete(key);
        if (expiresAt <= now) continue;
        this.#inFlight.set(key, pending);
        edus.push({ type: edu.type, content: edu.content });
      }
    }
    return edus;
  }

  /**
   * Removes EDUs of one type and returns at most `limit` EDUs that combine them.
   * @param first the oldest EDU of the type
   */
  #takeCombined(first: EphemeralEdu, limit: number, now: number): Edu[] {
    const { type, combine = (contents) => [...contents] } = first;
    const selected = new Map<string, Pending>();
    for (const [key, pending] of this.#pending) {
      if (pending.edu.type !== type) continue;
      if (pending.expiresAt <= now) this.#pending.delete(key);
      else if (selected.size < maxCombined) selected.set(key, pending);
    }
    const render = () => combine(Array.from(selected.values(), ({ edu }) => edu.content));
    let contents = render();
    while (contents.length > limit) {
      for (const key of [...selected.keys()].slice(Math.ceil(selected.size / 2))) selected.delete(key);
      contents = render();
    }
    for (const [key, pending] of selected) {
      this.#pending.delete(key);
      this.#inFlight.set(key, pending);
    }
    return contents.map((content) => ({ type, content }));
  }
}
