import type { RoomEvent } from '../../protocol/index.ts';
import type { Placement, VerifiedEvent } from '../../room-engine/index.ts';
import { type Inquiry, requestTimeout, Unobtainable } from '../asking/inquiry.ts';
import type { Intake } from '../checking/intake.ts';
import type { KnownEvents } from '../checking/known-events.ts';
import type { RemoteEvents } from '../remote-servers.ts';
import { withTheirAuthEvents } from './auth-order.ts';
import type { EventFetcher } from './event-fetcher.ts';

/** Events of an auth chain that are taken from one server. */
const longestChain = 10_000;

/** Events that are fetched one by one, and how deep, when nobody gives the chain as a whole. */
const [maxSingles, deepest] = [100, 20];

/** Sees to it that the events which authorise an event are here. */
export class AuthFetcher {
  readonly #deps: {
    readonly remote: RemoteEvents;
    readonly intake: Intake;
    readonly fetcher: EventFetcher;
    readonly known: KnownEvents;
    readonly placement: Placement;
  };

  constructor(parts: {
    readonly remote: RemoteEvents;
    readonly intake: Intake;
    readonly fetcher: EventFetcher;
    readonly known: KnownEvents;
    readonly placement: Placement;
  }) {
    this.#deps = parts;
  }

  /**
   * Fetches what is missing of the event's auth chain.
   * @param besides events that are about to be stored
   * @throws Unobtainable
   */
  async complete(
    inquiry: Inquiry,
    { eventId, authEventIds }: RoomEvent,
    besides: ReadonlySet<string> = new Set(),
  ): Promise<void> {
    const needed = authEventIds.filter((id) => !besides.has(id));
    if ((await this.missing(needed)).length === 0) return;
    await this.#fetchChain(inquiry, eventId, needed);
    const left = await this.missing(needed);
    if (left.length === 0) return;
    await this.#fetchSingly(inquiry, left);
    const missing = await this.missing(needed);
    if (missing.length > 0)
      throw new Unobtainable(`${missing.length} auth events of ${eventId} can not be had`);
  }

  /** Those of the events that are not stored. */
  async missing(eventIds: readonly string[]): Promise<string[]> {
    const known = await this.#deps.placement.known(eventIds);
    return eventIds.filter((id) => !known.has(id));
  }

  /** Stores events that are complete with their auth events, as far as they are. */
  async store({ roomId, version }: Inquiry, events: ReadonlyMap<string, VerifiedEvent>): Promise<void> {
    const { known, placement } = this.#deps;
    const named = [...events.values()].flatMap(({ event }) => event.authEventIds);
    const stored = await known.find([...events.keys(), ...named]);
    const fresh = new Map([...events].filter(([id]) => !stored.has(id)));
    const ordered = withTheirAuthEvents(fresh, (id) => stored.has(id));
    if (ordered.length > 0) await placement.addOutliers({ roomId, version }, ordered);
  }

  async #fetchChain(inquiry: Inquiry, eventId: string, needed: readonly string[]): Promise<void> {
    const { remote, intake } = this.#deps;
    const { roomId, signal } = inquiry;
    await inquiry.ask('event_auth', async (server) => {
      const request = { signal, timeout: requestTimeout.long };
      const jsons = await remote.eventAuth(server, roomId, eventId, request);
      if (jsons.length > longestChain) return undefined;
      await this.store(inquiry, await intake.takeNewState(inquiry, server, jsons));
      return (await this.missing(needed)).length === 0 || undefined;
    });
  }

  /** Level by level, as far as it goes. */
  async #fetchSingly(inquiry: Inquiry, eventIds: readonly string[]): Promise<void> {
    const events = new Map<string, VerifiedEvent>();
    let wanted = [...eventIds];
    for (let depth = 0; depth < deepest && wanted.length > 0 && events.size < maxSingles; depth++) {
      const fetched = await this.#deps.fetcher.fetch(inquiry, wanted.slice(0, maxSingles - events.size));
      for (const [id, event] of fetched) events.set(id, event);
      const named = [...fetched.values()].flatMap(({ event }) => event.authEventIds);
      wanted = (await this.missing([...new Set(named)])).filter((id) => !events.has(id));
    }
    await this.store(inquiry, events);
  }
}
