import { badJson, forbidden, type RoomEvent } from '../../../protocol/index.ts';
import type { StoredEvent } from '../../stored-event.ts';
import type { WritableHead } from '../../timeline/writable-head.ts';
import type { RoomWithVersion, VerifiedEvent } from '../../verified-event.ts';
import { MissingEvents } from '../missing-events.ts';
import type { PlacementDeps } from '../placement-deps.ts';
import { authIdsOf } from '../states/auth-state.ts';
import { rejectionByAuthEvents } from './event-authorization.ts';
import { effectivePendingRedactions, showRedactions } from './pending-redactions.ts';
import { requireSameRoom } from './place-event.ts';
import { correctRoomVersion } from './room-version.ts';

/** Maximum number of events that are staged together. */
const eventsAtOnce = 500;

/** Stores outliers: auth events and state without a place on the timeline. */
export class Outliers {
  readonly #deps: PlacementDeps;

  constructor(deps: PlacementDeps) {
    this.#deps = deps;
  }

  /**
   * Stores events as outliers, each after its auth events; an event that its auth events do not allow is
   * stored as rejected. Calls for one room must be serialized.
   * @returns the events by id, including events that were stored before
   * @throws MissingEvents when an auth event is neither stored nor in `received`; MatrixError M_FORBIDDEN for an event
   * of another room and for a room that was entered with another version, M_BAD_JSON when auth events refer to each
   * other in a circle
   */
  async add(room: RoomWithVersion, received: readonly VerifiedEvent[]): Promise<Map<string, StoredEvent>> {
    const { slices } = this.#deps;
    await slices.each(received, ({ event }) => requireSameRoom(room, event));
    const head = await this.headOf(room);
    const result = new Map<string, StoredEvent>();
    const storedById = await this.#deps.events.getManyById(received.map(({ event }) => event.eventId));
    const newEvents: VerifiedEvent[] = [];
    await slices.each(received, (verified) => {
      const stored = storedById.get(verified.event.eventId);
      if (stored && stored.roomNid !== head.roomNid) throw forbidden('The event belongs to another room');
      if (stored) result.set(verified.event.eventId, stored);
      else newEvents.push(verified);
    });
    const ordered = await slices.run(inAuthOrder(newEvents));
    const authById = await this.#authEvents(ordered, result);
    for (let start = 0; start < ordered.length; start += eventsAtOnce) {
      const chunk = ordered.slice(start, start + eventsAtOnce);
      const redactions = await effectivePendingRedactions(
        this.#deps,
        chunk.map(({ event }) => event),
      );
      const staged: Promise<void>[] = [];
      await slices.each(chunk, (verified) => {
        const { stored, durable } = this.#stage(head, verified, authById, redactions);
        // A failure is reported by the `Promise.all` below.
        durable.catch(() => undefined);
        staged.push(durable);
        result.set(verified.event.eventId, stored);
      });
      await Promise.all(staged);
    }
    return result;
  }

  /**
   * Returns the head of a room, or creates the head of an unknown room.
   * @throws MatrixError as `correctRoomVersion`
   */
  async headOf({ roomId, version }: RoomWithVersion): Promise<WritableHead> {
    const { heads } = this.#deps;
    const head = await heads.get(roomId);
    if (!head) return heads.createHead(this.#deps.roomNids.next(), roomId, version);
    await correctRoomVersion(this.#deps, head, version);
    return head;
  }

  /**
   * Returns the auth events of the new events, except auth events that are new themselves, by event id.
   * @throws MissingEvents when one of them is not stored
   */
  async #authEvents(
    ordered: readonly VerifiedEvent[],
    present: ReadonlyMap<string, StoredEvent>,
  ): Promise<Map<string, StoredEvent>> {
    const newIds = new Set(ordered.map(({ event }) => event.eventId));
    const otherAuthIds = new Set<string>();
    await this.#deps.slices.each(ordered, ({ event }) => {
      for (const eventId of authIdsOf(event)) if (!newIds.has(eventId)) otherAuthIds.add(eventId);
    });
    const authById = new Map<string, StoredEvent>();
    for (const eventId of otherAuthIds) {
      const stored = present.get(eventId);
      if (stored) authById.set(eventId, stored);
    }
    const unknownIds = [...otherAuthIds].filter((eventId) => !authById.has(eventId));
    for (const [eventId, stored] of await this.#deps.events.getManyById(unknownIds))
      authById.set(eventId, stored);
    const missing = [...otherAuthIds].filter((eventId) => !authById.has(eventId));
    if (missing.length > 0) throw new MissingEvents(missing);
    return authById;
  }

  #stage(
    head: WritableHead,
    { event, json }: VerifiedEvent,
    authById: Map<string, StoredEvent>,
    redactions: ReadonlyMap<string, readonly StoredEvent[]>,
  ): { stored: StoredEvent; durable: Promise<void> } {
    const { writer, heads, clock } = this.#deps;
    const rejected = rejectionByAuthEvents(event, authEventsOf(event, authById)) !== undefined;
    const effective = rejected ? [] : (redactions.get(event.eventId) ?? []);
    const [redaction] = effective;
    return writer.extend(head, (reserve) => {
      const reservation = reserve();
      const outlier = outlierOf(head, event, reservation.position);
      const stored: StoredEvent = { ...outlier, rejected, redactedBy: redaction?.nid };
      authById.set(event.eventId, stored);
      const auth = event.authEventIds.map((eventId) => authById.get(eventId)?.nid);
      const isNewRoom = heads.peek(head.roomId) !== head && !head.broken;
      if (isNewRoom) heads.register(head);
      const durable = writer.stage({
        head,
        stored,
        rowAction: 'new',
        fact: undefined,
        content: json,
        end: undefined,
        groups: [],
        auth: event.stateKey === undefined ? [] : [...new Set(auth.filter((nid) => nid !== undefined))],
        redacts: undefined,
        reservation,
        ...(isNewRoom && { roomCreatedTs: clock.now() }),
        remote: { redactedTs: redaction?.event.originServerTs },
      });
      if (!redaction) return { stored, durable };
      const shownRedactions = showRedactions(head, effective, reserve).map((prepared) =>
        writer.stage(prepared),
      );
      return { stored, durable: Promise.all([durable, ...shownRedactions]).then(() => undefined) };
    });
  }
}

/** Returns an event without a place: no position, no state. */
export function outlierOf(head: WritableHead, event: RoomEvent, nid: number): StoredEvent {
  return {
    nid,
    roomNid: head.roomNid,
    event,
    stream: undefined,
    stateGroup: undefined,
    stateBefore: undefined,
    replaces: undefined,
    rejected: false,
    softFailed: false,
    distribute: false,
    acceptedElsewhere: false,
    resolves: false,
    followsGap: false,
    withheld: false,
    outOfBand: false,
    redactedBy: undefined,
  };
}

function authEventsOf(
  event: RoomEvent,
  authById: ReadonlyMap<string, StoredEvent>,
): Map<string, StoredEvent> {
  const auth = new Map<string, StoredEvent>();
  for (const eventId of authIdsOf(event)) {
    const stored = authById.get(eventId);
    if (stored) auth.set(eventId, stored);
  }
  return auth;
}

/** Number of events that are sorted between two yields to other work. */
const orderedAtOnce = 50;

/**
 * Sorts events so that each comes after its auth events; yields after each `orderedAtOnce` events.
 * @throws MatrixError M_BAD_JSON when auth events form a circle, which is possible only in room versions 1
 * and 2, where servers choose event ids
 */
function* inAuthOrder(events: readonly VerifiedEvent[]): Generator<void, VerifiedEvent[]> {
  const byId = new Map(events.map((verified) => [verified.event.eventId, verified]));
  const ordered: VerifiedEvent[] = [];
  const state = new Map<string, 'open' | 'done'>();
  for (const first of byId.values()) {
    const pending = [first];
    for (let top = pending.at(-1); top; top = pending.at(-1)) {
      const { eventId } = top.event;
      if (state.get(eventId) === 'done') {
        pending.pop();
        continue;
      }
      const isOpen = state.get(eventId) === 'open';
      const pendingAuth = authIdsOf(top.event)
        .map((id) => byId.get(id))
        .filter((verified) => verified !== undefined && state.get(verified.event.eventId) !== 'done');
      if (pendingAuth.length === 0) {
        state.set(eventId, 'done');
        ordered.push(top);
        pending.pop();
        if (ordered.length % orderedAtOnce === 0) yield;
      } else if (isOpen) throw badJson('Auth events refer to each other in a circle');
      else {
        state.set(eventId, 'open');
        for (const verified of pendingAuth) if (verified) pending.push(verified);
      }
    }
  }
  return ordered;
}
