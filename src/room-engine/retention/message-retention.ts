import type { Clock } from '../../kernel/clock.ts';
import type { JsonObject } from '../../protocol/index.ts';
import { type StoredEvent, visibleContent } from '../stored-event.ts';
import type { EventReader } from '../timeline/event-store.ts';
import type { HeadReader, RoomHead } from '../timeline/room-head.ts';

/** The options `retention.*` that decide how old messages may become; times in milliseconds. */
export interface RetentionOptions {
  readonly enabled: boolean;
  readonly default_policy: { readonly max_lifetime: number | null };
  readonly allowed_lifetime_min: number | null;
  readonly allowed_lifetime_max: number | null;
}

export interface MessageRetentionDeps {
  readonly events: Pick<EventReader, 'peek' | 'get'>;
  readonly clock: Clock;
  /** Absent: messages never expire. */
  readonly options?: RetentionOptions | undefined;
}

/** The type of the state event that holds the retention policy of a room. Source: MSC1763. */
export const retentionType = 'm.room.retention';

/** The value of `expiredBefore` where messages never expire. */
const never = Number.NEGATIVE_INFINITY;

/**
 * Decides which messages have expired by the retention policies of their rooms. Clients do not receive expired
 * messages, even while these are still stored. State events never expire.
 */
export class MessageRetention {
  readonly #deps: MessageRetentionDeps;

  constructor(deps: MessageRetentionDeps) {
    this.#deps = deps;
  }

  /** Whether messages can expire (`retention.enabled`). */
  get isOn(): boolean {
    return this.#deps.options?.enabled === true;
  }

  /**
   * Returns the time before which messages of a room have expired, in milliseconds since the epoch; `-Infinity` where
   * messages never expire. Returns at once when the policy of the room is in memory.
   */
  expiredBefore(head: RoomHead): number | Promise<number> {
    if (!this.isOn) return never;
    const entry = head.entry(retentionType, '');
    if (!entry) return this.#expiredBy(undefined);
    const cached = this.#deps.events.peek(entry.nid);
    if (cached) return this.#expiredBy(cached);
    return this.#deps.events.get(entry.nid).then((stored) => this.#expiredBy(stored));
  }

  /**
   * Returns the `max_lifetime` of a room in milliseconds: the value of the room, or else of the default policy;
   * `undefined` when neither has a value. The caps of the server are not applied.
   * @param content of the `m.room.retention` event
   */
  lifetimeBy(content: JsonObject | undefined): number | undefined {
    const roomLifetime = content?.['max_lifetime'];
    return isLifetime(roomLifetime)
      ? roomLifetime
      : (this.#deps.options?.default_policy.max_lifetime ?? undefined);
  }

  /** Applies `allowed_lifetime_min` and `allowed_lifetime_max` to a lifetime. */
  capLifetime(lifetime: number): number {
    const { allowed_lifetime_min: min, allowed_lifetime_max: max } = this.#deps.options ?? {};
    return Math.min(Math.max(lifetime, min ?? 0), max ?? Number.POSITIVE_INFINITY);
  }

  #expiredBy(stored: StoredEvent | undefined): number {
    const lifetime = this.lifetimeBy(stored && visibleContent(stored));
    return lifetime === undefined ? never : this.#deps.clock.now() - this.capLifetime(lifetime);
  }
}

/** Returns whether an event is a message that was sent before a time, by the clock of its sender. */
export function isExpired({ event }: Pick<StoredEvent, 'event'>, expiredBefore: number): boolean {
  return event.originServerTs < expiredBefore && event.stateKey === undefined;
}

/** Returns the events that have not expired, in the same order. */
export function unexpired<E extends Pick<StoredEvent, 'event'>>(
  events: readonly E[],
  expiredBefore: number,
): readonly E[] {
  return expiredBefore === never ? events : events.filter((stored) => !isExpired(stored, expiredBefore));
}

/** Returns the events that have not expired, in the same order; they may be of several rooms. */
export async function withoutExpired(
  { heads, retention }: { readonly heads: HeadReader; readonly retention: MessageRetention },
  events: readonly StoredEvent[],
): Promise<readonly StoredEvent[]> {
  if (!retention.isOn) return events;
  const unexpiredEvents: StoredEvent[] = [];
  for (const stored of events) {
    const head = await heads.get(stored.event.roomId);
    if (!head || !isExpired(stored, await retention.expiredBefore(head))) unexpiredEvents.push(stored);
  }
  return unexpiredEvents;
}

/** Returns whether a value is a valid `min_lifetime` or `max_lifetime`: whole milliseconds. */
export const isLifetime = (value: unknown): value is number =>
  Number.isSafeInteger(value) && Number(value) >= 0;
