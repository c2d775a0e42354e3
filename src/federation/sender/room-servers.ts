import { RecentlyUsed } from '../../kernel/caches/index.ts';
import type { Clock } from '../../kernel/clock.ts';
import { serverOfUser } from '../../protocol/index.ts';
import type { RoomFact, RoomHead } from '../../rooms/index.ts';

/** Rooms of which it is known which servers were in them at the last event. */
const roomsKnown = 5_000;

/** Milliseconds after which a server that is in the head no more is gone, whether its leaving was heard of or not. */
const longestDelay = 10_000;

/**
 * Which servers are in a room at an event. The head of a room runs ahead of its stream: whoever is about to leave is
 * gone from it before the events that came earlier have been handed out, so that these servers are remembered until
 * the stream has come to their leaving as well.
 */
export class RoomServers {
  readonly #clock: Clock;
  /** Room id to servers, with the time at which each was last in the head. */
  readonly #known = new RecentlyUsed<string, Map<string, number>>({ max: roomsKnown });

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The servers that are in the room at the event that the stream has come to. */
  of(head: RoomHead): Iterable<string> {
    const now = this.#clock.monotonic();
    const known = this.#known.get(head.roomId) ?? new Map<string, number>();
    for (const server of head.servers.keys()) known.set(server, now);
    for (const [server, seenAt] of known) if (now - seenAt > longestDelay) known.delete(server);
    this.#known.set(head.roomId, known);
    return known.keys();
  }

  /** The stream has come past an event. */
  changed({ roomId, membershipChanges }: RoomFact): void {
    const known = membershipChanges.length === 0 ? undefined : this.#known.get(roomId);
    if (!known) return;
    for (const { userId, from, to } of membershipChanges) {
      if (from === 'join' && to !== 'join') known.delete(serverOfUser(userId));
    }
  }
}
