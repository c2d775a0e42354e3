import type { ClientEventJson, JoinedRoomJson, LeftRoomJson, SyncJson } from './test-client.ts';

/** A room as a client knows it. */
export interface RoomOfClient {
  section: 'join' | 'invite' | 'knock' | 'leave';
  /** `[type, state key]` as JSON to event id. */
  readonly state: Map<string, string>;
  /** Event ids, oldest first; a limited timeline replaces them. */
  timeline: string[];
  summary: Record<string, unknown>;
}

/** Accumulates sync responses as clients do. */
export class ClientView {
  readonly rooms = new Map<string, RoomOfClient>();
  since: string | undefined;

  apply(sync: SyncJson): void {
    this.since = sync.next_batch;
    const { join = {}, invite = {}, knock = {}, leave = {} } = sync.rooms ?? {};
    for (const [roomId, room] of Object.entries(join)) this.#applyRoom(roomId, 'join', room);
    for (const [roomId, room] of Object.entries(leave)) this.#applyRoom(roomId, 'leave', room);
    for (const roomId of Object.keys(invite)) this.#room(roomId, 'invite');
    for (const roomId of Object.keys(knock)) this.#room(roomId, 'knock');
  }

  #applyRoom(roomId: string, section: 'join' | 'leave', update: JoinedRoomJson | LeftRoomJson): void {
    const room = this.#room(roomId, section);
    if (update.timeline.limited) room.timeline = [];
    for (const event of update.state?.events ?? []) setState(room, event);
    for (const event of update.timeline.events) {
      if (update.state) setState(room, event);
      if (!room.timeline.includes(event.event_id)) room.timeline.push(event.event_id);
    }
    for (const event of update.state_after?.events ?? []) setState(room, event);
    if ('summary' in update) Object.assign(room.summary, update.summary);
  }

  /** Returns the room as known so far, or an empty room when it is new in this section. A left room keeps its data. */
  #room(roomId: string, section: RoomOfClient['section']): RoomOfClient {
    const knownRoom = this.rooms.get(roomId);
    if (knownRoom && (knownRoom.section === section || section === 'leave')) {
      knownRoom.section = section;
      return knownRoom;
    }
    const room: RoomOfClient = { section, state: new Map(), timeline: [], summary: {} };
    this.rooms.set(roomId, room);
    return room;
  }
}

function setState(room: RoomOfClient, { type, state_key, event_id }: ClientEventJson): void {
  if (state_key !== undefined) room.state.set(JSON.stringify([type, state_key]), event_id);
}
