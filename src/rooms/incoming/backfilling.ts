import { RecentlyUsed } from '../../kernel/caches/index.ts';
import { type Clock, sleep } from '../../kernel/clock.ts';
import type { Logger } from '../../kernel/observability/index.ts';
import type { OlderEvent, Placement } from '../placement/placement.ts';
import type { VerifiedEvent } from '../placement/verified-event.ts';
import type { RoomHead } from '../timeline/room-head.ts';
import type { RoomHeads } from '../timeline/room-heads.ts';
import type { AuthFetcher } from './auth-fetcher.ts';
import type { Inquiries } from './inquiries.ts';
import { type Inquiry, requestTimeout } from './inquiry.ts';
import type { Intake } from './intake.ts';
import type { RemoteEvents } from './remote-servers.ts';
import type { RoomServers } from './room-servers.ts';
import { isSettled } from './settled.ts';
import type { StateFetcher } from './state-fetcher.ts';

/** Events of one answer, at least and at most; ids that a question names. */
const [fewest, most, mostNamed] = [20, 100, 20];

/** Milliseconds that a client waits, and for which events that nobody gives are not asked for again. */
const [patienceOfClients, pause] = [10_000, 5 * 60_000];

/** Events of one answer whose states have to be fetched. */
const mostStates = 5;

/** Events that were asked for lately. */
const mostRemembered = 20_000;

/** Fetches older history for those who read it. */
export class Backfilling {
  readonly #parts: {
    readonly heads: RoomHeads;
    readonly placement: Placement;
    readonly remote: RemoteEvents;
    readonly intake: Intake;
    readonly auth: AuthFetcher;
    readonly states: StateFetcher;
    readonly servers: RoomServers;
    readonly inquiries: Inquiries;
    readonly clock: Clock;
    readonly log: Logger;
  };
  readonly #underWay = new Map<string, Promise<boolean>>();
  /** Until when an event is not asked for again. */
  readonly #asked = new RecentlyUsed<string, number>({ max: mostRemembered });

  constructor(parts: {
    readonly heads: RoomHeads;
    readonly placement: Placement;
    readonly remote: RemoteEvents;
    readonly intake: Intake;
    readonly auth: AuthFetcher;
    readonly states: StateFetcher;
    readonly servers: RoomServers;
    readonly inquiries: Inquiries;
    readonly clock: Clock;
    readonly log: Logger;
  }) {
    this.#parts = parts;
  }

  /** Whether somebody could be asked about the room: a look into memory. */
  isPossible(head: RoomHead): boolean {
    return this.#parts.servers.hasOthers(head);
  }

  /**
   * Fetches events that the timeline names and does not have, and some that come before them. Who asks for the same
   * room at the same time shares one question. Waits ten seconds at the most; what arrives later is kept.
   * @returns whether there is more to read than before
   */
  async backfill(roomId: string, eventIds: readonly string[], limit: number): Promise<boolean> {
    const underWay = this.#underWay.get(roomId);
    if (underWay) return this.#inTime(underWay);
    const now = this.#parts.clock.now();
    const wanted = eventIds.filter((id) => (this.#asked.get(id) ?? 0) <= now).slice(0, mostNamed);
    const head = await this.#parts.heads.get(roomId);
    if (wanted.length === 0 || !head || !this.isPossible(head)) return false;
    const running = this.#underWay.get(roomId) ?? this.#start(head, wanted, limit);
    return this.#inTime(running);
  }

  async settled(): Promise<void> {
    while (this.#underWay.size > 0) await Promise.all(this.#underWay.values());
  }

  #start(head: RoomHead, eventIds: readonly string[], limit: number): Promise<boolean> {
    const { inquiries, log, clock } = this.#parts;
    const { roomId } = head;
    const running = (async () => {
      try {
        return await inquiries.run(head, [], (inquiry) => this.#run(inquiry, eventIds, limit));
      } catch (error) {
        log.warn({ err: error, roomId }, 'Older history of a room could not be taken');
        return false;
      } finally {
        for (const id of eventIds) this.#asked.set(id, clock.now() + pause);
        this.#underWay.delete(roomId);
      }
    })();
    this.#underWay.set(roomId, running);
    return running;
  }

  /** What comes of it, or `false` when that takes too long. */
  async #inTime(running: Promise<boolean>): Promise<boolean> {
    const waiting = new AbortController();
    const late = sleep(this.#parts.clock, patienceOfClients, waiting.signal).then(() => false);
    try {
      return await Promise.race([running, late]);
    } finally {
      waiting.abort();
    }
  }

  async #run(inquiry: Inquiry, eventIds: readonly string[], limit: number): Promise<boolean> {
    const { remote, intake } = this.#parts;
    const { roomId, signal } = inquiry;
    const wanted = await this.#unplaced(eventIds);
    if (wanted.length === 0) return false;
    const size = Math.max(fewest, Math.min(limit, most));
    const placed = await inquiry.ask('backfill', async (server) => {
      const request = { signal, timeout: requestTimeout.short };
      const jsons = await remote.backfill(server, roomId, wanted, size, request);
      const taken = await intake.take(inquiry, server, jsons, () => true, 'unlimited');
      const fresh = new Set(await this.#unplaced([...taken.keys()]));
      const chain = leadingBack(wanted, new Map([...taken].filter(([id]) => fresh.has(id))));
      return (await this.#place(inquiry, chain)) || undefined;
    });
    return placed !== undefined;
  }

  /** Those of the events that have no place yet. */
  async #unplaced(eventIds: readonly string[]): Promise<string[]> {
    const known = await this.#parts.placement.known(eventIds);
    return eventIds.filter((id) => {
      const stored = known.get(id);
      return stored === undefined || !isSettled(stored);
    });
  }

  /** @param chain newest first @returns whether anything was placed */
  async #place(inquiry: Inquiry, chain: ReadonlyMap<string, VerifiedEvent>): Promise<boolean> {
    const older: OlderEvent[] = [];
    const kept = new Set<string>();
    let statesLeft = mostStates;
    for (const one of [...chain.values()].sort((a, b) => a.event.depth - b.event.depth)) {
      try {
        const prev = one.event.prevEventIds;
        const missing = (await this.#withoutState(prev)).filter((id) => !kept.has(id));
        if (missing.length > 0 && statesLeft-- <= 0) continue;
        const stateBefore =
          missing.length > 0 ? await this.#parts.states.before(inquiry, one.event.eventId) : undefined;
        await this.#parts.auth.complete(inquiry, one.event, kept);
        older.push({ event: one, ...(stateBefore && { stateBefore }) });
        kept.add(one.event.eventId);
      } catch (error) {
        const { eventId } = one.event;
        this.#parts.log.info({ err: error, eventId }, 'An older event has no place');
      }
    }
    if (older.length === 0) return false;
    await this.#parts.placement.backfill(inquiry.roomId, older);
    return true;
  }

  async #withoutState(eventIds: readonly string[]): Promise<string[]> {
    const known = await this.#parts.placement.known(eventIds);
    return eventIds.filter((id) => known.get(id)?.stateGroup === undefined);
  }
}

/** The part of an answer that leads back from the events that were asked for; a server may send anything. */
function leadingBack(
  eventIds: readonly string[],
  events: ReadonlyMap<string, VerifiedEvent>,
): Map<string, VerifiedEvent> {
  const chain = new Map<string, VerifiedEvent>();
  const wanted = [...eventIds];
  for (const id of wanted) {
    const one = chain.has(id) ? undefined : events.get(id);
    if (!one) continue;
    chain.set(id, one);
    wanted.push(...one.event.prevEventIds);
  }
  return chain;
}
