import type { ClientEventJson, JoinedRoomJson, LeftRoomJson, SyncJson } from './test-client.ts';

/** What a client knows of one room. */
export interface RoomOfClient {
  section: 'join' | 'invite' | 'knock' | 'leave';
  /** `[type, state key]` as JSON to the id of the event. */
  readonly state: Map<string, string>;
  /** Ids of events, oldest first; a limited timeline begins anew. */
  timeline: string[];
  summary: Record<string, unknown>;
}

/** Puts together what a client has been told by one sync after the other, as clients do. */
export class ClientView {
  readonly rooms = new Map<string, RoomOfClient>();
  since: string | undefined;

  apply(sync: SyncJson): void {
    this.since = sync.next_batch;
    const { join = {}, invite = {}, knock = {}, leave = {} } = sync.rooms ?? {};
    for (const [roomId, room] of Object.entries(join)) this.#follow(roomId, 'join', room);
    for (const [roomId, room] of Object.entries(leave)) this.#follow(roomId, 'leave', room);
    for (const roomId of Object.keys(invite)) this.#room(roomId, 'invite');
    for (const roomId of Object.keys(knock)) this.#room(roomId, 'knock');
  }

  #follow(roomId: string, section: 'join' | 'leave', told: JoinedRoomJson | LeftRoomJson): void {
    const room = this.#room(roomId, section);
    if (told.timeline.limited) room.timeline = [];
    for (const event of told.state?.events ?? []) setState(room, event);
    for (const event of told.timeline.events) {
      if (told.state) setState(room, event);
      if (!room.timeline.includes(event.event_id)) room.timeline.push(event.event_id);
    }
    for (const event of told.state_after?.events ?? []) setState(room, event);
    if ('summary' in told) Object.assign(room.summary, told.summary);
  }

  /** A client that comes into a room starts from nothing. */
  #room(roomId: string, section: RoomOfClient['section']): RoomOfClient {
    const known = this.rooms.get(roomId);
    if (known && (known.section === section || section === 'leave')) {
      known.section = section;
      return known;
    }
    const room: RoomOfClient = { section, state: new Map(), timeline: [], summary: {} };
    this.rooms.set(roomId, room);
    return room;
  }
}

function setState(room: RoomOfClient, { type, state_key, event_id }: ClientEventJson): void {
  if (state_key !== undefined) room.state.set(JSON.stringify([type, state_key]), event_id);
}
