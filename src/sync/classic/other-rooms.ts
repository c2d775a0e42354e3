import { strippedState } from '../../protocol/index.ts';
import type { RoomEngine, RoomHead, UserRoom, VisibleEvent } from '../../rooms/index.ts';
import type { EventText } from './event-text.ts';
import { type Subject, timelineText } from './joined-room.ts';
import { stateBefore, stateChangesOutside } from './room-state.ts';
import { readTimeline } from './timeline.ts';

/** Makes the entries of rooms that the user is not in: invited, knocking, left or banned. */
export class OtherRooms {
  readonly #engine: RoomEngine;
  readonly #text: EventText;
  /** Types of state that people see before they are in the room (`room_prejoin_state`). */
  readonly #prejoinKeys: readonly string[];

  constructor(engine: RoomEngine, text: EventText, prejoinKeys: readonly string[]) {
    this.#engine = engine;
    this.#text = text;
    this.#prejoinKeys = prejoinKeys;
  }

  /** A room that the user is invited to or knocks on: some state, stripped. */
  async prejoin(head: RoomHead, room: UserRoom): Promise<string> {
    const nids = this.#prejoinKeys.map((key) => head.state.get(key)?.nid).filter((nid) => nid !== undefined);
    const events = await this.#engine.events.getMany([...nids, room.eventNid]);
    const state = [...events.values()].map(({ event }) => JSON.stringify(strippedState(event)));
    const section = room.membership === 'invite' ? 'invite_state' : 'knock_state';
    return `{"${section}":{"events":[${state.join(',')}]}}`;
  }

  /** A room that the user has left or was banned from: what they may see of it up to then. */
  async left(head: RoomHead, room: UserRoom, subject: Subject, after: number | undefined): Promise<string> {
    const { filter, userId } = subject;
    const upTo = room.stream;
    const range = { after, upTo, limit: subject.timelineLimit, wasJoinedThroughout: false };
    const timeline = await readTimeline(this.#engine, head, userId, filter, range);
    const wasThere = timeline.events.some(({ stored }) => stored.nid !== room.eventNid);
    const nids = new Set<number>();
    if (wasThere && after === undefined) {
      for (const nid of (await stateBefore(this.#engine, head, timeline)).values()) nids.add(nid);
    } else if (wasThere && after !== undefined) {
      for (const nid of await stateChangesOutside(this.#engine, head, timeline, after, upTo)) nids.add(nid);
    }
    const own = await this.#engine.events.get(room.eventNid);
    const events: VisibleEvent[] = [...timeline.events];
    if (own && !events.some(({ stored }) => stored === own))
      events.push({ stored: own, membership: room.membership });
    const state = [...(await this.#engine.events.getMany(nids)).values()]
      .filter(({ event }) => filter.room.state.passesRoom(head.roomId) && filter.room.state.passes(event))
      .map((stored) => ({ stored, membership: room.membership }));
    const [timelineTexts, stateTexts] = await Promise.all([
      this.#text.render(events, subject),
      this.#text.render(state, subject),
    ]);
    return (
      `{"timeline":${timelineText(timeline, timelineTexts)},"state":{"events":[${stateTexts.join(',')}]},` +
      '"account_data":{"events":[]}}'
    );
  }
}
