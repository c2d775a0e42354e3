import type { Clock } from '../../kernel/clock.ts';
import {
  type ClientEvent,
  clientEvent,
  clientEventWithoutRoomId,
  type JsonObject,
  redactEvent,
  stateKeyOf,
} from '../../protocol/index.ts';
import type { RoomEngine } from '../engine.ts';
import type { StoredEvent } from '../stored-event.ts';
import { transactionScope } from '../timeline/transaction-ids.ts';
import type { VisibleEvent } from './room-view.ts';

/** For whom events are made ready. */
export interface Viewer {
  readonly userId: string;
  readonly deviceId: string | undefined;
}

/** Whether events stand alone or under their room, as in a sync. */
export type ClientFormat = 'with room id' | 'without room id';

/** Makes events ready for clients. Source: client-server API, "Room event format" and "Size limits". */
export class ClientEvents {
  readonly #engine: RoomEngine;
  readonly #clock: Clock;

  constructor(engine: RoomEngine, clock: Clock) {
    this.#engine = engine;
    this.#clock = clock;
  }

  /** The events as the viewer gets them, in the same order. */
  async render(
    events: readonly VisibleEvent[],
    viewer: Viewer,
    format: ClientFormat = 'with room id',
  ): Promise<ClientEvent[]> {
    const scope = transactionScope(viewer.userId, viewer.deviceId);
    const own = events.some(({ stored }) => stored.event.sender === viewer.userId);
    const [previous, redactions] = await Promise.all([
      this.#previousState(events),
      this.#redactions(events),
      own ? this.#engine.transactions.prepare(scope) : undefined,
    ]);
    const make = format === 'with room id' ? clientEvent : clientEventWithoutRoomId;
    return events.map(({ stored, membership }) => {
      const redaction = stored.redactedBy === undefined ? undefined : redactions.get(stored.redactedBy);
      const unsigned: JsonObject = {
        age: Math.max(0, this.#clock.now() - stored.event.originServerTs),
        membership,
        ...previousContent(previous.get(stored.nid)),
        ...(redaction === undefined ? undefined : { redacted_because: clientEvent(redaction.event) }),
        ...this.#transactionId(stored, viewer, scope),
      };
      return make(redaction === undefined ? stored.event : redactEvent(stored.event).event, unsigned);
    });
  }

  #transactionId({ nid, event }: StoredEvent, viewer: Viewer, scope: number): JsonObject | undefined {
    if (event.sender !== viewer.userId) return undefined;
    const txnId = this.#engine.transactions.peek(scope, nid);
    return txnId === undefined ? undefined : { transaction_id: txnId };
  }

  /** What each state event replaced. */
  async #previousState(events: readonly VisibleEvent[]): Promise<Map<number, StoredEvent>> {
    const stateEvents = events.filter(({ stored }) => stored.event.stateKey !== undefined);
    const nids = new Map<number, number>();
    for (const { stored } of stateEvents) {
      const { type, stateKey = '' } = stored.event;
      const key = await this.#engine.stateKeys.find(stateKeyOf(type, stateKey));
      if (key === undefined || stored.stateBefore === undefined) continue;
      const entries = await this.#engine.groups.entries([stored.stateBefore], [key]);
      const nid = entries.get(stored.stateBefore)?.get(key);
      if (nid !== undefined) nids.set(stored.nid, nid);
    }
    const found = await this.#engine.events.getMany(nids.values());
    const previous = new Map<number, StoredEvent>();
    for (const [nid, previousNid] of nids) {
      const event = found.get(previousNid);
      if (event) previous.set(nid, event);
    }
    return previous;
  }

  #redactions(events: readonly VisibleEvent[]): Promise<Map<number, StoredEvent>> {
    const nids = events.map(({ stored }) => stored.redactedBy).filter((nid) => nid !== undefined);
    return this.#engine.events.getMany(nids);
  }
}

function previousContent(previous: StoredEvent | undefined): JsonObject | undefined {
  if (!previous) return undefined;
  const { event } = previous.redactedBy === undefined ? previous : redactEvent(previous.event);
  return { prev_content: event.content, prev_sender: event.sender, replaces_state: event.eventId };
}
