import assert from 'node:assert/strict';
import type { ApiAnswer } from '../servers/server.ts';
import type { ClientEventJson, TestClient } from './test-client.ts';

/** A room in a sliding sync response. */
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

/** A room as a client knows it. */
export interface RoomOfSlidingClient {
  membership: string;
  /** `[type, state key]` as JSON to event id. */
  readonly state: Map<string, string>;
  /** Event ids, oldest first; a limited timeline replaces them. */
  timeline: string[];
  /** The latest value of each other field. */
  readonly fields: Record<string, unknown>;
}

const path = '/_matrix/client/unstable/org.matrix.simplified_msc3575/sync';

/** A client with one sliding sync connection, which accumulates the responses as clients do. */
export class SlidingClient {
  readonly client: TestClient;
  readonly rooms = new Map<string, RoomOfSlidingClient>();
  pos: string | undefined;
  readonly #connection: string | undefined;

  constructor(client: TestClient, connection?: string) {
    this.client = client;
    this.#connection = connection;
  }

  /** Sends a request, and returns its response without applying it. @param body `conn_id` is added */
  request(
    body: object,
    { pos = this.pos, timeout = 0 }: { pos?: string | undefined; timeout?: number } = {},
  ): Promise<ApiAnswer> {
    const connection = this.#connection === undefined ? undefined : { conn_id: this.#connection };
    const query = { timeout, ...(pos === undefined ? undefined : { pos }) };
    return this.client.request('POST', path, { ...connection, ...body }, query);
  }

  /** Sends a request that must succeed, applies its response, and continues from its `pos` the next time. */
  async sync(body: object, options: { timeout?: number } = {}): Promise<SlidingSyncJson> {
    const answer = await this.request(body, options);
    assert.equal(answer.status, 200, answer.raw);
    const sync = answer.body as unknown as SlidingSyncJson;
    this.pos = sync.pos;
    for (const [roomId, room] of Object.entries(sync.rooms)) this.#apply(roomId, room);
    return sync;
  }

  #apply(roomId: string, update: SlidingRoomJson): void {
    const { required_state = [], timeline = [], invite_state, membership, ...fields } = update;
    let room = this.rooms.get(roomId);
    if (!room || update.initial) {
      assert.ok(update.initial, `the first response with ${roomId} must have initial: true`);
      room = { membership: 'join', state: new Map(), timeline: [], fields: {} };
      this.rooms.set(roomId, room);
    }
    if (membership !== undefined) room.membership = membership;
    Object.assign(room.fields, fields);
    if (update.limited || update.unstable_expanded_timeline) room.timeline = [];
    for (const { event_id } of timeline) if (!room.timeline.includes(event_id)) room.timeline.push(event_id);
    for (const { type, state_key, event_id } of required_state) {
      assert.ok(state_key !== undefined);
      room.state.set(JSON.stringify([type, state_key]), event_id);
    }
  }
}
