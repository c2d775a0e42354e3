import { notFound, stateMapKey } from '../../../protocol/index.ts';
import { isExpired } from '../../retention/message-retention.ts';
import type { GroupChain } from '../../state/group-chain.ts';
import { type RoomFact, type StoredEvent, withoutEnd } from '../../stored-event.ts';
import type { PreparedWrite, ReservePlace } from '../../timeline/event-writer.ts';
import type { WritableHead } from '../../timeline/writable-head.ts';
import type { VerifiedEvent } from '../../verified-event.ts';
import type { OlderEvent } from '../placement.ts';
import type { PlacementDeps } from '../placement-deps.ts';
import type { BeforeStates } from '../states/before-state.ts';
import { readAllBackwardExtremities } from '../store.ts';
import { type EventExamination, EventExaminer } from './examine-event.ts';
import { outlierOf } from './outliers.ts';
import { showRedactions } from './pending-redactions.ts';
import { hasPlace, requireSameRoom } from './place-event.ts';

/** A backfilled event that is ready to be placed, with the results of its checks. */
interface ExaminedOlderEvent extends VerifiedEvent {
  readonly storedEvent: StoredEvent | undefined;
  readonly examination: EventExamination;
  /** Number of further backfill responses that may be fetched from here without a request of a client; `undefined`: 0. */
  readonly backfillsLeft: number | undefined;
}

/** Places backfilled events before the earliest events of timelines. */
export class Backfill {
  readonly #deps: PlacementDeps;
  readonly #beforeStates: BeforeStates;
  readonly #examiner: EventExaminer;

  constructor(deps: PlacementDeps, before: BeforeStates) {
    this.#deps = deps;
    this.#beforeStates = before;
    this.#examiner = new EventExaminer(deps, before);
  }

  /**
   * Places backfilled events, oldest first:
   * 1. keeps the events that the room's backward extremities lead to, and events that `/timestamp_to_event` found
   * (`detached`), except messages that have expired by the retention policy of the room;
   * 2. authorizes each by its auth events and by the state before it; soft failure does not apply to old events;
   * 3. stores it at a negative position, or as rejected. Resolves when everything is on disk. Calls for one room must
   * be serialized.
   * Source: server-server API, "Backfilling and retrieving missing events", "Checks performed on receipt of a PDU".
   * @throws MissingEvents
   */
  async add(roomId: string, received: readonly OlderEvent[]): Promise<void> {
    const { heads, database, slices } = this.#deps;
    const { resolver } = this.#deps.states;
    const { retention } = this.#deps.checks;
    const head = await heads.get(roomId);
    if (!head || head.chain.id === undefined) throw notFound('This server is not in the room');
    for (const { event } of received) requireSameRoom(head, event.event);
    const gaps = await readAllBackwardExtremities(database.reader(), head.roomNid);
    const staged: Promise<void>[] = [];
    try {
      const expiredBefore = await retention.expiredBefore(head);
      const unexpiredEvents = received.filter(({ event }) => !isExpired(event, expiredBefore));
      const older = oldestFirst(connected(unexpiredEvents, gaps.keys()));
      const backfillsLeft = Math.max(0, ...older.map(({ event }) => gaps.get(event.event.eventId) ?? 0)) - 1;
      for (const olderEvent of older) {
        await slices.pauseIfDue();
        const placed = await this.#place(head, olderEvent, backfillsLeft > 0 ? backfillsLeft : undefined);
        if (!placed) continue;
        placed.durable.catch(() => resolver.forgetAll());
        staged.push(placed.durable);
      }
    } finally {
      await Promise.all(staged);
    }
  }

  async #place(
    head: WritableHead,
    { event: verified, ...supplied }: OlderEvent,
    backfillsLeft: number | undefined,
  ): Promise<{ durable: Promise<void> } | undefined> {
    const { events, writer } = this.#deps;
    const { stateKeys } = this.#deps.states;
    const { event, json } = verified;
    const storedEvent = await events.getById(event.eventId);
    if (storedEvent && (storedEvent.roomNid !== head.roomNid || hasPlace(storedEvent))) return undefined;
    const isFirst = event.prevEventIds.length === 0;
    const examination = await this.#examiner.examine(head, event, {
      ...(isFirst ? { stateBefore: [] } : supplied),
      softFails: false,
      storedEvent,
    });
    const makesGroup = event.stateKey !== undefined && examination.rejected === undefined;
    const keyNid = makesGroup
      ? await stateKeys.prepare(stateMapKey(event.type, event.stateKey ?? ''))
      : undefined;
    const chain = keyNid === undefined ? undefined : await examination.stateBefore.chain();
    if (head.broken) {
      this.#beforeStates.drop(examination.stateBefore.newGroups);
      throw new Error(
        'the head of the room is broken: an event could not be stored, or the room is being deleted',
      );
    }
    const older = { event, json, storedEvent, examination, backfillsLeft };
    try {
      const staged = writer.extend(head, (reserve) => {
        const write = this.#extend(head, older, chain, keyNid, reserve);
        const shownRedactions = showRedactions(head, examination.redactedBy, reserve);
        return [write, ...shownRedactions].map((prepared) => writer.stage(prepared));
      });
      return { durable: Promise.all(staged).then(() => undefined) };
    } catch (error) {
      this.#beforeStates.drop(examination.stateBefore.newGroups);
      throw error;
    }
  }

  /** Returns the rows to write, and marks an event that the backfilled event redacts as redacted in memory. */
  #extend(
    head: WritableHead,
    { event, json, storedEvent, examination, backfillsLeft }: ExaminedOlderEvent,
    chain: GroupChain | undefined,
    keyNid: number | undefined,
    reserve: ReservePlace,
  ): PreparedWrite {
    const { groupIds, resolver } = this.#deps.states;
    const newGroup = chain && keyNid !== undefined ? { chain, keyNid, id: groupIds.next() } : undefined;
    const reservation = reserve();
    const { position } = reservation;
    const nid = storedEvent?.nid ?? position;
    const rows = newGroup?.chain.advance(newGroup.id, new Map([[newGroup.keyNid, nid]]));
    const isShown = examination.rejected === undefined;
    const stored: StoredEvent = {
      ...outlierOf(head, event, nid),
      stream: isShown ? -position : undefined,
      stateGroup: rows?.id ?? examination.stateBefore.id,
      stateBefore: examination.stateBefore.id,
      replaces: examination.replaces,
      rejected: !isShown,
      withheld: examination.withheld,
      distribute: storedEvent?.distribute ?? false,
      redactedBy: storedEvent?.redactedBy ?? examination.redactedBy[0]?.nid,
    };
    if (examination.redacts) head.redact(examination.redacts, nid);
    if (examination.stateBefore.resolvedFrom.length > 0)
      resolver.remember(examination.stateBefore.resolvedFrom, examination.stateBefore.id);
    return {
      head,
      stored,
      rowAction: storedEvent ? 'known' : 'new',
      fact: isShown ? factOf(head, stored, position) : undefined,
      content: json,
      end: undefined,
      groups: [...examination.stateBefore.newGroups, ...(rows ? [rows] : [])],
      auth: event.stateKey === undefined || storedEvent ? [] : examination.auth,
      redacts: examination.redacts,
      reservation,
      remote: {
        stateKeys: [
          ...examination.stateBefore.newGroupKeys,
          ...(rows ? [stateMapKey(event.type, event.stateKey ?? '')] : []),
        ],
        place: isShown ? position : undefined,
        missing: examination.missing,
        backfillsLeft: isShown ? backfillsLeft : undefined,
        fillsGap: true,
        pendingTarget: examination.pendingTarget,
        redactedTs: examination.redactedBy[0]?.event.originServerTs,
      },
    };
  }
}

/** Returns the fact of a backfilled event. The event changes neither the state nor the end of the room. */
const factOf = (head: WritableHead, stored: StoredEvent, position: number): RoomFact => ({
  roomId: head.roomId,
  position,
  onTimeline: false,
  stored,
  stateChanges: [],
  membershipChanges: [],
  ...withoutEnd,
});

/**
 * Returns the detached events, and the events that backward extremities or detached events lead to by `prev_events`.
 */
function connected(received: readonly OlderEvent[], gaps: Iterable<string>): OlderEvent[] {
  const byId = new Map(received.map((older) => [older.event.event.eventId, older]));
  const reachable = new Set<OlderEvent>();
  const detached = received.filter((older) => older.detached).map((older) => older.event.event.eventId);
  for (const pending = [...gaps, ...detached]; pending.length > 0; ) {
    const older = byId.get(pending.pop() ?? '');
    if (!older || reachable.has(older)) continue;
    reachable.add(older);
    pending.push(...older.event.event.prevEventIds);
  }
  return [...reachable];
}

/**
 * Sorts events so that each comes after its previous events. Depths are not used, because remote servers choose them.
 */
function oldestFirst(events: readonly OlderEvent[]): OlderEvent[] {
  const byId = new Map(events.map((older) => [older.event.event.eventId, older]));
  const prevLeft = new Map<OlderEvent, number>();
  const followers = new Map<OlderEvent, OlderEvent[]>();
  for (const older of events) {
    const before = older.event.event.prevEventIds.map((eventId) => byId.get(eventId));
    const knownPrev = [...new Set(before.filter((event) => event !== undefined))];
    prevLeft.set(older, knownPrev.length);
    for (const event of knownPrev) followers.set(event, [...(followers.get(event) ?? []), older]);
  }
  const ordered = events.filter((older) => prevLeft.get(older) === 0);
  for (const older of ordered) {
    for (const next of followers.get(older) ?? []) {
      const remaining = (prevLeft.get(next) ?? 0) - 1;
      prevLeft.set(next, remaining);
      if (remaining === 0) ordered.push(next);
    }
  }
  return ordered;
}
