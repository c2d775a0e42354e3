import assert from 'node:assert/strict';
import type { ApiAnswer } from '../servers/server.ts';
import type { ClientEventJson, TestClient } from './test-client.ts';

/** The entry of a room in an answer. */
export interface SlidingRoomJson {
  readonly initial?: boolean;
  readonly membership?: string;
  readonly lists?: readonly string[];
  readonly name?: string | null;
  readonly avatar?: string | null;
  readonly heroes?: readonly { readonly user_id: string; readonly displayname?: string }[];
  readonly is_dm?: boolean;
  readonly required_state?: readonly ClientEventJson[];
  readonly timeline?: readonly ClientEventJson[];
  readonly invite_state?: readonly Omit<ClientEventJson, 'event_id'>[];
  readonly prev_batch?: string;
  readonly limited?: boolean;
  readonly num_live?: number;
  readonly joined_count?: number;
  readonly invited_count?: number;
  readonly notification_count?: number;
  readonly highlight_count?: number;
  readonly bump_stamp?: number;
  readonly unstable_expanded_timeline?: boolean;
}

export interface SlidingSyncJson {
  readonly pos: string;
  readonly lists: Readonly<Record<string, { readonly count: number }>>;
  readonly rooms: Readonly<Record<string, SlidingRoomJson>>;
  readonly extensions: Readonly<Record<string, Record<string, unknown>>>;
}

/** What a client knows of one room. */
export interface RoomOfSlidingClient {
  membership: string;
  /** `[type, state key]` as JSON to the id of the event. */
  readonly state: Map<string, string>;
  /** Ids of events, oldest first; a limited timeline begins anew. */
  timeline: string[];
  /** What else was told last, by field. */
  readonly fields: Record<string, unknown>;
}

const path = '/_matrix/client/unstable/org.matrix.simplified_msc3575/sync';

/** A device with one connection, which puts together what it is told as clients do. */
export class SlidingClient {
  readonly client: TestClient;
  readonly rooms = new Map<string, RoomOfSlidingClient>();
  pos: string | undefined;
  readonly #connection: string | undefined;

  constructor(person: TestClient, connection?: string) {
    this.client = person;
    this.#connection = connection;
  }

  /** A request without taking note of the answer. @param body `conn_id` is added */
  ask(
    body: object,
    { pos = this.pos, timeout = 0 }: { pos?: string | undefined; timeout?: number } = {},
  ): Promise<ApiAnswer> {
    const connection = this.#connection === undefined ? undefined : { conn_id: this.#connection };
    const query = { timeout, ...(pos === undefined ? undefined : { pos }) };
    return this.client.ask('POST', path, { ...connection, ...body }, query);
  }

  /** A request that must succeed. The next goes on from its answer. */
  async sync(body: object, options: { timeout?: number } = {}): Promise<SlidingSyncJson> {
    const answer = await this.ask(body, options);
    assert.equal(answer.status, 200, answer.raw);
    const sync = answer.body as unknown as SlidingSyncJson;
    this.pos = sync.pos;
    for (const [roomId, room] of Object.entries(sync.rooms)) this.#apply(roomId, room);
    return sync;
  }

  #apply(roomId: string, told: SlidingRoomJson): void {
    const { required_state = [], timeline = [], invite_state, membership, ...fields } = told;
    let room = this.rooms.get(roomId);
    if (!room || told.initial) {
      assert.ok(told.initial, `${roomId} is new, so its entry must be whole`);
      room = { membership: 'join', state: new Map(), timeline: [], fields: {} };
      this.rooms.set(roomId, room);
    }
    if (membership !== undefined) room.membership = membership;
    Object.assign(room.fields, fields);
    if (told.limited || told.unstable_expanded_timeline) room.timeline = [];
    for (const { event_id } of timeline) if (!room.timeline.includes(event_id)) room.timeline.push(event_id);
    for (const { type, state_key, event_id } of required_state) {
      assert.ok(state_key !== undefined);
      room.state.set(JSON.stringify([type, state_key]), event_id);
    }
  }
}
