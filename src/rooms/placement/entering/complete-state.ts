import { notFound, stateKeyOf } from '../../../protocol/index.ts';
import type { GroupChain, GroupRows } from '../../state/group-chain.ts';
import type { StoredEvent } from '../../stored-event.ts';
import type { PreparedWrite } from '../../timeline/event-writer.ts';
import type { Extremity, RoomHead } from '../../timeline/room-head.ts';
import { objectionByState } from '../events/verdicts.ts';
import { MissingEvents } from '../missing-events.ts';
import type { PlacementParts } from '../placement-parts.ts';
import { type BeforeStates, type GroupState, stateMapOf } from '../states/before-state.ts';
import { type CurrentChange, changeOfCurrentState } from '../states/current-state.ts';
import { PreparedState } from '../states/prepared-state.ts';
import { surroundingIn } from '../states/surrounding-state.ts';
import { readOutsiders, readPlacedSince } from '../store.ts';
import { type Outsider, takeOutsidersIn } from './outsiders.ts';
import type { PartialStateColumn } from './partial-state.ts';

/** What the events since the join are with the whole state before it. */
interface Revision {
  /** Events of which something is known better, by nid, in the order in which they got their places. */
  readonly events: Map<number, StoredEvent>;
  readonly groups: GroupRows[];
  readonly stateKeys: Set<string>;
  readonly join: StoredEvent;
  readonly before: GroupState;
  /** How far on the stream it goes. */
  upTo: number;
  /** Ends in the group that was made last, where the next one is likely to follow. */
  chain: GroupChain | undefined;
}

/** What the revised ends of the room make of its current state. */
interface Outcome {
  /** Of what it was made. */
  readonly of: string;
  readonly change: CurrentChange | undefined;
  readonly prepared: PreparedState | undefined;
}

/** Events that are read together. */
const readAtOnce = 100;

/**
 * Gives rooms that were joined the fast way the rest of their state: the events since the join are gone through again.
 * Source: server-server API, `send_join`, "omit_members".
 */
export class CompleteState {
  readonly #parts: PlacementParts;
  readonly #before: BeforeStates;

  constructor(parts: PlacementParts, before: BeforeStates) {
    this.#parts = parts;
    this.#before = before;
  }

  /** One call at a time in each room; does nothing for rooms that are complete. */
  async complete(roomId: string, stateIds: readonly string[]): Promise<void> {
    const { heads, resolver } = this.#parts;
    const first = await heads.get(roomId);
    if (!first) throw notFound('Unknown room');
    if (!first.partial) return;
    await this.#flushed(first);
    const revision = await this.#begin(first, first.partial.joinEventId, stateIds);
    let outcome: Outcome | undefined;
    try {
      for (;;) {
        const head = await heads.get(roomId);
        if (head !== first || head.broken) throw new Error('the room could not be written to');
        // Only local users can add to the room now, and the last of what they have added is in memory.
        if ((head.recent[0]?.stream ?? 0) > revision.upTo) {
          await this.#catchUp(head, revision);
          continue;
        }
        // What is added from here on shows by other extremities, and begins another round.
        const [extremities, group] = [head.extremities, head.chain.id];
        const news = head.recent.filter(({ stream = 0 }) => stream > revision.upTo);
        for (const stored of news) await this.#revise(head, stored, revision);
        const ends = await this.#ends(head, revision);
        // It takes a while, and does not change with the messages that are sent meanwhile.
        outcome = await this.#outcome(head, revision, ends, outcome);
        const outsiders = await readOutsiders(this.#parts.database.reader(), head.roomNid);
        await this.#noteRedactions(revision);
        // Nothing may be awaited from here until everything is staged: the head must not change under it.
        if (head.extremities !== extremities || head.chain.id !== group || head.broken) continue;
        const durable = this.#stage(head, revision, ends, outcome, outsiders);
        revision.groups.length = 0;
        await this.#settle(revision, durable);
        return;
      }
    } catch (error) {
      resolver.forgetAll();
      throw error;
    } finally {
      this.#before.drop(revision.groups);
    }
  }

  /** Resolves when everything that was added to the room until now is on disk. */
  async #flushed(head: RoomHead): Promise<void> {
    const { streams, stream, writer } = this.#parts;
    const [stored] = head.recent;
    if (!stored) return;
    await writer.stage({ ...nothing, head, stored, reservation: streams.reserve(stream) });
  }

  async #begin(head: RoomHead, joinEventId: string, stateIds: readonly string[]): Promise<Revision> {
    const { events } = this.#parts;
    const found = await events.getManyById([joinEventId, ...stateIds]);
    const missing = [joinEventId, ...stateIds].filter((eventId) => !found.has(eventId));
    const join = found.get(joinEventId);
    if (missing.length > 0 || join?.stream === undefined) throw new MissingEvents(missing);
    found.delete(joinEventId);
    const state = await stateMapOf(found.values(), head.roomNid, this.#parts.slices);
    const before = await this.#before.ofMap(head, state);
    const revision: Revision = {
      events: new Map(),
      groups: [...before.made],
      stateKeys: new Set(before.keys),
      join,
      before,
      upTo: join.stream - 1,
      chain: await before.chain(),
    };
    await this.#parts.slices.rest();
    await this.#catchUp(head, revision);
    return revision;
  }

  /** Revises what is on disk. */
  async #catchUp(head: RoomHead, revision: Revision): Promise<void> {
    const { events, database, streams, slices } = this.#parts;
    // Everything up to here is on disk; what comes later is in memory, or there is so much of it that this is repeated.
    const upTo = streams.current;
    const nids = await readPlacedSince(database.scanner(), head.roomNid, revision.upTo);
    for (let start = 0; start < nids.length; start += readAtOnce) {
      const some = nids.slice(start, start + readAtOnce);
      const placed = await events.getMany(some);
      for (const nid of some) {
        const stored = placed.get(nid);
        if (stored && (stored.stream ?? 0) <= upTo) await this.#revise(head, stored, revision);
        await slices.rest();
      }
    }
    await new Promise(setImmediate);
    revision.upTo = Math.max(revision.upTo, upTo);
  }

  /** Works out the states at an event anew, and whether it is allowed. */
  async #revise(head: RoomHead, stored: StoredEvent, revision: Revision): Promise<void> {
    const { event } = stored;
    revision.upTo = Math.max(revision.upTo, stored.stream ?? 0);
    const before =
      stored.nid === revision.join.nid ? revision.before : await this.#stateBefore(head, stored, revision);
    if (!before) return;
    const isJoin = stored.nid === revision.join.nid;
    if (!isJoin) {
      revision.groups.push(...before.made);
      for (const key of before.keys) revision.stateKeys.add(key);
    }
    const rejected =
      stored.rejected ||
      (!isJoin && objectionByState(event, await surroundingIn(this.#parts, event, before.id)) !== undefined);
    let group = before.id;
    if (event.stateKey !== undefined && !rejected) {
      const key = stateKeyOf(event.type, event.stateKey);
      const keyNid = await this.#parts.stateKeys.prepare(key);
      const chain = revision.chain?.id === before.id ? revision.chain : await before.chain();
      revision.chain = chain;
      const rows = chain.advance(this.#parts.groupIds.next(), new Map([[keyNid, stored.nid]]));
      this.#parts.groups.add(rows);
      revision.groups.push(rows);
      revision.stateKeys.add(key);
      group = rows.id;
    }
    revision.events.set(stored.nid, {
      ...stored,
      stateBefore: before.id,
      stateGroup: group,
      rejected,
      stream: rejected ? undefined : stored.stream,
    });
  }

  /** `undefined`: another server has told of it, or it does not come after the join. */
  async #stateBefore(
    head: RoomHead,
    { event, followsGap }: StoredEvent,
    { events }: Revision,
  ): Promise<GroupState | undefined> {
    const prev = await this.#parts.events.getManyById(event.prevEventIds);
    if (followsGap || prev.size < event.prevEventIds.length) return undefined;
    if (![...prev.values()].some(({ nid }) => events.has(nid))) return undefined;
    const groups = [...prev.values()].map((one) => (events.get(one.nid) ?? one).stateGroup);
    const known = groups.filter((group) => group !== undefined);
    if (known.length < groups.length) return undefined;
    const before = await this.#before.after(head.version, known, undefined);
    if (before.resolves.length > 0) this.#parts.resolver.remember(before.resolves, before.id);
    return before;
  }

  /** The extremities with their new groups; in the place of one that is not allowed, what comes before it. */
  async #ends(head: RoomHead, { events }: Revision): Promise<Extremity[]> {
    const ends = new Map<number, Extremity>();
    const pending = head.extremities.map(({ nid }) => nid);
    const seen = new Set<number>();
    for (let nid = pending.pop(); nid !== undefined; nid = pending.pop()) {
      if (seen.has(nid)) continue;
      seen.add(nid);
      const stored = events.get(nid) ?? (await this.#parts.events.get(nid));
      if (!stored) continue;
      if (stored.rejected || stored.softFailed) {
        const prev = await this.#parts.events.getManyById(stored.event.prevEventIds);
        pending.push(...prev.keys().map((eventId) => prev.get(eventId)?.nid ?? 0));
      } else {
        const { eventId, depth } = stored.event;
        ends.set(nid, { nid, eventId, depth, stateGroup: stored.stateGroup });
      }
    }
    // What another end comes after is none itself.
    const named = new Set<string>();
    for (const nid of ends.keys()) {
      const stored = events.get(nid) ?? (await this.#parts.events.get(nid));
      for (const eventId of stored?.event.prevEventIds ?? []) named.add(eventId);
    }
    return [...ends.values()].filter(({ eventId }) => !named.has(eventId));
  }

  /** @param last made before; still good when it was made of the same */
  async #outcome(
    head: RoomHead,
    { before }: Revision,
    ends: readonly Extremity[],
    last: Outcome | undefined,
  ): Promise<Outcome> {
    const groups = [...new Set(ends.map(({ stateGroup }) => stateGroup ?? 0))].sort((a, b) => a - b);
    const of = `${head.chain.id}: ${groups.join()}`;
    if (last?.of === of) return last;
    const change = await changeOfCurrentState(this.#parts, head, groups, {
      state: before,
      newcomer: undefined,
    });
    const prepared = change && (await PreparedState.of(head, change, this.#parts.slices));
    return { of, change, prepared };
  }

  /** Events may have been redacted since they were revised; not after the room was looked at the last time. */
  async #noteRedactions({ events }: Revision): Promise<void> {
    await this.#parts.slices.each(events.values(), (revised) => {
      revised.redactedBy = this.#parts.events.peek(revised.nid)?.redactedBy ?? revised.redactedBy;
    });
  }

  /** The revised events are what all others are given already; they stay that when they are on disk. */
  async #settle({ events }: Revision, durable: Promise<void>): Promise<void> {
    let isSaved = false;
    try {
      await durable;
      isSaved = true;
    } finally {
      await this.#parts.events.revised(events, isSaved);
    }
  }

  /** Writes it all down, together. What is done here at once does not grow with the number of events. */
  #stage(
    head: RoomHead,
    { events, groups, stateKeys, join }: Revision,
    ends: readonly Extremity[],
    { change, prepared }: Outcome,
    outsiders: readonly Outsider[],
  ): Promise<void> {
    const { streams, stream, writer } = this.#parts;
    const recent = [...head.recent].map(({ nid }) => events.get(nid)).filter((one) => one !== undefined);
    for (const revised of recent) head.revise(revised);
    const cause = events.get(join.nid) ?? join;
    const reservation = streams.reserve(stream);
    const { position } = reservation;
    const applied = prepared?.take(head, cause, position) ?? { stateChanges: [], membershipChanges: [] };
    const { membershipChanges, stripped } = takeOutsidersIn(head, outsiders, applied, cause);
    head.setExtremities(ends);
    head.partial = undefined;
    head.completedAt = position;
    const column: PartialStateColumn = { completedAt: position };
    const write: PreparedWrite = {
      ...nothing,
      head,
      stored: cause,
      fact: {
        roomId: head.roomId,
        position,
        onTimeline: false,
        stored: cause,
        ...applied,
        membershipChanges,
      },
      end: { extremities: ends, group: head.chain.id },
      groups: [...groups, ...(change?.made ?? [])],
      reservation,
      remote: {
        revised: events,
        stateKeys: [...stateKeys, ...(change?.made.length ? change.entries.keys() : [])],
        stripped,
        partialState: JSON.stringify(column),
      },
    };
    this.#parts.events.revise(events);
    const durable = writer.stage(write);
    for (const revised of recent) writer.follow(revised, durable);
    return durable;
  }
}

/** A write that writes nothing. */
const nothing = {
  row: 'untouched',
  fact: undefined,
  content: '',
  end: undefined,
  groups: [],
  auth: [],
  redacts: undefined,
} as const;
